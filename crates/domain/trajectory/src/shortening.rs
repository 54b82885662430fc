//! What is left out of a history so that a prompt fits a model's context, and the plan of what goes
//! first.
//!
//! A [`Shortening`] is stored in an event and only ever grows, so all prompts after it begin alike,
//! and whoever replays the events gives the agents the same text. It counts bytes of the stored
//! texts: the rules by which [`shorten`] chose them may change.

use std::collections::BTreeMap;

use autoact_base::sentences::sentences;

use crate::history::{Step, Trajectory, Turn};

/// The last steps with an observation: what the group has just learned is shortened last.
const RECENT: usize = 2;

/// What remains of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bytes that stay, from the text's beginning.
    pub kept: u32,
    /// Whole sentences that are left out after them; 0: the text ends within a sentence.
    pub sentences: u32,
}

/// What the agents are not given of a history. Steps count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shortening {
    /// Steps that are left out whole, from the first on, with the reflections on them.
    pub left_out: u32,
    /// Observations of later steps that are cut.
    pub observations: BTreeMap<u32, Cut>,
    /// Thoughts of later steps that are cut: where the step that is waited for does not fit on its
    /// own.
    pub thoughts: BTreeMap<u32, Cut>,
}

impl Shortening {
    /// The history as the agents are given it. Each cut text says what is missing.
    pub fn apply(&self, history: &Trajectory) -> Trajectory {
        let mut number = 0;
        let mut turns = Vec::with_capacity(history.turns.len());
        for turn in &history.turns {
            number += u32::from(matches!(turn, Turn::Step(_)));
            if number <= self.left_out && self.left_out > 0 {
                continue;
            }
            turns.push(match turn {
                Turn::Step(step) => Turn::Step(self.cut_step(number, step)),
                Turn::Reflection(_) => turn.clone(),
            });
        }
        Trajectory {
            task_id: history.task_id.clone(),
            question: history.question.clone(),
            tools: history.tools.clone(),
            left_out: self.left_out,
            turns,
            context: history.context.clone(),
            recalled: history.recalled.clone(),
        }
    }

    fn cut_step(&self, number: u32, step: &Step) -> Step {
        let mut step = step.clone();
        if let Some(cut) = self.thoughts.get(&number) {
            step.thought = cut.of(&step.thought);
        }
        if let (Some(cut), Some(observation)) = (self.observations.get(&number), &mut step.observation) {
            *observation = cut.of(observation);
        }
        step
    }

    /// Whether it can follow `before` in a task with this history: it leaves out more, and nothing
    /// that is not there.
    pub(crate) fn check(&self, history: &Trajectory, before: &Shortening) -> Result<(), String> {
        let steps: Vec<&Step> = history.steps().collect();
        if self.left_out as usize > closed(history, &steps) {
            return Err(format!("it leaves out {} of {} finished steps", self.left_out, closed(history, &steps)));
        }
        let thought = |step: &Step| Some(step.thought.clone());
        let observation = |step: &Step| step.observation.clone();
        check_cuts(&self.observations, &steps, observation)?;
        check_cuts(&self.thoughts, &steps, thought)?;
        let grows = self.left_out >= before.left_out
            && self.goes_on(&before.observations, &self.observations)
            && self.goes_on(&before.thoughts, &self.thoughts);
        if self == before || !grows {
            return Err("it does not leave out more than before".to_owned());
        }
        Ok(())
    }

    /// Whether all that was cut is cut at least as short, or left out.
    fn goes_on(&self, before: &BTreeMap<u32, Cut>, now: &BTreeMap<u32, Cut>) -> bool {
        before.iter().all(|(step, cut)| *step <= self.left_out || now.get(step).is_some_and(|now| now.kept <= cut.kept))
    }

    fn make(&mut self, change: Change) {
        match change {
            Change::LeaveOut(steps) => {
                self.left_out = steps;
                self.observations.retain(|step, _| *step > steps);
                self.thoughts.retain(|step, _| *step > steps);
            }
            Change::Observation(step, cut) => drop(self.observations.insert(step, cut)),
            Change::Thought(step, cut) => drop(self.thoughts.insert(step, cut)),
        }
    }
}

impl Cut {
    /// What is shown of `text`: what stays of it, and a note on what does not.
    fn of(self, text: &str) -> String {
        let kept = text.get(..self.kept as usize).unwrap_or(text).trim_end();
        match (kept, self.sentences) {
            ("", _) => "(Left out.)".to_owned(),
            (kept, 0) => format!("{kept} (The rest is left out.)"),
            (kept, 1) => format!("{kept} (1 more sentence is left out.)"),
            (kept, more) => format!("{kept} ({more} more sentences are left out.)"),
        }
    }
}

/// Whether every cut is of a text that there is, and at one of its characters.
fn check_cuts(cuts: &BTreeMap<u32, Cut>, steps: &[&Step], text: impl Fn(&Step) -> Option<String>) -> Result<(), String> {
    for (number, cut) in cuts {
        let step = number.checked_sub(1).and_then(|at| steps.get(at as usize));
        let Some(text) = step.and_then(|step| text(step)) else { return Err(format!("step {number} has no such text")) };
        if !text.is_char_boundary(cut.kept as usize) {
            return Err(format!("it keeps {} bytes of the {} of step {number}", cut.kept, text.len()));
        }
    }
    Ok(())
}

/// One more thing to leave out.
#[derive(Debug, Clone, Copy)]
enum Change {
    Observation(u32, Cut),
    Thought(u32, Cut),
    LeaveOut(u32),
}

/// Leaves out more of `history` than `from` does, until its measure is within `budget`. If that
/// cannot be reached, the result is all that can be left out: no more than the question, the tools
/// and the step that waits for an agent stay.
///
/// The order: older observations lose whole sentences, the oldest first, down to their first
/// sentence; then older steps go, the oldest first; then the same happens to the last two steps
/// with an observation; the last observation is cut within a sentence, and the thought of the step
/// that waits is cut only if that step does not fit on its own.
///
/// A pure function: the same history, measure and budget give the same result. `measure` has to
/// grow with the length of the texts.
pub fn shorten(history: &Trajectory, from: &Shortening, measure: impl Fn(&Trajectory) -> usize, budget: usize) -> Shortening {
    let changes = Plan::new(history, from).changes;
    let after = |count: usize| {
        let mut shortening = from.clone();
        changes.iter().take(count).for_each(|change| shortening.make(*change));
        shortening
    };
    let fits = |count: usize| measure(&after(count).apply(history)) <= budget;
    // every change makes the history shorter: the fewest changes that are enough are found by
    // halving
    let (mut too_few, mut enough) = (0, changes.len());
    if fits(too_few) {
        return from.clone();
    }
    while enough - too_few > 1 {
        let middle = too_few + (enough - too_few) / 2;
        if fits(middle) {
            enough = middle;
        } else {
            too_few = middle;
        }
    }
    after(enough)
}

/// Steps that wait for nobody: all but the last, while that has no observation and no reflection.
fn closed(history: &Trajectory, steps: &[&Step]) -> usize {
    let open = history.open_step().is_some_and(|step| step.observation.is_none());
    steps.len() - usize::from(open)
}

/// All that can be left out, in order.
struct Plan<'a> {
    steps: Vec<&'a Step>,
    /// What is left out so far.
    state: Shortening,
    changes: Vec<Change>,
}

impl<'a> Plan<'a> {
    fn new(history: &'a Trajectory, from: &Shortening) -> Plan<'a> {
        let steps: Vec<&Step> = history.steps().collect();
        let closed = closed(history, &steps);
        let open = closed < steps.len();
        let mut plan = Plan { steps, state: from.clone(), changes: Vec::new() };
        let old = closed.saturating_sub(RECENT);
        (0..old).for_each(|at| plan.cut_sentences(at));
        (0..old).for_each(|at| plan.leave_out(at));
        (old..closed).for_each(|at| plan.cut_sentences(at));
        (old..closed.saturating_sub(1)).for_each(|at| plan.leave_out(at));
        if let Some(last) = closed.checked_sub(1) {
            plan.cut_observation(last);
            plan.leave_out(last);
        }
        if open {
            plan.cut_thought(closed);
        }
        plan
    }

    fn change(&mut self, change: Change) {
        self.state.make(change);
        self.changes.push(change);
    }

    fn leave_out(&mut self, at: usize) {
        let steps = number(at);
        if steps > self.state.left_out {
            self.change(Change::LeaveOut(steps));
        }
    }

    /// From the end of the observation, one sentence after the other but the first.
    fn cut_sentences(&mut self, at: usize) {
        let Some(text) = self.steps[at].observation.as_deref() else { return };
        let ends = sentence_ends(text);
        for (sentence, end) in ends.iter().enumerate().rev().skip(1) {
            self.cut(at, text, Cut { kept: count(*end), sentences: count(ends.len() - 1 - sentence) }, Change::Observation);
        }
    }

    /// What is left of the observation, by halves.
    fn cut_observation(&mut self, at: usize) {
        let Some(text) = self.steps[at].observation.as_deref() else { return };
        let first = sentence_ends(text).first().copied().unwrap_or_default();
        self.halve(at, text, first, Change::Observation);
    }

    fn cut_thought(&mut self, at: usize) {
        let text = self.steps[at].thought.as_str();
        self.halve(at, text, text.len(), Change::Thought);
    }

    fn halve(&mut self, at: usize, text: &str, mut kept: usize, change: fn(u32, Cut) -> Change) {
        while kept > 0 {
            kept = word_end(text, kept / 2);
            self.cut(at, text, Cut { kept: count(kept), sentences: 0 }, change);
        }
    }

    /// Unless nothing is gained by it: the note has a length too.
    fn cut(&mut self, at: usize, text: &str, cut: Cut, change: fn(u32, Cut) -> Change) {
        let number = number(at);
        let now = change(number, cut);
        let cuts = if matches!(now, Change::Thought(..)) { &self.state.thoughts } else { &self.state.observations };
        let shown = cuts.get(&number).map_or(text.len(), |cut| cut.of(text).len());
        if number > self.state.left_out && cut.of(text).len() < shown {
            self.change(now);
        }
    }
}

/// The step at this place, counted from 1.
fn number(at: usize) -> u32 {
    count(at + 1)
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Where each sentence ends, in bytes.
fn sentence_ends(text: &str) -> Vec<usize> {
    let mut from = 0;
    let end = |sentence: &str| {
        from += text[from..].find(sentence).unwrap_or_default() + sentence.len();
        from
    };
    sentences(text).into_iter().map(end).collect()
}

/// The end of the last whole word within the first `most` bytes; where there is none, of the last
/// whole character.
fn word_end(text: &str, most: usize) -> usize {
    let head = &text[..text.floor_char_boundary(most)];
    match head.rfind(char::is_whitespace) {
        Some(at) if at > 0 => at,
        _ => head.len(),
    }
}

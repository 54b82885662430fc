//! A task: the fold of its events.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use crate::bounds::{MAX_DETAIL_BYTES, MAX_OBSERVATION_BYTES, MAX_OBSERVED_BYTES, MAX_PARAMS_BYTES, cut};
use crate::call::{CallId, CallKind, Role};
use crate::citation::{Citation, citations};
use crate::confidence::{Evidence, Likelihood};
use crate::context::TaskContext;
use crate::control::{ApprovalPolicy, Holds, InputGiven, InputRequested, Origin};
use crate::digest::Digest;
use crate::event::{Event, EventBody, FinishReason, Finished, Observation, Submitted};
use crate::fold_error::FoldError;
use crate::history::{Action, Judgement, Reflection, Step, Trajectory, Turn, Verdict};
use crate::id::TaskId;
use crate::limits::{Limits, Sampling};
use crate::retry::is_history;
use crate::shortening::Shortening;
use crate::source::bound_sources;
use crate::tenant::TaskKey;
use crate::tool::{Effect, ToolSpec};
use crate::tool_choice::ToolChoice;
use crate::usage::Usage;

/// Stands before an observation whose action is the same as the one before: the group reads it and
/// tries something else.
pub const REPEATED_NOTE: &str = "(Same action as before; try another.)";

/// Where a task stands: what it waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// For Plan-Agent.
    Planning,
    /// For Tool-Agent's parameters of the chosen tool.
    Parameterizing,
    /// For the tool's observation.
    Acting,
    /// For Reflect-Agent's verdict on an answer.
    Reflecting,
    /// Reflect-Agent said "right" of an answer, or of there being none: for the end.
    Approved,
    /// For nothing.
    Finished,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Phase::Planning => "planning",
            Phase::Parameterizing => "parameterizing",
            Phase::Acting => "acting",
            Phase::Reflecting => "reflecting",
            Phase::Approved => "approved",
            Phase::Finished => "finished",
        }
    }
}

/// A task as its events say it is. Made and changed by events alone, so that whoever reads the same
/// events has the same task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    key: TaskKey,
    trajectory: Trajectory,
    shortening: Shortening,
    limits: Limits,
    sampling: Sampling,
    labels: BTreeMap<String, String>,
    tool_choice: Option<ToolChoice>,
    conversation: String,
    /// What is remembered of the conversation was looked up.
    recalled: bool,
    request: Option<Digest>,
    trace_id: String,
    submitted_at: SystemTime,
    started_at: Option<SystemTime>,
    attempt: u32,
    fruitless: u32,
    /// The last holder gave the task back; whether the open action may have run by then.
    released: Option<bool>,
    steps: u32,
    wrong: u32,
    prompt_tokens: u64,
    completion_tokens: u64,
    likelihood: Likelihood,
    min_confidence: Option<f64>,
    /// The latest answer.
    answer: String,
    /// The judged answer with the highest confidence so far.
    surest: Option<(String, f64)>,
    interrupted: bool,
    approval: ApprovalPolicy,
    /// The task whose history it goes on with.
    origin: Option<Box<Origin>>,
    /// Who submitted it.
    by: String,
    /// Copies of that task's events that have yet to come.
    to_copy: u32,
    holds: Holds,
    /// What a person said of the open step.
    given: Option<InputGiven>,
    /// Tools whose calls a person has approved for the whole task.
    approved_tools: BTreeSet<String>,
    /// The group has read what a tool returned.
    untrusted: bool,
    finished: Option<(Finished, SystemTime)>,
    last_index: u64,
    last_sequence: u64,
    last_digest: Option<Digest>,
}

impl Task {
    /// The task that a `Submitted` event begins.
    pub fn begin(event: &Event) -> Result<Task, FoldError> {
        let EventBody::Submitted(submitted) = &event.body else {
            return Err(FoldError::NotSubmitted { found: event.body.name() });
        };
        if event.index != 1 {
            return Err(FoldError::Gap { expected: 1, found: event.index });
        }
        let Submitted {
            question,
            tools,
            tool_choice,
            limits,
            sampling,
            labels,
            conversation,
            request,
            context,
            trace_id,
            min_confidence,
            approval,
            origin,
            by,
        } = submitted.clone();
        Ok(Task {
            trajectory: Trajectory {
                task_id: event.task_id.to_string(),
                question,
                tools,
                left_out: 0,
                turns: Vec::new(),
                context: *context,
                recalled: Vec::new(),
            },
            shortening: Shortening::default(),
            key: event.key(),
            limits,
            sampling,
            labels,
            tool_choice,
            conversation,
            recalled: false,
            request,
            trace_id,
            submitted_at: event.time,
            started_at: None,
            attempt: 0,
            fruitless: 0,
            released: None,
            steps: 0,
            wrong: 0,
            prompt_tokens: 0,
            completion_tokens: 0,
            likelihood: Likelihood::default(),
            min_confidence,
            answer: String::new(),
            surest: None,
            interrupted: false,
            approval,
            to_copy: origin.as_ref().map_or(0, |origin| origin.events),
            origin,
            by,
            holds: Holds::default(),
            given: None,
            approved_tools: BTreeSet::new(),
            untrusted: false,
            finished: None,
            last_index: 1,
            last_sequence: event.sequence,
            last_digest: event.digest,
        })
    }

    /// The task that a whole trajectory folds to.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Result<Task, FoldError> {
        let mut events = events.into_iter();
        let mut task = Task::begin(events.next().ok_or(FoldError::Empty)?)?;
        for event in events {
            task.apply(event)?;
        }
        Ok(task)
    }

    /// Whether `event` can follow now.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn check(&self, event: &Event) -> Result<(), FoldError> {
        self.check_position(event)?;
        let phase = self.phase();
        let unexpected = || Err(FoldError::Unexpected { event: event.body.name(), phase: self.standing() });
        match (&event.body, phase) {
            (EventBody::Unknown(unknown), _) if unknown.needed => Err(FoldError::Newer { index: event.index, version: unknown.version }),
            (EventBody::Unknown(_), _) => Ok(()),
            (EventBody::Submitted(_), _) | (_, Phase::Finished) => unexpected(),
            (EventBody::Finished(finished), _) => self.check_end(finished),
            (EventBody::Paused(_), _) if !self.is_paused() => Ok(()),
            (EventBody::Resumed(_), _) if self.is_paused() => Ok(()),
            (EventBody::InputGiven(given), _) => match self.input_required() {
                Some(asked) if (asked.step, asked.kind) == (given.step, given.kind) => Ok(()),
                _ => unexpected(),
            },
            _ if self.is_held() => unexpected(),
            (body, _) if self.to_copy > 0 && !is_history(body) => unexpected(),
            (EventBody::InputRequested(asked), Phase::Acting) if asked.step == self.steps && self.given.is_none() => Ok(()),
            (EventBody::Started(_) | EventBody::Released(_), _) => Ok(()),
            (EventBody::Shortened(shortened), Phase::Planning | Phase::Parameterizing | Phase::Reflecting) => {
                shortened.shortening.check(&self.trajectory, &self.shortening).map_err(FoldError::Shortening)
            }
            (EventBody::Recalled(_), _) if self.recalls() || self.copies_recalled() => Ok(()),
            (EventBody::Thought(thought), Phase::Planning) => match self.trajectory.tool(&thought.tool) {
                Some(_) => Ok(()),
                None => Err(FoldError::UnknownTool { tool: thought.tool.clone() }),
            },
            (EventBody::Action(action), Phase::Parameterizing) => match self.trajectory.open_step() {
                Some(step) if step.tool == action.tool => Ok(()),
                Some(step) => Err(FoldError::OtherTool { expected: step.tool.clone(), found: action.tool.clone() }),
                None => unexpected(),
            },
            (EventBody::Observation(_), Phase::Acting) | (EventBody::Reflection(_), Phase::Reflecting) => Ok(()),
            _ => unexpected(),
        }
    }

    fn check_end(&self, finished: &Finished) -> Result<(), FoldError> {
        let phase = self.phase();
        let without = phase == Phase::Approved && self.no_answer().is_some();
        let approved = phase == Phase::Approved && finished.reason == FinishReason::Approved;
        let fits = match finished.reason {
            FinishReason::Other => true,
            FinishReason::NoAnswer => without && !finished.approved,
            _ => finished.approved == approved && !(approved && without),
        };
        if fits { Ok(()) } else { Err(FoldError::Approval { approved: finished.approved, reason: finished.reason.as_str() }) }
    }

    /// Takes in the next event; one that does not fit leaves the task as it was.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.check(event)?;
        match &event.body {
            EventBody::Unknown(_) | EventBody::Submitted(_) => {}
            EventBody::Started(started) => {
                if self.started_at.is_none() {
                    self.started_at = Some(event.time);
                    self.holds.begin();
                }
                // whoever held the lease before may have begun to run the open action, unless it
                // says that it did not
                let acting = self.phase() == Phase::Acting;
                self.attempt = started.attempt;
                let released = self.released.take();
                // one that gave the task back did not crash
                self.fruitless += u32::from(released.is_none());
                self.interrupted |= acting && self.attempt > 1 && released.unwrap_or(true);
            }
            EventBody::Released(released) => self.released = Some(released.may_have_run),
            EventBody::Paused(_) => {
                // whoever runs the task lets go of it, maybe in the middle of the call
                let acting = self.phase() == Phase::Acting;
                self.released.get_or_insert(acting);
                self.holds.paused = true;
                self.holds.changed(event.time);
            }
            EventBody::Resumed(_) => {
                self.holds.paused = false;
                self.holds.changed(event.time);
            }
            EventBody::InputRequested(asked) => {
                // nothing was run
                self.released = Some(false);
                self.holds.asked = Some(asked.clone());
                self.holds.changed(event.time);
            }
            EventBody::InputGiven(given) => {
                let asked = self.holds.asked.take();
                self.holds.changed(event.time);
                if given.approved && given.for_task {
                    self.approved_tools.extend(asked.map(|asked| asked.tool));
                }
                self.given = Some(given.clone());
            }
            EventBody::Shortened(shortened) => self.shortening = shortened.shortening.clone(),
            EventBody::Recalled(recalled) => {
                self.recalled = true;
                self.trajectory.recalled.clone_from(&recalled.items);
                // answers of earlier tasks, which may repeat what tools returned to them
                self.untrusted |= !recalled.items.is_empty();
            }
            EventBody::Thought(thought) => {
                self.trajectory.turns.push(Turn::Step(Step {
                    thought: thought.thought.clone(),
                    tool: thought.tool.clone(),
                    params: None,
                    observation: None,
                    artifacts: Vec::new(),
                    sources: Vec::new(),
                }));
                self.steps += 1;
            }
            EventBody::Action(action) => {
                if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
                    step.params = Some(action.params.clone());
                }
                if let Some(tool) = self.trajectory.tool(&action.tool).filter(|tool| tool.is_answer()) {
                    self.answer = tool.answer(&action.params);
                }
            }
            EventBody::Observation(observation) => {
                if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
                    step.observation = Some(observation.text.clone());
                    step.artifacts = event.artifacts.clone();
                    step.sources = observation.sources.clone();
                }
                self.interrupted = false;
                self.given = None;
                self.untrusted |= observation.untrusted;
            }
            EventBody::Reflection(reflection) => {
                self.wrong += u32::from(reflection.verdict == Verdict::Wrong);
                if let Some(confidence) = reflection.confidence
                    && self.no_answer().is_none()
                    && self.surest.as_ref().is_none_or(|(_, most)| confidence >= *most)
                {
                    self.surest = Some((self.answer.clone(), confidence));
                }
                self.trajectory.turns.push(Turn::Reflection(reflection.clone()));
            }
            EventBody::Finished(finished) => self.finished = Some((finished.clone(), event.time)),
        }
        // a later program got further with an event that this one cannot read
        let progress =
            !matches!(event.body, EventBody::Started(_) | EventBody::Released(_) | EventBody::Shortened(_) | EventBody::Recalled(_));
        if progress {
            self.fruitless = 0;
        }
        if is_history(&event.body) {
            self.to_copy = self.to_copy.saturating_sub(1);
        }
        let spoke = match event.body {
            EventBody::Thought(_) => Some(Role::Plan),
            EventBody::Action(_) => Some(Role::Tool),
            _ => None,
        };
        if let Some(role) = spoke {
            // words without a usage are as unknown as those of a model that reports nothing
            self.likelihood.add(role, event.usage.as_ref().unwrap_or(&Usage::default()));
        }
        if let Some(usage) = &event.usage {
            self.prompt_tokens = self.prompt_tokens.saturating_add(u64::from(usage.prompt_tokens));
            self.completion_tokens = self.completion_tokens.saturating_add(u64::from(usage.completion_tokens));
        }
        self.last_index = event.index;
        self.last_sequence = self.last_sequence.max(event.sequence);
        self.last_digest = event.digest;
        Ok(())
    }

    /// The last event was applied before it was stored; this is its place, and the hash of its bytes.
    pub fn stored(&mut self, sequence: u64, digest: Option<Digest>) {
        self.last_sequence = self.last_sequence.max(sequence);
        self.last_digest = digest;
    }

    /// Takes in a copy of an event of the task's origin, before it is known how many there are.
    pub(crate) fn apply_copy(&mut self, event: &Event) -> Result<(), FoldError> {
        self.to_copy = self.to_copy.max(1);
        self.apply(event)
    }

    fn check_position(&self, event: &Event) -> Result<(), FoldError> {
        if event.task_id != self.key.id || event.tenant != self.key.tenant {
            return Err(FoldError::WrongTask { expected: self.key.clone(), found: event.key() });
        }
        if event.index != self.last_index + 1 {
            return Err(FoldError::Gap { expected: self.last_index + 1, found: event.index });
        }
        // 0: not on the bus yet
        if event.sequence != 0 && event.sequence <= self.last_sequence {
            return Err(FoldError::Sequence { last: self.last_sequence, found: event.sequence });
        }
        if let (Some(stored), Some(previous)) = (self.last_digest, event.previous)
            && stored != previous
        {
            return Err(FoldError::Chain { index: event.index });
        }
        Ok(())
    }

    fn is_terminal(&self, tool: &str) -> bool {
        self.trajectory.tool(tool).is_some_and(ToolSpec::is_terminal)
    }

    /// What the task waits for.
    pub fn phase(&self) -> Phase {
        if self.finished.is_some() {
            return Phase::Finished;
        }
        match self.trajectory.turns.last() {
            None => Phase::Planning,
            Some(Turn::Reflection(Reflection { verdict: Verdict::Right, .. })) => Phase::Approved,
            Some(Turn::Reflection(Reflection { verdict: Verdict::Wrong, .. })) => Phase::Planning,
            Some(Turn::Step(Step { params: None, .. })) => Phase::Parameterizing,
            Some(Turn::Step(Step { observation: Some(_), .. })) => Phase::Planning,
            Some(Turn::Step(step)) if self.is_terminal(&step.tool) => Phase::Reflecting,
            Some(Turn::Step(_)) => Phase::Acting,
        }
    }

    /// Whether `action` is the same, parameters included, as the one of the step before the open
    /// one.
    pub fn repeats(&self, action: &Action) -> bool {
        let open = usize::from(!matches!(self.phase(), Phase::Planning | Phase::Approved | Phase::Finished));
        let before = self.trajectory.steps().rev().nth(open);
        before.and_then(Step::action).is_some_and(|before| before == *action)
    }

    /// The observation of the open action, with the note for the group if the action is a
    /// repetition. What is longer than an event may hold is cut: the text, and its sources.
    pub fn observe(&self, seen: Observation) -> Observation {
        let Observation { text, is_error, repeated: _, truncated, sources, untrusted } = seen;
        let action = self.trajectory.open_step().and_then(Step::action);
        let repeated = action.is_some_and(|action| self.repeats(&action));
        let text = if repeated { format!("{REPEATED_NOTE} {text}") } else { text };
        let (text, cut) = cut(text, MAX_OBSERVATION_BYTES);
        let sources = bound_sources(sources, MAX_OBSERVED_BYTES - text.len());
        Observation { text, is_error, repeated, truncated: truncated || cut, sources, untrusted }
    }

    /// The task's next event, as `writer` appends it now.
    pub fn next_event(&self, time: SystemTime, writer: &str, body: EventBody) -> Event {
        let epoch = match &body {
            EventBody::Started(started) => u64::from(started.attempt),
            _ => self.epoch(),
        };
        Event { epoch, previous: self.last_digest, ..Event::new(&self.key, self.next_index(), time, writer, body) }
    }

    /// Reflect-Agent's judgement as the task takes it: with its confidence, and an answer approved
    /// only if that is high enough. That there is no answer claims nothing, so it needs no
    /// confidence. `usage` is what the judgement cost.
    pub fn judge(&self, judgement: Judgement, usage: &Usage) -> Reflection {
        let Judgement { mut reflection, calibration } = judgement;
        let evidence = self.likelihood.evidence(reflection.log_odds, usage);
        reflection.confidence = calibration.as_ref().zip(evidence).map(|(calibration, evidence)| calibration.confidence(&evidence));
        let known = calibration.filter(|_| reflection.confidence.is_some()).map(|calibration| calibration.threshold);
        reflection.threshold = self.min_confidence.or(known).filter(|_| self.no_answer().is_none());
        // an unknown confidence reaches nothing above 0
        if reflection.threshold.is_some_and(|least| reflection.confidence.unwrap_or(0.0) < least) {
            reflection.verdict = Verdict::Wrong;
        }
        reflection
    }

    /// How the task ends unapproved: with the best answer so far, and what it rests on.
    pub fn finish(&self, reason: FinishReason, detail: impl Into<String>) -> Finished {
        // an answer stored before there was a bound may be longer
        let (answer, _) = cut(self.best_answer().to_owned(), MAX_PARAMS_BYTES);
        let (detail, _) = cut(detail.into(), MAX_DETAIL_BYTES);
        let open_effect = self.interrupted.then(|| self.side_effect()).flatten();
        Finished { answer, approved: false, reason, detail, citations: self.citations(self.best_answer()), open_effect, by: String::new() }
    }

    /// Whether nothing is begun until a person says something.
    pub fn is_held(&self) -> bool {
        self.holds.is_held()
    }

    /// Whether a client has stopped it for a while.
    pub fn is_paused(&self) -> bool {
        self.holds.paused
    }

    /// What a person is asked for.
    pub fn input_required(&self) -> Option<&InputRequested> {
        self.holds.asked.as_ref()
    }

    /// What a person said of the open step.
    pub fn input_given(&self) -> Option<&InputGiven> {
        self.given.as_ref()
    }

    /// How long it was held back since it was first taken up, by `now`. Its bound on time does not
    /// count that.
    pub fn waited(&self, now: SystemTime) -> Duration {
        self.holds.waited(now)
    }

    /// Which actions wait for a person's approval.
    pub fn approval(&self) -> ApprovalPolicy {
        self.approval
    }

    /// Whether an action waits for a person's approval, unless it has one.
    pub fn needs_approval(&self, action: &Action) -> bool {
        let tool = self.trajectory.tool(&action.tool);
        let effect = tool.map_or(Effect::SideEffect, |tool| tool.effect);
        let policy = match self.approval {
            ApprovalPolicy::Tools => false,
            ApprovalPolicy::Untrusted => self.untrusted,
            ApprovalPolicy::Effects => true,
        };
        let needed = tool.is_some_and(ToolSpec::needs_approval) || (policy && effect != Effect::ReadOnly);
        needed && !self.approved_tools.contains(&action.tool)
    }

    /// The task whose history it goes on with.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_deref()
    }

    /// How many copies of the origin's events have yet to come. Nobody takes the task up before.
    pub fn to_copy(&self) -> u32 {
        self.to_copy
    }

    fn copies_recalled(&self) -> bool {
        self.to_copy > 0 && !self.recalled && self.trajectory.turns.is_empty()
    }

    /// Where the task stands, for messages.
    fn standing(&self) -> &'static str {
        match self.phase() {
            Phase::Finished => Phase::Finished.as_str(),
            _ if self.is_paused() => "paused",
            _ if self.is_held() => "waiting for a person",
            _ if self.to_copy > 0 => "copying its history",
            phase => phase.as_str(),
        }
    }

    /// The step that waits for the outcome of a side effect.
    pub fn side_effect(&self) -> Option<u32> {
        if self.phase() != Phase::Acting {
            return None;
        }
        let tool = &self.trajectory.open_step()?.tool;
        let effect = self.trajectory.tool(tool).map_or(Effect::SideEffect, |tool| tool.effect);
        (effect == Effect::SideEffect).then_some(self.steps)
    }

    /// Whether any of its tools changes the world.
    pub fn has_effects(&self) -> bool {
        self.trajectory.tools.iter().any(|tool| tool.effect != Effect::ReadOnly)
    }

    /// The passages that one of the task's answers rests on, from the history up to the last step
    /// that gave it.
    fn citations(&self, answer: &str) -> Vec<Citation> {
        let gives = |turn: &Turn| match turn {
            Turn::Step(Step { tool, params: Some(params), .. }) => {
                self.trajectory.tool(tool).is_some_and(|tool| tool.is_answer() && tool.answer(params) == answer)
            }
            _ => false,
        };
        match self.trajectory.turns.iter().rposition(gives) {
            Some(last) => citations(&self.trajectory.question, &self.trajectory.turns[..=last], answer),
            None => Vec::new(),
        }
    }

    /// The task's id.
    pub fn id(&self) -> &TaskId {
        &self.key.id
    }

    /// The task's name: whose it is, and its id.
    pub fn key(&self) -> &TaskKey {
        &self.key
    }

    /// How its tools were chosen. `None`: there was nothing to choose.
    pub fn tool_choice(&self) -> Option<&ToolChoice> {
        self.tool_choice.as_ref()
    }

    /// The conversation it belongs to; empty: none.
    pub fn conversation(&self) -> &str {
        &self.conversation
    }

    /// Whether what is remembered of its conversation is to be looked up now: before the first plan,
    /// once. A task without a conversation recalls nothing, ever.
    pub fn recalls(&self) -> bool {
        let begun = self.started_at.is_some() && self.finished.is_none();
        begun && !self.conversation.is_empty() && !self.recalled && self.trajectory.turns.is_empty()
    }

    /// SHA-256 of the request that began it. `None` before schema version 2.
    pub fn request(&self) -> Option<Digest> {
        self.request
    }

    /// What the client said beside the question.
    pub fn context(&self) -> &TaskContext {
        &self.trajectory.context
    }

    /// The name of who submitted it; empty: it is not known.
    pub fn submitted_by(&self) -> &str {
        &self.by
    }

    /// The trace that its request came in: 32 hexadecimal digits, or empty.
    pub fn trace_id(&self) -> &str {
        &self.trace_id
    }

    /// How often the task has been taken up since its last progress by somebody who then vanished,
    /// the present holder included.
    pub fn fruitless_attempts(&self) -> u32 {
        self.fruitless
    }

    /// The number of the present holder of the lease; 0 before the first.
    pub fn epoch(&self) -> u64 {
        u64::from(self.attempt)
    }

    /// SHA-256 of the stored bytes of the last event: what the next one names as `previous`. `None`
    /// while it is not stored.
    pub fn last_digest(&self) -> Option<Digest> {
        self.last_digest
    }

    /// The call that the task makes next, if it makes one.
    pub fn call(&self) -> Option<CallId> {
        let (kind, step) = match self.phase() {
            Phase::Planning => (CallKind::Speak(Role::Plan), self.steps + 1),
            Phase::Parameterizing => (CallKind::Speak(Role::Tool), self.steps),
            Phase::Acting => (CallKind::Execute, self.steps),
            Phase::Reflecting => (CallKind::Speak(Role::Reflect), self.steps),
            Phase::Approved | Phase::Finished => return None,
        };
        Some(CallId { kind, step, round: self.wrong })
    }

    /// Question, tools and the whole history.
    pub fn trajectory(&self) -> &Trajectory {
        &self.trajectory
    }

    /// What the agents are given of [`Task::trajectory`]: all of it, unless it was shortened. Tools
    /// always get the whole.
    pub fn shown(&self) -> Cow<'_, Trajectory> {
        if self.shortening == Shortening::default() {
            return Cow::Borrowed(&self.trajectory);
        }
        Cow::Owned(self.shortening.apply(&self.trajectory))
    }

    /// What the agents are not given.
    pub fn shortening(&self) -> &Shortening {
        &self.shortening
    }

    /// Its bounds.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How the models decode.
    pub fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// The client's own notes.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// When it was accepted.
    pub fn submitted_at(&self) -> SystemTime {
        self.submitted_at
    }

    /// When a gateway first took it up.
    pub fn started_at(&self) -> Option<SystemTime> {
        self.started_at
    }

    /// How often the task has been taken up; 0 before the first time.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Planning loops begun.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Verdicts "wrong" so far.
    pub fn wrong_verdicts(&self) -> u32 {
        self.wrong
    }

    /// Prompt tokens over all agents.
    pub fn prompt_tokens(&self) -> u64 {
        self.prompt_tokens
    }

    /// Completion tokens over all agents.
    pub fn completion_tokens(&self) -> u64 {
        self.completion_tokens
    }

    /// What is missing, where the last step says that there is no answer. Whether Reflect-Agent
    /// agrees is another matter: in [`Phase::Approved`] it does.
    pub fn no_answer(&self) -> Option<&str> {
        let step = self.trajectory.steps().next_back()?;
        let tool = self.trajectory.tool(&step.tool)?;
        step.params.as_deref().filter(|_| tool.is_no_answer())
    }

    /// The answer that the task ends with if it ends now: the approved one, else the one with the
    /// highest confidence, else the latest. Empty: there is none. That there is no answer is none.
    pub fn best_answer(&self) -> &str {
        match &self.surest {
            Some((answer, _)) if !self.is_approved() => answer,
            _ => &self.answer,
        }
    }

    fn is_approved(&self) -> bool {
        matches!(self.trajectory.turns.last(), Some(Turn::Reflection(Reflection { verdict: Verdict::Right, .. })))
    }

    /// The confidence in [`best_answer`](Self::best_answer), where it was judged with one.
    pub fn confidence(&self) -> Option<f64> {
        match self.trajectory.turns.last() {
            Some(Turn::Reflection(Reflection { verdict: Verdict::Right, confidence, .. })) => *confidence,
            _ => self.surest.as_ref().map(|(_, confidence)| *confidence),
        }
    }

    /// The confidence that the client asks of an approval.
    pub fn min_confidence(&self) -> Option<f64> {
        self.min_confidence
    }

    /// How sure the agents were of the answer that is judged next, given the log-odds of its
    /// verdict and what the judgement cost.
    pub fn evidence(&self, log_odds: Option<f64>, judgement: &Usage) -> Option<Evidence> {
        self.likelihood.evidence(log_odds, judgement)
    }

    /// Whether the lease changed hands between the open action and its observation: the action may
    /// have run.
    pub fn may_have_run(&self) -> bool {
        self.interrupted
    }

    /// How it ended, once it has.
    pub fn finished(&self) -> Option<&Finished> {
        self.finished.as_ref().map(|(finished, _)| finished)
    }

    /// When it ended.
    pub fn finished_at(&self) -> Option<SystemTime> {
        self.finished.as_ref().map(|(_, at)| *at)
    }

    /// The index of the next event.
    pub fn next_index(&self) -> u64 {
        self.last_index + 1
    }

    /// The bus sequence of the last event; 0 if it is not on the bus yet.
    pub fn last_sequence(&self) -> u64 {
        self.last_sequence
    }
}

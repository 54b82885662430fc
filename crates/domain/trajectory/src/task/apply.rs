//! What an event changes. [`Task::check`] has said before that it can follow.

use super::{Phase, Task};
use crate::artifact::Artifact;
use crate::call::Role;
use crate::confidence::Likelihood;
use crate::digest::Digest;
use crate::event::{Event, EventBody, Observation, Thought};
use crate::fold_error::FoldError;
use crate::history::{Action, Reflection, Step, Turn, Verdict};
use crate::recalled::Recalled;
use crate::retry::is_history;
use crate::usage::Usage;

impl Task {
    /// Takes in the next event; one that does not fit leaves the task as it was.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub fn apply(&mut self, event: &Event) -> Result<(), FoldError> {
        self.check(event)?;
        self.take_in(event);
        // a later program got further with an event that this one cannot read
        let progress =
            !matches!(event.body, EventBody::Started(_) | EventBody::Released(_) | EventBody::Shortened(_) | EventBody::Recalled(_));
        if progress {
            self.lease.progress();
        }
        if is_history(&event.body) {
            self.to_copy = self.to_copy.saturating_sub(1);
        }
        self.count_words(event);
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

    fn take_in(&mut self, event: &Event) {
        let acting = self.phase() == Phase::Acting;
        match &event.body {
            EventBody::Unknown(_) | EventBody::Submitted(_) => {}
            EventBody::Started(started) => {
                if self.started_at.is_none() {
                    self.started_at = Some(event.time);
                    self.control.begin();
                }
                self.lease.take_up(started.attempt, acting);
            }
            EventBody::Released(released) => self.lease.give_back(released.may_have_run),
            EventBody::Paused(_) => {
                self.lease.let_go(acting);
                self.control.pause(event.time);
            }
            EventBody::Resumed(_) => self.control.resume(event.time),
            EventBody::InputRequested(asked) => {
                // nothing was run
                self.lease.give_back(false);
                self.control.ask(asked, event.time);
            }
            EventBody::InputGiven(given) => self.control.give(given, event.time),
            EventBody::Shortened(shortened) => self.shortening = shortened.shortening.clone(),
            EventBody::Recalled(recalled) => self.remember(recalled),
            EventBody::Thought(thought) => self.begin_step(thought),
            EventBody::Action(action) => self.act(action),
            EventBody::Observation(observation) => self.learn(observation, &event.artifacts),
            EventBody::Reflection(reflection) => self.reflect(reflection),
            EventBody::Finished(finished) => self.finished = Some((finished.clone(), event.time)),
        }
    }

    fn remember(&mut self, recalled: &Recalled) {
        self.recalled = true;
        self.trajectory.recalled.clone_from(&recalled.items);
        // answers of earlier tasks, which may repeat what tools returned to them
        self.control.read(!recalled.items.is_empty());
    }

    fn begin_step(&mut self, thought: &Thought) {
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

    fn act(&mut self, action: &Action) {
        if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
            step.params = Some(action.params.clone());
        }
        if let Some(tool) = self.trajectory.tool(&action.tool).filter(|tool| tool.is_answer()) {
            self.answer = tool.answer(&action.params);
        }
    }

    fn learn(&mut self, observation: &Observation, artifacts: &[Artifact]) {
        if let Some(Turn::Step(step)) = self.trajectory.turns.last_mut() {
            step.observation = Some(observation.text.clone());
            step.artifacts = artifacts.to_vec();
            step.sources = observation.sources.clone();
        }
        self.lease.observed();
        self.control.end_step();
        self.control.read(observation.untrusted);
    }

    fn reflect(&mut self, reflection: &Reflection) {
        self.wrong += u32::from(reflection.verdict == Verdict::Wrong);
        if let Some(confidence) = reflection.confidence
            && self.no_answer().is_none()
            && self.surest.as_ref().is_none_or(|(_, most)| confidence > *most)
        {
            self.surest = Some((self.answer.clone(), confidence));
        }
        self.trajectory.turns.push(Turn::Reflection(reflection.clone()));
        if self.begins_anew() {
            // its words owe nothing to those of the attempts before
            self.likelihood = Likelihood::default();
        } else {
            self.likelihood.judged();
        }
    }

    /// How likely the agents' words were, and how many tokens they took.
    fn count_words(&mut self, event: &Event) {
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
    }
}

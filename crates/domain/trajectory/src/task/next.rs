//! The next call, and the next event: what of it the history decides.

use std::time::SystemTime;

use super::{Phase, Task};
use crate::bounds::{MAX_DETAIL_BYTES, MAX_OBSERVATION_BYTES, MAX_OBSERVED_BYTES, MAX_PARAMS_BYTES, cut};
use crate::call::{CallId, CallKind, Role};
use crate::event::{Event, EventBody, FinishReason, Finished, Observation};
use crate::history::{Action, Judgement, Reflection, Step, Verdict};
use crate::source::bound_sources;
use crate::usage::Usage;

/// Stands before an observation whose action is the same as the one before: the group reads it and
/// tries something else.
pub const REPEATED_NOTE: &str = "(Same action as before; try another.)";

impl Task {
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

    /// The task's next event, as `writer` appends it now.
    pub fn next_event(&self, time: SystemTime, writer: &str, body: EventBody) -> Event {
        let epoch = match &body {
            EventBody::Started(started) => u64::from(started.attempt),
            _ => self.epoch(),
        };
        Event { epoch, previous: self.last_digest, ..Event::new(&self.key, self.next_index(), time, writer, body) }
    }

    /// The index of the next event.
    pub fn next_index(&self) -> u64 {
        self.last_index + 1
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

    /// Reflect-Agent's judgement as the task takes it: with its confidence, and an answer approved
    /// only if that is high enough. That there is no answer claims nothing, so it needs no
    /// confidence, unless an earlier attempt had an answer: then it has to be as sure as that. Where
    /// the client asks for a confidence of 0, the verdict alone decides.
    /// `usage` is what the judgement cost.
    pub fn judge(&self, judgement: Judgement, usage: &Usage) -> Reflection {
        let Judgement { mut reflection, calibration } = judgement;
        reflection.next_attempt =
            self.next_attempt.or(calibration.as_ref().map(|calibration| calibration.next_attempt)).unwrap_or_default();
        reflection.confidence = calibration.as_ref().and_then(|calibration| {
            let evidence = self.evidence(reflection.log_odds, usage)?;
            Some(calibration.confidence(&evidence))
        });
        let known = calibration.filter(|_| reflection.confidence.is_some()).map(|calibration| calibration.threshold);
        reflection.threshold = match self.no_answer() {
            None => self.min_confidence.or(known),
            Some(_) => self.surest.as_ref().map(|(_, confidence)| *confidence).filter(|_| self.min_confidence != Some(0.0)),
        };
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
        let open_effect = self.may_have_run().then(|| self.side_effect()).flatten();
        Finished { answer, approved: false, reason, detail, citations: self.citations(self.best_answer()), open_effect, by: String::new() }
    }
}

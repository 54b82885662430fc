//! Which event can follow now.

use super::{Phase, Task};
use crate::event::{Event, EventBody, FinishReason, Finished};
use crate::fold_error::FoldError;
use crate::retry::is_history;

impl Task {
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
            (EventBody::InputRequested(asked), Phase::Acting) if asked.step == self.steps && self.input_given().is_none() => Ok(()),
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
}

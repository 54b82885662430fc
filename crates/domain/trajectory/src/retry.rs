//! Retrying from a step: which events of a task another one shares.

use crate::control::Origin;
use crate::event::{Event, EventBody};
use crate::fold_error::FoldError;
use crate::task::{Phase, Task};
use crate::usage::Usage;

/// A task that shares the beginning of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Shared<'a> {
    /// Where its history comes from.
    pub origin: Origin,
    /// The events that are copied, in order: what was recalled, thoughts, actions, observations and
    /// reflections.
    pub events: Vec<&'a Event>,
}

/// Why a task cannot be retried from a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotShared {
    /// The task has fewer steps.
    #[error("the task has {steps} step(s); it can be retried from step 1 to {}", steps + 1)]
    NoStep {
        /// Its steps.
        steps: u32,
    },
    /// The last step that would be shared waits for something.
    #[error("step {step} has no outcome; retry from it, or from one before")]
    Open {
        /// The step.
        step: u32,
    },
    /// Nothing would be left to do: the shared history ends with an approval.
    #[error("the history up to there ends with an approved answer; retry from step {step}, or from one before")]
    Approved {
        /// The step with the answer.
        step: u32,
    },
    /// The events are no task.
    #[error(transparent)]
    Fold(#[from] FoldError),
}

/// What a task that begins anew at step `from` (1: at the beginning) shares of the task that these
/// events fold to.
///
/// # Errors
/// There is no such step, or the history before it does not end where a group can go on.
pub fn shared(events: &[Event], from: u32) -> Result<Shared<'_>, NotShared> {
    let whole = Task::fold(events)?;
    let none = NotShared::NoStep { steps: whole.steps() };
    let Some(steps) = from.checked_sub(1).filter(|steps| *steps <= whole.steps()) else { return Err(none) };
    let mut copied = Vec::new();
    let mut begun = 0;
    for event in events {
        begun += u32::from(matches!(event.body, EventBody::Thought(_)));
        if begun > steps {
            break;
        }
        if is_history(&event.body) {
            copied.push(event);
        }
    }
    // what was recalled alone is looked up anew
    if steps == 0 {
        copied.clear();
    }
    let last = copied.last().and_then(|event| event.digest);
    let origin = Origin { task: whole.id().clone(), steps, events: u32::try_from(copied.len()).unwrap_or(u32::MAX), last };
    let mut task = Task::fold(events.iter().take(1))?;
    for event in &copied {
        let next = task.next_event(event.time, &event.writer, event.body.clone());
        task.apply_copy(&Event { usage: event.usage.as_ref().map(words_alone), ..next })?;
    }
    match task.phase() {
        Phase::Parameterizing | Phase::Acting => Err(NotShared::Open { step: steps }),
        Phase::Approved => Err(NotShared::Approved { step: steps }),
        Phase::Planning | Phase::Reflecting | Phase::Finished => Ok(Shared { origin, events: copied }),
    }
}

/// Whether an event is part of what a group reads.
pub(crate) fn is_history(body: &EventBody) -> bool {
    matches!(
        body,
        EventBody::Recalled(_) | EventBody::Thought(_) | EventBody::Action(_) | EventBody::Observation(_) | EventBody::Reflection(_)
    )
}

/// What of a call's usage a copy keeps: how likely its words were, and who spoke. It cost the task
/// that shares it nothing.
pub fn words_alone(usage: &Usage) -> Usage {
    let Usage { model, adapter, adapter_digest, log_prob, scored_tokens, .. } = usage.clone();
    Usage { model, adapter, adapter_digest, log_prob, scored_tokens, ..Usage::default() }
}

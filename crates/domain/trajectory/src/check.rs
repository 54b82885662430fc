//! Whether what an agent said fits an event.

use crate::bounds::{MAX_DETAIL_BYTES, MAX_NAME_BYTES, MAX_PARAMS_BYTES, MAX_RECALLED_BYTES, MAX_THOUGHT_BYTES};
use crate::control::{MAX_BY_BYTES, MAX_INPUT_BYTES};
use crate::event::EventBody;

/// A part of an agent's reply that is longer than an event may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the {part} has {bytes} bytes; at most {limit} are stored")]
pub struct TooLong {
    /// Which part.
    pub part: &'static str,
    /// Its length.
    pub bytes: usize,
    /// The bound.
    pub limit: usize,
}

impl EventBody {
    /// Whether what an agent said fits an event.
    ///
    /// # Errors
    /// Names the first part that is too long.
    pub fn check_bounds(&self) -> Result<(), TooLong> {
        let within = |part, text: &str, limit| match text.len() {
            bytes if bytes > limit => Err(TooLong { part, bytes, limit }),
            _ => Ok(()),
        };
        match self {
            EventBody::Thought(thought) => {
                within("thought", &thought.thought, MAX_THOUGHT_BYTES)?;
                within("tool's name", &thought.tool, MAX_NAME_BYTES)
            }
            EventBody::Action(action) => {
                within("tool's name", &action.tool, MAX_NAME_BYTES)?;
                within("tool's input", &action.params, MAX_PARAMS_BYTES)
            }
            EventBody::Recalled(recalled) => {
                within("recall's failure", &recalled.failure, MAX_DETAIL_BYTES)?;
                match recalled.bytes() {
                    bytes if bytes > MAX_RECALLED_BYTES => Err(TooLong { part: "recalled part", bytes, limit: MAX_RECALLED_BYTES }),
                    _ => Ok(()),
                }
            }
            EventBody::Reflection(reflection) => within("reflection", &reflection.thought, MAX_THOUGHT_BYTES),
            EventBody::Paused(paused) => {
                within("caller's name", &paused.by, MAX_BY_BYTES)?;
                within("reason", &paused.reason, MAX_INPUT_BYTES)
            }
            EventBody::Resumed(resumed) => within("caller's name", &resumed.by, MAX_BY_BYTES),
            EventBody::InputRequested(asked) => {
                within("tool's name", &asked.tool, MAX_NAME_BYTES)?;
                within("question", &asked.prompt, MAX_PARAMS_BYTES)
            }
            EventBody::InputGiven(given) => {
                within("caller's name", &given.by, MAX_BY_BYTES)?;
                within("text", &given.text, MAX_INPUT_BYTES)
            }
            EventBody::Submitted(submitted) => within("caller's name", &submitted.by, MAX_BY_BYTES),
            EventBody::Finished(finished) => within("caller's name", &finished.by, MAX_BY_BYTES),
            EventBody::Started(_)
            | EventBody::Observation(_)
            | EventBody::Shortened(_)
            | EventBody::Released(_)
            | EventBody::Unknown(_) => Ok(()),
        }
    }
}

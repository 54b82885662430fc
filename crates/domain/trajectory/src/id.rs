//! The name of a task.

use std::fmt;
use std::str::FromStr;

/// The longest id: it is a token of a NATS subject and part of every log line.
const MAX_LENGTH: usize = 64;

/// A task's id: 1 to 64 characters of `[A-Za-z0-9_-]`, so that it can stand in a NATS subject and
/// in a URL as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(String);

/// A text that cannot be a task id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not a task id; expected 1 to {MAX_LENGTH} characters of A-Z, a-z, 0-9, `_` and `-`")]
pub struct InvalidTaskId {
    shown: String,
}

impl InvalidTaskId {
    /// The beginning of the text.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl TaskId {
    /// A new id; later ones sort after earlier ones.
    pub fn generate() -> TaskId {
        TaskId(uuid::Uuid::now_v7().to_string())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for TaskId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl FromStr for TaskId {
    type Err = InvalidTaskId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed) {
            return Ok(TaskId(text.to_owned()));
        }
        // the id may be anything a client sent: show the beginning only
        Err(InvalidTaskId { shown: text.chars().take(MAX_LENGTH + 1).collect() })
    }
}

impl TryFrom<String> for TaskId {
    type Error = InvalidTaskId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<TaskId> for String {
    fn from(id: TaskId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_ids_are_valid_and_ordered() {
        let (a, b) = (TaskId::generate(), TaskId::generate());
        assert_eq!(a.as_str().parse::<TaskId>().unwrap(), a);
        assert_ne!(a, b);
    }

    #[test]
    fn subject_tokens_cannot_be_forged() {
        for bad in ["", "a.b", "*", ">", "a b", "é", &"x".repeat(65)] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad}");
        }
        assert!("x".repeat(64).parse::<TaskId>().is_ok());
    }
}

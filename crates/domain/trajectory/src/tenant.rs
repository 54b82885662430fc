//! Whose a task is.

use std::fmt;
use std::str::FromStr;

use crate::id::TaskId;

/// The longest tenant: it is a token of every NATS subject.
const MAX_LENGTH: usize = 32;

/// The owner of tasks, memories and limits: 1 to 32 characters of `[a-z0-9-]`, so that it can stand
/// in a NATS subject.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(String);

/// A text that cannot be a tenant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{shown}` is not a tenant; expected 1 to {MAX_LENGTH} characters of a-z, 0-9 and `-`")]
pub struct InvalidTenant {
    shown: String,
}

impl InvalidTenant {
    /// The beginning of the text.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl Tenant {
    /// The tenant's name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The tenant of a deployment that names none.
impl Default for Tenant {
    fn default() -> Self {
        Tenant("default".to_owned())
    }
}

impl fmt::Display for Tenant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Tenant {
    type Err = InvalidTenant;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(allowed) {
            return Ok(Tenant(text.to_owned()));
        }
        Err(InvalidTenant { shown: text.chars().take(MAX_LENGTH + 1).collect() })
    }
}

/// What names a task: ids are unique within a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskKey {
    /// Whose it is.
    pub tenant: Tenant,
    /// Its id.
    pub id: TaskId,
}

impl TaskKey {
    /// The task `id` of `tenant`.
    pub fn new(tenant: Tenant, id: TaskId) -> TaskKey {
        TaskKey { tenant, id }
    }
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_tokens_cannot_be_forged() {
        for bad in ["", "a.b", "*", ">", "A", "a_b", "é", &"x".repeat(33)] {
            assert!(bad.parse::<Tenant>().is_err(), "{bad}");
        }
        assert!("x".repeat(32).parse::<Tenant>().is_ok());
        assert_eq!("default".parse::<Tenant>().unwrap(), Tenant::default());
    }
}

//! What the door refuses by itself, before or after a service has seen the call.

use std::time::Duration;

use autoact_wire::status::{REQUEST_TOO_LARGE, ServiceError};
use tonic::Code;

/// When a retry makes sense after a bound of the whole process was reached.
const RETRY: Duration = Duration::from_secs(1);

/// A call that reached a limit of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// A message of the request is larger than its method takes.
    #[error("a message of {bytes} bytes, and this method takes {most}; fix: send less at once")]
    TooLarge { bytes: usize, most: usize },
    /// More follows the only message that its method takes.
    #[error("the request goes on after its only message")]
    TooMuch,
    /// The process is receiving as much as it may.
    #[error("requests of {most} bytes are being received; call again (`door.max_request_bytes`)")]
    Receiving { most: usize },
    /// The process has as many calls as it may have.
    #[error("{most} calls are in progress; call again (`door.max_calls`)")]
    Calls { most: usize },
    /// The request did not arrive in time.
    #[error("the request did not arrive within {limit:?} (`door.request_time`)")]
    SlowRequest { limit: Duration },
    /// The client did not take what there was for it.
    #[error("nothing was read for {limit:?}; call again and read faster (`door.slow_reader`)")]
    SlowReader { limit: Duration },
}

impl ServiceError for Refusal {
    fn code(&self) -> Code {
        match self {
            Refusal::TooMuch => Code::InvalidArgument,
            Refusal::SlowRequest { .. } => Code::DeadlineExceeded,
            _ => Code::ResourceExhausted,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            Refusal::TooLarge { .. } => REQUEST_TOO_LARGE,
            Refusal::TooMuch => "MESSAGE_AFTER_MESSAGE",
            Refusal::Receiving { .. } => "TOO_MANY_BYTES",
            Refusal::Calls { .. } => "TOO_MANY_CALLS",
            Refusal::SlowRequest { .. } => "REQUEST_TOO_SLOW",
            Refusal::SlowReader { .. } => "SLOW_READER",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Refusal::Receiving { .. } | Refusal::Calls { .. } | Refusal::SlowReader { .. } => Some(RETRY),
            _ => None,
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            Refusal::TooLarge { bytes, most } => vec![("value", bytes.to_string()), ("limit", most.to_string())],
            Refusal::TooMuch => Vec::new(),
            Refusal::Receiving { most } | Refusal::Calls { most } => vec![("limit", most.to_string())],
            Refusal::SlowRequest { limit } | Refusal::SlowReader { limit } => vec![("limit", format!("{limit:?}"))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documents_name_every_reason_with_its_code() {
        let docs = include_str!("../../../../docs/limits.md");
        let limit = Duration::from_secs(1);
        let all = [
            Refusal::TooLarge { bytes: 2, most: 1 },
            Refusal::TooMuch,
            Refusal::Receiving { most: 1 },
            Refusal::Calls { most: 1 },
            Refusal::SlowRequest { limit },
            Refusal::SlowReader { limit },
        ];
        for refusal in all {
            let code = match refusal.code() {
                Code::InvalidArgument => "INVALID_ARGUMENT",
                Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
                _ => "RESOURCE_EXHAUSTED",
            };
            let row = format!("| `{}` | `{code}` |", refusal.reason());
            assert!(docs.contains(&row), "docs/limits.md has no row `{row}`");
        }
    }
}

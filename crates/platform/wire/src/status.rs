//! How a service's error becomes a gRPC status and back: one mapping, with `google.rpc` details
//! (reason, retry delay), never a bare string. A service error implements [`ServiceError`];
//! [`to_status`] does the rest.

use std::collections::HashMap;
use std::time::Duration;

use autoact_base::error::chain;
use autoact_trajectory::{InvalidContext, PromptSize};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The `domain` of every `google.rpc.ErrorInfo` we send.
pub const ERROR_DOMAIN: &str = "autoact";
/// The reason of a refusal to a holder of a task's lease that a newer one has taken over from.
pub const STALE_EPOCH: &str = "STALE_EPOCH";
/// The reason of a refusal to a request that is larger than its method takes.
pub const REQUEST_TOO_LARGE: &str = "REQUEST_TOO_LARGE";
/// The figures in the metadata of an error about a prompt that is too long.
const TOKENS: &str = "tokens";
const LIMIT: &str = "limit";

/// What every error of a service says about itself.
pub trait ServiceError: std::error::Error {
    /// The gRPC code.
    fn code(&self) -> Code;
    /// A stable machine-readable reason, `UPPER_SNAKE_CASE`, for `google.rpc.ErrorInfo`.
    fn reason(&self) -> &'static str;
    /// When a retry makes sense; `None` means that the same call fails again.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
    /// The request field at fault, for `INVALID_ARGUMENT`.
    fn field(&self) -> Option<&'static str> {
        None
    }
    /// What else a program may want to know, for the metadata of `google.rpc.ErrorInfo`: `limit`,
    /// `value`, `tool`, `task_id` and the like. The field is added by [`to_status`]; values are cut
    /// to [`MAX_VALUE`] characters there.
    fn metadata(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }
}

/// The longest value in an error's metadata, in characters: values come from requests, and headers
/// have a bound.
pub const MAX_VALUE: usize = 64;

/// The same refusal at every door and every agent.
impl ServiceError for InvalidContext {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn reason(&self) -> &'static str {
        "BAD_CONTEXT"
    }

    fn field(&self) -> Option<&'static str> {
        Some(InvalidContext::field(self))
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            InvalidContext::TooLong { bytes, most, .. } => vec![("value", bytes.to_string()), ("limit", most.to_string())],
            InvalidContext::TooMany { count, most, .. } => vec![("value", count.to_string()), ("limit", most.to_string())],
            InvalidContext::Control { code, .. } => vec![("value", format!("U+{code:04X}"))],
            InvalidContext::Knowledge { shown } | InvalidContext::TimeZone { shown } => vec![("value", shown.clone())],
            InvalidContext::Empty { .. } | InvalidContext::Now => Vec::new(),
        }
    }
}

/// The metadata of an error about a prompt that is too long.
pub fn too_long(size: PromptSize) -> Vec<(&'static str, String)> {
    vec![(TOKENS, size.tokens.to_string()), (LIMIT, size.limit.to_string())]
}

/// The status of an error, its details attached. The message is the error and its chain of sources.
/// Each is counted by its reason.
pub fn to_status(error: &dyn ServiceError) -> Status {
    metrics::counter!("autoact_errors_total", "reason" => error.reason()).increment(1);
    let mut details = ErrorDetails::new();
    let field = error.field().map(|field| ("field", field.to_owned()));
    let metadata = field.into_iter().chain(error.metadata());
    let metadata: HashMap<String, String> =
        metadata.map(|(name, value)| (name.to_owned(), value.chars().take(MAX_VALUE).collect())).collect();
    details.set_error_info(error.reason(), ERROR_DOMAIN, metadata);
    if let Some(delay) = error.retry_after() {
        details.set_retry_info(Some(delay));
    }
    if let Some(field) = error.field() {
        details.add_bad_request_violation(field, error.to_string());
    }
    Status::with_error_details(error.code(), chain(error), details)
}

/// The reason a status carries, if it is one of ours.
pub fn reason(status: &Status) -> Option<String> {
    let info = status.get_details_error_info()?;
    (info.domain == ERROR_DOMAIN).then_some(info.reason)
}

/// What else a status of ours says: the metadata of its `google.rpc.ErrorInfo`.
pub fn metadata(status: &Status) -> HashMap<String, String> {
    let info = status.get_details_error_info().filter(|info| info.domain == ERROR_DOMAIN);
    info.map(|info| info.metadata).unwrap_or_default()
}

/// The size of the prompt that was too long, if that is what a status says: the metadata of
/// [`too_long`].
pub fn prompt_size(status: &Status) -> Option<PromptSize> {
    let metadata = metadata(status);
    let figure = |name| metadata.get(name)?.parse().ok();
    Some(PromptSize { tokens: figure(TOKENS)?, limit: figure(LIMIT)? })
}

/// The retry delay a status carries.
pub fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}

/// Whether the same call may succeed later.
pub fn retryable(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::Aborted) || retry_after(status).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("queue is full with `{depth}` requests")]
    struct Full {
        depth: usize,
    }

    impl ServiceError for Full {
        fn code(&self) -> Code {
            Code::ResourceExhausted
        }
        fn reason(&self) -> &'static str {
            "QUEUE_FULL"
        }
        fn retry_after(&self) -> Option<Duration> {
            Some(Duration::from_millis(250))
        }
        fn field(&self) -> Option<&'static str> {
            Some("trajectory")
        }
        fn metadata(&self) -> Vec<(&'static str, String)> {
            let size = too_long(PromptSize { tokens: self.depth, limit: 5 });
            [("value", self.depth.to_string()), ("note", "é".repeat(1000))].into_iter().chain(size).collect()
        }
    }

    #[test]
    fn an_error_survives_the_trip_over_grpc() {
        let status = to_status(&Full { depth: 8 });
        let headers = status.into_http::<()>().into_parts().0.headers;
        let back = Status::from_header_map(&headers).unwrap_or_else(|| Status::unknown("lost"));
        assert_eq!(back.code(), Code::ResourceExhausted);
        assert_eq!(reason(&back).as_deref(), Some("QUEUE_FULL"));
        assert_eq!(retry_after(&back), Some(Duration::from_millis(250)));
        assert!(retryable(&back));
        let metadata = metadata(&back);
        assert_eq!((metadata["field"].as_str(), metadata["value"].as_str()), ("trajectory", "8"));
        assert_eq!(metadata["note"].chars().count(), MAX_VALUE);
        assert_eq!(prompt_size(&back), Some(PromptSize { tokens: 8, limit: 5 }));
    }
}

//! The application's errors as gRPC knows them: a code, a stable reason, the field at fault and when to try again.

use std::time::Duration;

use autoact_bus::BusError;
use autoact_trajectory::{FoldError, InvalidTaskId};
use autoact_wire::ConversionError;
use autoact_wire::status::ServiceError;
use tonic::Code;

use crate::agents::catalog::SelectError;
use crate::tasks::{SubmitError, TaskError};

/// A slot is free again after about one short task.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A request that does not say what it asks for.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error(transparent)]
    Id(InvalidTaskId),
    #[error(transparent)]
    Limits(ConversionError),
    #[error("`page_token` is `{0}`; expected one from an earlier response")]
    PageToken(String),
}

impl ServiceError for RequestError {
    fn code(&self) -> Code {
        Code::InvalidArgument
    }

    fn reason(&self) -> &'static str {
        match self {
            RequestError::Missing(_) => "TASK_MISSING",
            RequestError::Id(_) => "BAD_TASK_ID",
            RequestError::Limits(_) => "BAD_LIMITS",
            RequestError::PageToken(_) => "BAD_PAGE_TOKEN",
        }
    }

    fn field(&self) -> Option<&'static str> {
        Some(match self {
            RequestError::Missing(field) => field,
            RequestError::Id(_) => "task_id",
            RequestError::Limits(_) => "limits",
            RequestError::PageToken(_) => "page_token",
        })
    }
}

impl ServiceError for SelectError {
    fn code(&self) -> Code {
        match self {
            SelectError::Library(_) => Code::Unavailable,
            SelectError::Unknown { .. } => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            SelectError::Library(_) => "TOOLS_UNAVAILABLE",
            SelectError::Unknown { .. } => "UNKNOWN_TOOL",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, SelectError::Library(_)).then_some(RETRY_DELAY)
    }
}

/// The task was written by a later program.
fn newer(error: &FoldError) -> bool {
    matches!(error, FoldError::Newer { .. })
}

impl ServiceError for TaskError {
    fn code(&self) -> Code {
        match self {
            TaskError::NotFound(_) => Code::NotFound,
            TaskError::Bus(error) => bus_code(error),
            // this program is older than the one that wrote it: another gateway may be able to read it
            TaskError::Fold { source, .. } if newer(source) => Code::Unimplemented,
            TaskError::Fold { .. } => Code::DataLoss,
            TaskError::ManyWatchers => Code::ResourceExhausted,
            TaskError::Leaving { .. } => Code::Unavailable,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            TaskError::NotFound(_) => "TASK_NOT_FOUND",
            TaskError::Bus(error) => bus_reason(error),
            TaskError::Fold { source, .. } if newer(source) => "TRAJECTORY_NEWER",
            TaskError::Fold { .. } => "TRAJECTORY_BROKEN",
            TaskError::ManyWatchers => "TOO_MANY_WATCHERS",
            TaskError::Leaving { .. } => "SHUTTING_DOWN",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            TaskError::Leaving { .. } => Some(Duration::from_millis(500)),
            _ => matches!(self.code(), Code::Unavailable | Code::Aborted | Code::ResourceExhausted).then_some(RETRY_DELAY),
        }
    }
}

impl ServiceError for SubmitError {
    fn code(&self) -> Code {
        match self {
            SubmitError::Tools(SelectError::Library(_)) | SubmitError::NotQueued { .. } => Code::Unavailable,
            SubmitError::Exists(_) => Code::AlreadyExists,
            SubmitError::Full { .. } => Code::ResourceExhausted,
            SubmitError::Bus(error) => bus_code(error),
            SubmitError::Fold { .. } => Code::DataLoss,
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            SubmitError::NoQuestion => "QUESTION_EMPTY",
            SubmitError::LongQuestion(_) => "QUESTION_TOO_LONG",
            SubmitError::ManyTools(_) => "TOO_MANY_TOOLS",
            SubmitError::Labels => "BAD_LABELS",
            SubmitError::Limit { .. } => "LIMIT_TOO_HIGH",
            SubmitError::Sampling(_) => "BAD_SAMPLING",
            SubmitError::Tools(SelectError::Unknown { .. }) => "UNKNOWN_TOOL",
            SubmitError::Tools(SelectError::Library(_)) => "TOOLS_UNAVAILABLE",
            SubmitError::Exists(_) => "TASK_EXISTS",
            SubmitError::Conversation => "BAD_CONVERSATION_ID",
            SubmitError::Full { .. } => "GATEWAY_FULL",
            SubmitError::NotQueued { .. } => "NOT_QUEUED",
            SubmitError::Bus(error) => bus_reason(error),
            SubmitError::Fold { .. } => "TRAJECTORY_BROKEN",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let retry = matches!(self.code(), Code::ResourceExhausted | Code::Unavailable | Code::Aborted);
        retry.then_some(RETRY_DELAY)
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            SubmitError::NoQuestion | SubmitError::LongQuestion(_) => Some("question"),
            SubmitError::ManyTools(_) | SubmitError::Tools(SelectError::Unknown { .. }) => Some("tools"),
            SubmitError::Labels => Some("labels"),
            SubmitError::Limit { .. } => Some("limits"),
            SubmitError::Sampling(_) => Some("sampling"),
            SubmitError::Conversation => Some("conversation_id"),
            _ => None,
        }
    }
}

/// The code of an error of the bus, the same for every call.
fn bus_code(error: &BusError) -> Code {
    match error {
        BusError::Conflict { .. } => Code::Aborted,
        BusError::TooLarge(_) => Code::InvalidArgument,
        BusError::MessageTooLarge { .. } => Code::FailedPrecondition,
        BusError::Unreadable { .. } => Code::DataLoss,
        _ => Code::Unavailable,
    }
}

/// And its reason.
fn bus_reason(error: &BusError) -> &'static str {
    match error {
        BusError::Conflict { .. } => "TASK_MOVED_ON",
        BusError::TooLarge(_) => "TOO_LARGE",
        BusError::MessageTooLarge { .. } => "MESSAGE_TOO_LARGE",
        BusError::Unreadable { .. } => "TRAJECTORY_BROKEN",
        BusError::MissingTool { .. } => "TOOL_SPECIFICATION_MISSING",
        BusError::Full { .. } => "BUS_FULL",
        _ => "BUS_UNAVAILABLE",
    }
}

//! Requests that do not say what they ask for.

use autoact_trajectory::{InvalidContext, InvalidTaskId};
use autoact_wire::ConversionError;

use super::Row;

/// A request that does not say what it asks for.
#[derive(Debug, thiserror::Error)]
pub(in crate::doors::grpc) enum RequestError {
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("neither `answer` nor `approval` is there")]
    NoInput,
    #[error(transparent)]
    Id(InvalidTaskId),
    #[error(transparent)]
    NewId(InvalidTaskId),
    #[error(transparent)]
    Limits(ConversionError),
    #[error(transparent)]
    Context(InvalidContext),
    #[error("`page_token` is `{0}`; expected one from an earlier response to a request with the same `order`")]
    PageToken(String),
}

impl RequestError {
    pub(super) fn row(&self) -> Row {
        match self {
            RequestError::Missing(field) => Row::invalid("TASK_MISSING", field),
            RequestError::NoInput => Row::invalid("INPUT_MISSING", "input"),
            RequestError::Id(error) => Row::invalid("BAD_TASK_ID", "task_id").with("value", error.shown()),
            RequestError::NewId(error) => Row::invalid("BAD_TASK_ID", "new_task_id").with("value", error.shown()),
            RequestError::Limits(error) => {
                let row = Row::invalid("BAD_LIMITS", error.field());
                if let ConversionError::UnknownValue { value, .. } = error { row.with("value", value) } else { row }
            }
            RequestError::Context(invalid) => Row::of(invalid),
            RequestError::PageToken(token) => Row::invalid("BAD_PAGE_TOKEN", "page_token").with("value", token),
        }
    }
}

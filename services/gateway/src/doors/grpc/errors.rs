//! The application's errors as gRPC knows them: a code, a stable reason, the field at fault and
//! when to try again. Each kind of error is one row here, and its reason one row of the table in
//! `docs/api.md`.

mod request;
mod stored;
mod submit;
mod task;
#[cfg(test)]
mod tests;

use std::time::Duration;

use autoact_wire::status::ServiceError;
use tonic::Code;

pub(super) use self::request::RequestError;
use crate::agents::catalog::SelectError;
use crate::tasks::{NoPlace, SubmitError, TaskError};

/// A slot is free again after about one short task.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// What callers are told of an error, beside its text.
struct Row {
    code: Code,
    reason: &'static str,
    field: Option<&'static str>,
    retry_after: Option<Duration>,
    metadata: Vec<(&'static str, String)>,
}

impl Row {
    /// An error that goes away by itself may be tried again.
    fn new(code: Code, reason: &'static str) -> Row {
        Row { code, reason, field: None, retry_after: None, metadata: Vec::new() }.by_code()
    }

    /// A request that is wrong in this field.
    fn invalid(reason: &'static str, field: &'static str) -> Row {
        Row::new(Code::InvalidArgument, reason).field(field)
    }

    /// What an error of another crate says of itself.
    fn of(error: &dyn ServiceError) -> Row {
        Row {
            code: error.code(),
            reason: error.reason(),
            field: error.field(),
            retry_after: error.retry_after(),
            metadata: error.metadata(),
        }
    }

    fn field(self, field: &'static str) -> Row {
        Row { field: Some(field), ..self }
    }

    fn after(self, delay: Duration) -> Row {
        Row { retry_after: Some(delay), ..self }
    }

    /// To be tried again after the usual time, if its code says that this may help.
    fn by_code(self) -> Row {
        let retry = matches!(self.code, Code::Unavailable | Code::Aborted | Code::ResourceExhausted);
        Row { retry_after: retry.then_some(RETRY_DELAY), ..self }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Row {
        self.metadata.push((name, value.to_string()));
        self
    }

    fn task(self, id: &impl ToString) -> Row {
        self.with("task_id", id.to_string())
    }
}

/// Errors whose `row` says everything.
macro_rules! by_row {
    ($($error:ty),+) => {$(
        impl ServiceError for $error {
            fn code(&self) -> Code {
                self.row().code
            }

            fn reason(&self) -> &'static str {
                self.row().reason
            }

            fn retry_after(&self) -> Option<Duration> {
                self.row().retry_after
            }

            fn field(&self) -> Option<&'static str> {
                self.row().field
            }

            fn metadata(&self) -> Vec<(&'static str, String)> {
                self.row().metadata
            }
        }
    )+};
}

by_row!(RequestError, SelectError, NoPlace, TaskError, SubmitError);

//! Errors before, during and after a load. A failed task is not an error: it is counted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tonic::Status;

/// An error of a load or of its report.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// An invalid rate.
    #[error("the rate is `{0}`; expected arrivals per second, above 0 and at most 100000")]
    Rate(f64),
    /// More arrivals than a schedule may have.
    #[error("`{rate}` arrivals per second for {duration:?} are more than {most}; ask for a shorter load or a lower rate")]
    Long {
        /// The requested rate.
        rate: f64,
        /// The requested duration.
        duration: Duration,
        /// The maximum number of arrivals.
        most: usize,
    },
    /// A file without questions.
    #[error("`{}` has no questions; expected a question a line, as text or as JSON with `question` and perhaps `answer`", path.display())]
    NoQuestions {
        /// The file.
        path: PathBuf,
    },
    /// A line that is not a question.
    #[error("`{}`, line {line}: not a question; expected text, or JSON with `question` and perhaps `answer` and `options`", path.display())]
    Question {
        /// The file.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// An invalid address.
    #[error(transparent)]
    Address(#[from] autoact_wire::client::AddressError),
    /// No gateway answered before the load started.
    #[error("the gateway at `{address}` does not answer ({}: {}); start the group with `autoact up`, or name another address with `--gateway`", code_name(status), status.message())]
    Gateway {
        /// The gateway's address.
        address: String,
        /// The returned status.
        status: Box<Status>,
    },
    /// A file that cannot be read or written.
    #[error("cannot {what} `{}`", path.display())]
    File {
        /// `read` or `write`
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is not a report.
    #[error("`{}` is not a report of `autoact load`; expected its `report.json`", path.display())]
    NotAReport {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A report of another version.
    #[error("`{}` has the schema `{found}`, this program reads `{expected}`; run the load again", path.display())]
    Schema {
        /// The file.
        path: PathBuf,
        /// The schema in the file.
        found: String,
        /// The schema that this program reads.
        expected: &'static str,
    },
}

impl LoadError {
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LoadError {
        let path = path.to_path_buf();
        move |source| LoadError::File { what, path, source }
    }
}

/// The name of a code in gRPC's specification.
pub(crate) fn code_name(status: &Status) -> &'static str {
    use tonic::Code;
    match status.code() {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

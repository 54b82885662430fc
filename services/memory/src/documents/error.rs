//! Why a call about documents was refused.

use std::time::Duration;

use autoact_collections::{CollectionsError, InvalidName};
use autoact_trajectory::InvalidTenant;
use autoact_wire::status::ServiceError;
use tonic::Code;

use crate::store::StoreError;

/// Why a call about documents was refused.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentsError {
    #[error("this memory service keeps no documents; set `documents_dir` or `documents_store`")]
    Off,
    #[error("this memory service has no embedder, so there are no vectors; run `scripts/fetch-embedder`, or set `embedder`")]
    NoEmbedder,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("`{field}` has {length} bytes; at most {most} are allowed")]
    TooLong { field: &'static str, length: usize, most: usize },
    #[error("`{field}` is {value}; expected {expected}")]
    OutOfRange { field: &'static str, value: u64, expected: &'static str },
    #[error("`tenant` is not valid")]
    Tenant(#[source] InvalidTenant),
    #[error(transparent)]
    Name(InvalidName),
    #[error("`file.path` is `{shown}`; expected a path of 1 to 4096 bytes without control characters")]
    Path { shown: String },
    #[error("the messages are not in order: first the file, then segments")]
    Order,
    #[error("no part of the file came within {after:?}")]
    Idle { after: Duration },
    #[error("{running} calls are running already")]
    Busy { running: usize },
    #[error("the documents did not answer within {after:?}")]
    TooSlow { after: Duration },
    #[error("the work broke off: {0}")]
    Broke(String),
    #[error(transparent)]
    Collections(#[from] CollectionsError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("Qdrant at `{url}` cannot hold vectors beside these documents: {reason}; use Qdrant 1.18 or later, or `embedder = \"none\"`")]
    NoNewVectors { url: String, reason: String },
}

impl ServiceError for DocumentsError {
    fn code(&self) -> Code {
        match self {
            DocumentsError::Off | DocumentsError::NoEmbedder => Code::FailedPrecondition,
            DocumentsError::Missing(_)
            | DocumentsError::TooLong { .. }
            | DocumentsError::OutOfRange { .. }
            | DocumentsError::Tenant(_)
            | DocumentsError::Name(_)
            | DocumentsError::Path { .. }
            | DocumentsError::Order => Code::InvalidArgument,
            DocumentsError::Idle { .. } | DocumentsError::TooSlow { .. } => Code::DeadlineExceeded,
            DocumentsError::Busy { .. } => Code::ResourceExhausted,
            DocumentsError::Collections(CollectionsError::Unknown { .. }) => Code::NotFound,
            DocumentsError::Collections(CollectionsError::Layout { .. }) => Code::FailedPrecondition,
            DocumentsError::Broke(_) | DocumentsError::Collections(_) => Code::Internal,
            DocumentsError::Store(error) => error.code(),
            DocumentsError::NoNewVectors { .. } => Code::FailedPrecondition,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            DocumentsError::Off => "DOCUMENTS_OFF",
            DocumentsError::NoEmbedder => "NO_EMBEDDER",
            DocumentsError::Missing(_) => "FIELD_MISSING",
            DocumentsError::TooLong { .. } => "FIELD_TOO_LONG",
            DocumentsError::OutOfRange { .. } => "FIELD_OUT_OF_RANGE",
            DocumentsError::Tenant(_) => "BAD_TENANT",
            DocumentsError::Name(_) => "BAD_COLLECTION",
            DocumentsError::Path { .. } => "BAD_PATH",
            DocumentsError::Order => "OUT_OF_ORDER",
            DocumentsError::Idle { .. } => "STREAM_IDLE",
            DocumentsError::Busy { .. } => "STORE_BUSY",
            DocumentsError::TooSlow { .. } => "STORE_TOO_SLOW",
            DocumentsError::Collections(CollectionsError::Unknown { .. }) => "UNKNOWN_COLLECTION",
            DocumentsError::Collections(CollectionsError::Layout { .. }) => "STORE_LAYOUT",
            DocumentsError::Broke(_) | DocumentsError::Collections(_) => "STORE_FAILED",
            DocumentsError::Store(error) => error.reason(),
            DocumentsError::NoNewVectors { .. } => "STORE_TOO_OLD",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            DocumentsError::Busy { .. } => Some(Duration::from_millis(200)),
            DocumentsError::Store(error) => error.retry_after(),
            _ => None,
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            DocumentsError::Missing(field) | DocumentsError::TooLong { field, .. } | DocumentsError::OutOfRange { field, .. } => {
                Some(field)
            }
            DocumentsError::Tenant(_) => Some("tenant"),
            DocumentsError::Name(_) => Some("collection"),
            DocumentsError::Path { .. } => Some("file.path"),
            _ => None,
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            DocumentsError::TooLong { length, most, .. } => vec![("value", length.to_string()), ("limit", most.to_string())],
            DocumentsError::OutOfRange { value, .. } => vec![("value", value.to_string())],
            DocumentsError::Tenant(source) => vec![("value", source.shown().to_owned())],
            DocumentsError::Path { shown } => vec![("value", shown.clone())],
            DocumentsError::Collections(CollectionsError::Unknown { name, .. }) => vec![("value", name.to_string())],
            _ => Vec::new(),
        }
    }
}

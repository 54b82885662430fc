//! Where memories are kept.

mod embedded;
mod index;
mod open;
mod qdrant;
mod search;

use std::sync::Arc;
use std::time::Duration;

use autoact_embedding::EmbedError;
use autoact_trajectory::Tenant;
use autoact_wire::status::ServiceError;
use tonic::Code;

pub use embedded::EmbeddedStore;
pub use open::OpenError;
pub use qdrant::QdrantStore;

use crate::asked::{Filter, Query, Recalled};
use crate::payload::Payload;
use crate::remembered::{Key, Kind, Memory};

/// Keeps memories, of every tenant for itself. None of its calls blocks an async thread.
#[tonic::async_trait]
pub trait MemoryStore: Send + Sync + 'static {
    /// `embedded` or `qdrant`, for metrics and messages.
    fn name(&self) -> &'static str;
    /// Stores or replaces a memory. When it returns, the memory survives a crash.
    async fn remember(&self, memory: Memory) -> Result<(), StoreError>;
    /// The memories of the query's tenant that are most similar to it, best first.
    async fn recall(&self, query: Query) -> Result<Vec<Recalled>, StoreError>;
    /// Those of these memories that there are.
    async fn get(&self, keys: Vec<Key>) -> Result<Vec<Memory>, StoreError>;
    /// The first memories that a filter admits, in the order of their places. Reads all of the
    /// tenant's and kind's.
    async fn scan(&self, filter: Filter) -> Result<Vec<Memory>, StoreError>;
    /// Removes memories, and their text from the disk; how many there were.
    async fn erase(&self, keys: Vec<Key>) -> Result<usize, StoreError>;
    /// Removes a tenant's memory; false when there was none.
    async fn forget(&self, tenant: Tenant, kind: Kind, id: String) -> Result<bool, StoreError> {
        Ok(self.erase(vec![Key { tenant, kind, id }]).await? > 0)
    }
    /// Whether it can be used now.
    async fn check(&self) -> Result<(), StoreError>;
    /// Ends it; calls after that fail.
    async fn close(&self);
}

/// Why a store did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Too much is waiting already.
    #[error("the memory store is busy: {waiting} calls wait")]
    Busy {
        /// The length of its queue.
        waiting: usize,
    },
    /// It has been closed, or its owner ended.
    #[error("the memory store is closed")]
    Closed,
    /// It took too long.
    #[error("the memory store did not answer within {after:?}")]
    TooSlow {
        /// How long it had.
        after: Duration,
    },
    /// The server is not there.
    #[error("cannot reach Qdrant at `{url}`: {reason}")]
    Unreachable {
        /// Its address.
        url: String,
        /// What happened.
        reason: String,
    },
    /// The server does not let us in.
    #[error("Qdrant at `{url}` refuses our key: {reason}; check `qdrant.api_key`")]
    Refused {
        /// Its address.
        url: String,
        /// What it says.
        reason: String,
    },
    /// The collection was made for something else.
    #[error(
        "the collection `{collection}` of Qdrant at `{url}` {difference}; name another one in `qdrant.collection`, or other documents in `qdrant.documents`"
    )]
    Layout {
        /// The server's address.
        url: String,
        /// The collection.
        collection: String,
        /// What is different.
        difference: String,
    },
    /// The embedder failed.
    #[error("{0}")]
    Embed(Arc<EmbedError>),
    /// The engine failed.
    #[error("the memory store failed: {0}")]
    Engine(String),
}

impl ServiceError for StoreError {
    fn code(&self) -> Code {
        match self {
            StoreError::Busy { .. } => Code::ResourceExhausted,
            StoreError::Closed | StoreError::Unreachable { .. } => Code::Unavailable,
            StoreError::TooSlow { .. } => Code::DeadlineExceeded,
            StoreError::Refused { .. } | StoreError::Layout { .. } => Code::FailedPrecondition,
            StoreError::Embed(_) | StoreError::Engine(_) => Code::Internal,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            StoreError::Busy { .. } => "STORE_BUSY",
            StoreError::Closed => "STORE_CLOSED",
            StoreError::TooSlow { .. } => "STORE_TOO_SLOW",
            StoreError::Unreachable { .. } => "STORE_UNREACHABLE",
            StoreError::Refused { .. } => "STORE_REFUSES_KEY",
            StoreError::Layout { .. } => "STORE_LAYOUT",
            StoreError::Embed(_) => "EMBEDDER_FAILED",
            StoreError::Engine(_) => "STORE_FAILED",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            StoreError::Busy { .. } => Some(Duration::from_millis(200)),
            StoreError::Closed | StoreError::Unreachable { .. } => Some(Duration::from_secs(1)),
            _ => None,
        }
    }
}

/// What a stored payload says, or `None` (and a line in the log) when it is not one of ours.
fn stored(payload: serde_json::Result<Payload>) -> Option<Memory> {
    let memory = |payload: Payload| Memory::try_from(payload).map_err(|error| error.to_string());
    let memory = payload.map_err(|error| error.to_string()).and_then(memory);
    match memory {
        Ok(memory) => Some(memory),
        Err(error) => {
            tracing::warn!(error, "a stored payload is not a memory; it is left out");
            None
        }
    }
}

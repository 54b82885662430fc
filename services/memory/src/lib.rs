//! The memory service: what the group has done, and what of it is like the question at hand.
//!
//! First form: finished tasks. A memory is found by the words of its question and answer: BM25 as a sparse vector, so that the same
//! collection layout works in the embedded store (`qdrant-edge`, the default) and in a Qdrant server, and so that dense vectors can stand
//! beside it once an [`Embedder`] is configured. None is bundled yet.
//!
//! ```text
//! gRPC (rpc) → MemoryStore ─┬─ EmbeddedStore: one thread owns a qdrant-edge shard in `data_dir`
//!                           └─ QdrantStore:   a collection of a Qdrant server
//! ```

mod app;
mod config;
mod embedder;
mod encode;
mod remembered;
mod rpc;
mod store;

pub use app::MemoryApp;
pub use config::{DEFAULT_DATA_DIR, DEFAULT_GRPC_PORT, DEFAULT_METRICS_PORT, MemoryConfig, QdrantConfig, StoreKind};
pub use embedder::{EmbedError, Embedder};
pub use encode::{Encoded, Encoder};
pub use remembered::{Kind, Memory, Query, Recalled, TaskMemory};
pub use rpc::{MemoryRpc, service};
pub use store::{EmbeddedStore, MemoryStore, OpenError, QdrantStore, StoreError};

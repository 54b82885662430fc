//! The memory service: what the group has done, and what of it is like the question at hand.
//!
//! First form: finished tasks. A memory is found by the words of its question and answer, ranked by
//! BM25. The embedded store (the default) is an index in files; a Qdrant server has the same words
//! as sparse vectors, beside which dense vectors can stand once an [`Embedder`] is configured. None
//! is bundled yet.
//!
//! ```text
//! gRPC (rpc) → MemoryStore ─┬─ EmbeddedStore: one thread owns a tantivy index in `data_dir`
//!                           └─ QdrantStore:   a collection of a Qdrant server
//! ```

mod app;
mod config;
mod documents;
mod embedder;
mod encode;
mod remembered;
mod rpc;
mod store;
mod words;

pub use app::MemoryApp;
pub use config::{DEFAULT_DATA_DIR, DEFAULT_GRPC_PORT, DEFAULT_METRICS_PORT, MemoryConfig, QdrantConfig, StoreKind};
pub use embedder::{EmbedError, Embedder};
pub use encode::{Encoded, Encoder};
pub use remembered::{Kind, Memory, Query, Recalled, TaskMemory};
pub use rpc::{MemoryRpc, service};
pub use store::{EmbeddedStore, MemoryStore, OpenError, QdrantStore, StoreError};

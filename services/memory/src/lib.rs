//! The memory service: what the group has done, and what of it is like the question at hand.
//!
//! First form: finished tasks. A memory is found by the words of its question and answer, ranked by
//! BM25. The embedded store (the default) is an index in files; a Qdrant server has the same words
//! as sparse vectors. Beside them users' documents: collections of files, whose segments are found
//! by words and, with an embedder, by meaning.
//!
//! ```text
//! gRPC ─┬─ rpc       → MemoryStore ─┬─ EmbeddedStore: one thread owns a tantivy index in `data_dir`
//!       │                           └─ QdrantStore:   a collection of a Qdrant server
//!       └─ documents → autoact_collections: files in `documents_dir`; vectors follow in the background
//! ```

mod app;
mod config;
mod documents;
mod encode;
mod remembered;
mod rpc;
mod store;
mod words;

pub use app::MemoryApp;
pub use config::{
    DEFAULT_DATA_DIR, DEFAULT_GRPC_PORT, DEFAULT_METRICS_PORT, EmbedderKind, EmbedderServerConfig, MemoryConfig, QdrantConfig, StoreKind,
};
pub use encode::{Encoded, Encoder};
pub use remembered::{Kind, Memory, Query, Recalled, TaskMemory};
pub use rpc::{MemoryRpc, service};
pub use store::{EmbeddedStore, MemoryStore, OpenError, QdrantStore, StoreError};

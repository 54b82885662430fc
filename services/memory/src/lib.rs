//! The memory service: what the group has done, and what of it is like the question at hand.
//!
//! Finished tasks, and the turns of conversations. A memory is found by the words of its question and
//! answer, ranked by BM25; in a conversation its place and its age count too. The embedded store (the
//! default) is an index in files; a Qdrant server has the same words as sparse vectors. Beside them
//! users' documents: collections of files, whose segments are found by words and, with an embedder,
//! by meaning; they too are in files or in a Qdrant server.
//!
//! ```text
//! gRPC ─┬─ rpc       → Memories → MemoryStore ─┬─ EmbeddedStore: one thread owns a tantivy index in `data_dir`
//!       │                                      └─ QdrantStore:   a collection of a Qdrant server
//!       └─ documents → DocumentStore ─┬─ EmbeddedDocuments: autoact_collections, files in `documents_dir`
//!                                     └─ QdrantDocuments:   a collection of Qdrant for each of a tenant's
//! ```

mod app;
mod asked;
mod config;
mod convert;
mod documents;
mod door;
mod encode;
mod forgetting;
mod memories;
mod payload;
mod remembered;
mod request;
mod rpc;
mod server;
mod store;
mod words;

pub use app::MemoryApp;
pub use asked::{Filter, Place, Query, Recalled};
pub use config::{
    DEFAULT_DATA_DIR, DEFAULT_GRPC_PORT, DEFAULT_METRICS_PORT, EmbedderKind, EmbedderServerConfig, MemoryConfig, QdrantConfig, StoreKind,
};
pub use encode::{Encoded, Encoder};
pub use forgetting::{Forgetting, Scope};
pub use memories::{InConversation, Memories, TimeToLive};
pub use remembered::{Forgotten, Key, Kind, Memory, TaskMemory, Turn};
pub use rpc::{MemoryRpc, service};
pub use store::{EmbeddedStore, MemoryStore, OpenError, QdrantStore, StoreError};

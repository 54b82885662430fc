//! Dense vectors of texts, for search by meaning: [`MiniLm`] computes them in the process,
//! [`OpenAiEmbedder`] asks a server with OpenAI's API.
//!
//! [`Embedder`] is synchronous: a call computes, or waits for a server, for milliseconds to minutes.
//! Call it off the async threads, as any long computation:
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use autoact_embedding::{EmbedError, Embedder};
//! # async fn query(embedder: Arc<dyn Embedder>, text: String) -> Result<Vec<Vec<f32>>, EmbedError> {
//! let vectors = tokio::task::spawn_blocking(move || embedder.embed(&[&text]));
//! # vectors.await.unwrap()
//! # }
//! ```
//!
//! That is simplest for both callers of the memory service. The task that indexes is a thread of its
//! own already, and a query needs `spawn_blocking` for the model in the process anyway. An async
//! trait would put that call into each implementation, and box each future, without sparing the
//! callers anything.

mod embedder;
mod error;
mod minilm;
mod openai;
mod vector;

pub use embedder::Embedder;
pub use error::EmbedError;
pub use minilm::{MiniLm, MiniLmOptions};
pub use openai::{OpenAiEmbedder, OpenAiEmbedderOptions};

pub use autoact_http_client::ClientError;

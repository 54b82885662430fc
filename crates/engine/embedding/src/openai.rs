//! Vectors from a server with OpenAI's API.

mod ask;
mod options;
mod wire;

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use tokio::runtime::Handle;
use tracing::Instrument;

use crate::{EmbedError, Embedder};
use ask::{Asked, Server};
pub use options::OpenAiEmbedderOptions;

/// What a request's own time limit may be late by, on a busy machine.
const SLACK: Duration = Duration::from_secs(5);
/// A text that any model has a vector of.
const PROBE: &str = "a";

/// An embedder behind `POST {url}/embeddings`: OpenAI's own, vLLM, text-embeddings-inference,
/// llama.cpp and others.
///
/// Requests run on the runtime of [`OpenAiEmbedder::connect`], while the caller's thread waits. So
/// [`Embedder::embed`] must not be called on a thread of that runtime. If it is the runtime's only
/// one, the call fails at its time limit.
pub struct OpenAiEmbedder {
    server: Arc<Server>,
    name: String,
    dimension: usize,
    runtime: Handle,
}

impl OpenAiEmbedder {
    /// Asks the server for one vector: whether it serves the model, and with which dimension. Waits
    /// for a server that does not answer yet, up to [`OpenAiEmbedderOptions::start_timeout`]. Needs
    /// a tokio runtime, on which all requests run.
    ///
    /// # Errors
    /// An option cannot be used, or the server refuses or stays away.
    pub async fn connect(options: OpenAiEmbedderOptions) -> Result<OpenAiEmbedder, EmbedError> {
        let server = Server::new(options)?;
        let dimension = server.first(PROBE).await?.len();
        // the API names no revision
        let name = format!("{}/{dimension}", server.options.model);
        Ok(OpenAiEmbedder { server: Arc::new(server), name, dimension, runtime: Handle::current() })
    }

    /// Runs `work` on the runtime and waits for it. Other than `Handle::block_on` this cannot panic,
    /// neither on a thread of the runtime nor while the runtime shuts down.
    fn wait<T: Send + 'static>(&self, work: impl Future<Output = Result<T, EmbedError>> + Send + 'static) -> Result<T, EmbedError> {
        let (sender, receiver) = sync_channel(1);
        let task = self.runtime.spawn(
            async move {
                // nobody listens after the time limit
                let _ = sender.send(work.await);
            }
            .in_current_span(),
        );
        receiver.recv_timeout(self.server.options.timeout + SLACK).unwrap_or_else(|_| {
            task.abort();
            Err(self.server.unavailable("the runtime did not run the request".to_owned()))
        })
    }
}

impl std::fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiEmbedder").field("name", &self.name).field("options", &self.server.options).finish_non_exhaustive()
    }
}

impl Embedder for OpenAiEmbedder {
    /// The model and its dimension. A server that puts other weights behind the same model's name is
    /// not noticed.
    fn name(&self) -> &str {
        &self.name
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = Vec::with_capacity(texts.len());
        for batch in texts.chunks(self.server.options.batch.max(1)) {
            let body = wire::body(&self.server.options.model, batch);
            let (server, asked) = (self.server.clone(), Asked { body, count: batch.len(), dimension: Some(self.dimension) });
            vectors.extend(self.wait(async move { server.vectors(&asked).await })?);
        }
        Ok(vectors)
    }
}

//! Options of an embedder on a server.

use std::path::PathBuf;
use std::time::Duration;

use autoact_config::Secret;
use autoact_http_client::ClientOptions;

/// The most texts that text-embeddings-inference takes by default; other servers take more.
const DEFAULT_BATCH: usize = 32;
/// Three retries cover the restart of a proxy, but not of the server.
const DEFAULT_RETRIES: u32 = 3;
/// Servers of the same cluster accept a connection in milliseconds.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that was just started loads its model for up to minutes.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(120);
/// A batch of long texts takes seconds on a processor.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Options of an [`OpenAiEmbedder`](crate::OpenAiEmbedder).
#[derive(Debug, Clone)]
pub struct OpenAiEmbedderOptions {
    /// The base URL of the API: `http://vllm:8000/v1`.
    pub url: String,
    /// The served name of the model.
    pub model: String,
    /// API key, sent as a bearer token; empty: none.
    pub api_key: Secret,
    /// PEM file of certificate authorities to trust, in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Maximum number of texts of a request.
    pub batch: usize,
    /// Maximum number of retries of a request.
    pub retries: u32,
    /// Time limit of a connection.
    pub connect_timeout: Duration,
    /// How long [`OpenAiEmbedder::connect`](crate::OpenAiEmbedder::connect) waits for a server that
    /// does not answer.
    pub start_timeout: Duration,
    /// Time limit of a request with its retries.
    pub timeout: Duration,
}

impl OpenAiEmbedderOptions {
    /// Default options for the served name `model` at `url`.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> OpenAiEmbedderOptions {
        OpenAiEmbedderOptions {
            url: url.into(),
            model: model.into(),
            api_key: Secret::default(),
            ca_file: None,
            batch: DEFAULT_BATCH,
            retries: DEFAULT_RETRIES,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            start_timeout: DEFAULT_START_TIMEOUT,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The part of the HTTP client.
    pub(super) fn client(&self) -> ClientOptions {
        ClientOptions {
            url: self.url.clone(),
            api_key: self.api_key.clone(),
            ca_file: self.ca_file.clone(),
            connect_timeout: self.connect_timeout,
        }
    }
}

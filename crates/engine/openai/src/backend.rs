//! A remote server as a backend.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use autoact_model::{AdapterVersion, Backend, BackendInfo, GenerateError, GenerateRequest, GenerateStream};
use http::StatusCode;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::completion::Completion;
use crate::error::RemoteError;
use crate::failure::{Failure, shown};
use crate::follow::Grammars;
use crate::http::{Client, whole};
use crate::models::{Listing, Served};
use crate::options::RemoteOptions;
use crate::queue::Queue;
use crate::retry;
use crate::spellings::Spellings;

/// A model served by an OpenAI-compatible server.
///
/// - **Deadlines and cancellation**: at a request's deadline, and when its stream is dropped, the
///   connection is closed; servers such as vLLM then stop generating. A request without a deadline
///   ends after [`RemoteOptions::timeout`].
/// - **Retries**: a failure before the first token (no connection, 408, 429, 5xx, a broken stream) is
///   retried, with exponential backoff and jitter, or after the time in `Retry-After`. After the
///   first token nothing is retried.
/// - **Overload**: at most [`RemoteOptions::max_in_flight`] requests are sent at a time, and
///   [`RemoteOptions::queue`] wait. Further ones are refused with a retry delay. So is a request that
///   the server still refuses with 429 at the last attempt.
/// - **Grammars**: see [`Dialect`](crate::Dialect). If a text violates its grammar, the completion
///   continues in a further round: after the forced text if the grammar allows only one
///   continuation, or with another sample. After three rounds it is an error.
/// - **Control tokens**: a prompt is sent as one string, in which a server recognises every control
///   token. If the prompt's text spells one, a space is inserted after its first character.
pub struct Remote {
    shared: Arc<Shared>,
    /// The served adapter of the configured name; `None`: the name is the base's.
    speaker: Option<AdapterVersion>,
    runtime: Handle,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("info", &self.shared.info).field("speaker", &self.speaker).finish_non_exhaustive()
    }
}

/// The state shared by all completions.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) options: RemoteOptions,
    pub(crate) info: BackendInfo,
    adapters: RwLock<Vec<AdapterVersion>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) grammars: Grammars,
    pub(crate) spellings: Spellings,
    /// Whether the warning that the server does not apply grammars has been logged.
    pub(crate) warned: AtomicBool,
}

impl Remote {
    /// Finds the served name. Waits for a server that does not answer yet, up to
    /// [`RemoteOptions::start_timeout`]; a server that refuses is an error immediately. Needs a
    /// tokio runtime, on which completions run.
    pub async fn connect(options: RemoteOptions) -> Result<Remote, RemoteError> {
        let client = Client::new(&options)?;
        let grammars = Grammars::new()?;
        let spellings = Spellings::new(&options.control_tokens)
            .map_err(|error| RemoteError::ControlTokens { count: options.control_tokens.len(), reason: error.to_string() })?;
        let served = wait_for(&client, &options).await?;
        let Served { base, adapters, context_length } = served;
        let context_length = match (context_length, options.context_length) {
            (Some(theirs), Some(ours)) => theirs.min(ours),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(RemoteError::NoContextLength { url: options.url, model: options.model }),
        };
        let speaker = adapters.iter().find(|adapter| adapter.name == options.model).cloned();
        let info = BackendInfo {
            name: base,
            // servers do not report a digest of their weights
            digest: String::new(),
            context_length,
            chat_template: false,
        };
        let queue = Arc::new(Queue::new(options.max_in_flight, options.queue));
        let adapters = RwLock::new(adapters);
        let shared = Shared { client, options, info, adapters, queue, grammars, spellings, warned: AtomicBool::new(false) };
        Ok(Remote { shared: Arc::new(shared), speaker, runtime: Handle::current() })
    }

    /// The adapter to name in requests for the configured model; `None` if that is the base.
    pub fn speaker(&self) -> Option<&AdapterVersion> {
        self.speaker.as_ref()
    }
}

impl Backend for Remote {
    fn info(&self) -> &BackendInfo {
        &self.shared.info
    }

    /// The adapters that the server listed last: at the start, or when an adapter was missing.
    fn adapters(&self) -> Vec<AdapterVersion> {
        self.shared.adapters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        let ticket = self.shared.queue.enter()?;
        let (sender, stream) = GenerateStream::channel();
        let completion = Completion::new(Arc::clone(&self.shared), request, ticket, sender);
        // ends with its stream, its deadline or the time limit of all completions
        drop(self.runtime.spawn(completion.run().instrument(tracing::Span::current())));
        Ok(stream)
    }
}

impl Shared {
    /// The served adapter with this name. The server is asked again if the name is unknown.
    pub(crate) async fn adapter(&self, name: &str) -> Result<AdapterVersion, GenerateError> {
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        self.look_again().await?;
        self.known(name).ok_or_else(|| self.unknown(name))
    }

    /// Asks the server for its models again.
    pub(crate) async fn look_again(&self) -> Result<(), GenerateError> {
        let listing = list(&self.client).await.map_err(Failure::told)?;
        let served = listing.around(&self.options.url, &self.info.name).map_err(|error| GenerateError::engine(error.to_string()))?;
        *self.adapters.write().unwrap_or_else(PoisonError::into_inner) = served.adapters;
        Ok(())
    }

    pub(crate) fn unknown(&self, name: &str) -> GenerateError {
        let loaded = self.adapters.read().unwrap_or_else(PoisonError::into_inner).iter().map(|adapter| adapter.name.clone()).collect();
        GenerateError::UnknownAdapter { name: name.to_owned(), loaded }
    }

    fn known(&self, name: &str) -> Option<AdapterVersion> {
        self.adapters.read().unwrap_or_else(PoisonError::into_inner).iter().find(|adapter| adapter.name == name).cloned()
    }
}

/// The list of models, as soon as the server answers.
async fn wait_for(client: &Client, options: &RemoteOptions) -> Result<Served, RemoteError> {
    let url = client.url("/models");
    let end = Instant::now() + options.start_timeout;
    let mut attempt = 0;
    loop {
        let unreachable = |reason: String| RemoteError::Unreachable { url: url.clone(), waited: options.start_timeout, reason };
        let reason = match tokio::time::timeout_at(end, list(client)).await {
            Ok(Ok(listing)) => return listing.around(&options.url, &options.model),
            Ok(Err(Failure::Again { message, .. })) => message,
            Ok(Err(refused)) => return Err(RemoteError::Refused { url, reason: refused.told().to_string() }),
            Err(_) => return Err(unreachable("it accepts connections and says nothing".to_owned())),
        };
        let pause = retry::pause(attempt, None);
        if Instant::now() + pause >= end {
            return Err(unreachable(reason));
        }
        if attempt == 0 {
            tracing::warn!(url, reason, limit = ?options.start_timeout, "waiting for the model's server");
        }
        tokio::time::sleep(pause).await;
        attempt += 1;
    }
}

async fn list(client: &Client) -> Result<Listing, Failure> {
    let url = client.url("/models");
    let lasting = |error: crate::http::HttpError| {
        if error.lasting { Failure::last(error.reason) } else { Failure::again(error.reason) }
    };
    let response = client.get(&url).await.map_err(lasting)?;
    let (parts, body) = response.into_parts();
    let body = whole(body).await.map_err(lasting)?;
    if parts.status != StatusCode::OK {
        return Err(match Failure::of_status(&url, parts.status, &parts.headers, &body) {
            Failure::UnknownModel => Failure::last(format!("`{url}` answered 404: {}", shown(&body))),
            other => other,
        });
    }
    let no_list = |error: serde_json::Error| Failure::last(format!("`{url}` answered with no list of models ({error}): {}", shown(&body)));
    serde_json::from_slice(&body).map_err(no_list)
}

//! A server as a backend.

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

/// A model that an OpenAI-compatible server serves.
///
/// - **Deadlines and cancellation**: at a request's deadline, and when its stream is dropped, the connection is closed; a server such as vLLM
///   then stops to generate. A request without a deadline ends after [`RemoteOptions::timeout`].
/// - **Retries**: what fails before its first token (no connection, 408, 429, 5xx, a stream that breaks) is tried again, with pauses that double
///   and jitter, or after the time that the server names in `Retry-After`. After the first token nothing is repeated.
/// - **Overload**: [`RemoteOptions::max_in_flight`] requests are with the server, [`RemoteOptions::queue`] wait, one more is refused with a retry
///   delay, and so is one that the server still refuses (429) after the last attempt.
/// - **Grammars**: see [`Dialect`](crate::Dialect). Text that leaves the grammar is led back where the grammar leaves no choice, and where
///   sampling may take another way; three times at most, then it is an error.
/// - **Control tokens**: a prompt goes out as one string, in which a server takes every control token for one. Where the prompt's text
///   spells one, a space is put after its first character.
pub struct Remote {
    shared: Arc<Shared>,
    /// The served adapter that speaks; `None`: the base.
    speaker: Option<AdapterVersion>,
    runtime: Handle,
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("info", &self.shared.info).field("speaker", &self.speaker).finish_non_exhaustive()
    }
}

/// What all completions use.
pub(crate) struct Shared {
    pub(crate) client: Client,
    pub(crate) options: RemoteOptions,
    pub(crate) info: BackendInfo,
    adapters: RwLock<Vec<AdapterVersion>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) grammars: Grammars,
    pub(crate) spellings: Spellings,
    /// Whether it has been told that the server does not hold to grammars: once is enough.
    pub(crate) warned: AtomicBool,
}

impl Remote {
    /// Finds the served name. Waits for a server that does not answer yet, up to [`RemoteOptions::start_timeout`]; one that answers and
    /// refuses is an error at once. Needs a tokio runtime, on which its completions run.
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
            // a server does not say what its weights are
            digest: String::new(),
            context_length,
            chat_template: false,
        };
        let queue = Arc::new(Queue::new(options.max_in_flight, options.queue));
        let adapters = RwLock::new(adapters);
        let shared = Shared { client, options, info, adapters, queue, grammars, spellings, warned: AtomicBool::new(false) };
        Ok(Remote { shared: Arc::new(shared), speaker, runtime: Handle::current() })
    }

    /// The adapter to name in requests, so that the configured model answers; `None`: it is the base.
    pub fn speaker(&self) -> Option<&AdapterVersion> {
        self.speaker.as_ref()
    }
}

impl Backend for Remote {
    fn info(&self) -> &BackendInfo {
        &self.shared.info
    }

    /// Those the server listed when it was last asked: at the start, and whenever an adapter seemed to be missing.
    fn adapters(&self) -> Vec<AdapterVersion> {
        self.shared.adapters.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError> {
        let ticket = self.shared.queue.enter()?;
        let (sender, stream) = GenerateStream::channel();
        let completion = Completion::new(Arc::clone(&self.shared), request, ticket, sender);
        // ends with its stream, its deadline or the bound on every completion
        drop(self.runtime.spawn(completion.run().instrument(tracing::Span::current())));
        Ok(stream)
    }
}

impl Shared {
    /// The served adapter of this name. One that is not known may have come since.
    pub(crate) async fn adapter(&self, name: &str) -> Result<AdapterVersion, GenerateError> {
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        self.look_again().await?;
        self.known(name).ok_or_else(|| self.unknown(name))
    }

    /// Asks the server what it serves now.
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

/// The list, as soon as there is one.
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

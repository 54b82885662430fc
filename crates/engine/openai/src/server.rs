//! The server: what it serves, and what all completions on it use.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use autoact_model::{AdapterVersion, BackendInfo, GenerateError};
use http::StatusCode;
use tokio::time::Instant;

use crate::error::RemoteError;
use crate::failure::{Failure, shown};
use crate::follow::Grammars;
use crate::http::{Client, whole};
use crate::models::{Listing, Served};
use crate::options::{Dialect, RemoteOptions};
use crate::queue::Queue;
use crate::retry;
use crate::spellings::Spellings;
use crate::wire::Counted;

/// A server and the state that all completions on it share.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) options: RemoteOptions,
    pub(crate) info: BackendInfo,
    pub(crate) adapters: RwLock<Vec<AdapterVersion>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) grammars: Grammars,
    pub(crate) spellings: Spellings,
    /// Whether the warning that the server does not apply grammars has been logged.
    pub(crate) warned: AtomicBool,
    /// Whether the server refuses requests for log-probabilities, so that none are asked for.
    pub(crate) scoreless: AtomicBool,
}

impl Server {
    /// The served adapter with this name. The server is asked again if the name is unknown.
    pub(crate) async fn adapter(&self, name: &str) -> Result<AdapterVersion, GenerateError> {
        if let Some(known) = self.known(name) {
            return Ok(known);
        }
        self.look_again().await?;
        self.known(name).ok_or_else(|| self.unknown(name))
    }

    /// Number of a prompt's tokens according to vLLM; `None` if the server cannot count.
    pub(crate) async fn counted(&self, model: &str, prompt: &str, add_bos: Option<bool>) -> Option<usize> {
        if self.options.dialect == Dialect::Openai {
            return None;
        }
        let mut body = serde_json::json!({ "model": model, "prompt": prompt });
        if let Some(bos) = add_bos {
            body["add_special_tokens"] = bos.into();
        }
        let url = self.client.url_beside("/tokenize");
        let response = self.client.post(&url, body.to_string().into_bytes()).await.ok()?;
        let body = whole(response.into_body()).await.ok()?;
        let counted: Option<Counted> = serde_json::from_slice(&body).ok();
        if counted.is_none() {
            tracing::debug!(url, answer = shown(&body), "the server does not count tokens");
        }
        counted.map(|counted| counted.count)
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
pub(crate) async fn wait_for(client: &Client, options: &RemoteOptions) -> Result<Served, RemoteError> {
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

//! The server: what it serves, and what all completions on it use.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use autoact_http_client::said::shown;
use autoact_http_client::{Client, whole};
use autoact_model::{AdapterVersion, BackendInfo, GenerateError};
use serde_json::Value;

use crate::error::RemoteError;
use crate::failure::{Failure, failed};
use crate::follow::Grammars;
use crate::options::{Dialect, MAX_BODY, RemoteOptions};
use crate::probe::{Style, list};
use crate::queue::Queue;
use crate::spellings::Spellings;
use crate::wire::{Asked, Counted};

/// A server and the state that all completions on it share.
pub(crate) struct Server {
    pub(crate) client: Client,
    pub(crate) options: RemoteOptions,
    pub(crate) info: BackendInfo,
    /// How it is asked.
    pub(crate) style: Style,
    /// How it is told a grammar.
    pub(crate) dialect: Dialect,
    pub(crate) adapters: RwLock<Vec<AdapterVersion>>,
    pub(crate) queue: Arc<Queue>,
    pub(crate) grammars: Grammars,
    pub(crate) spellings: Spellings,
    /// Whether the warning that the server does not apply grammars has been logged.
    pub(crate) warned: AtomicBool,
    /// Whether the server refuses requests for log-probabilities, so that none are asked for.
    pub(crate) scoreless: AtomicBool,
    /// Optional fields of requests that the server refuses, so that they are left out.
    pub(crate) refused: Mutex<Vec<&'static str>>,
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
    pub(crate) async fn counted(&self, model: &str, asked: &Asked<'_>, add_bos: Option<bool>) -> Option<usize> {
        if !self.dialect.guides() {
            return None;
        }
        let mut body = asked.to_json();
        body["model"] = model.into();
        if let Some(bos) = add_bos {
            body["add_special_tokens"] = bos.into();
        }
        let url = self.client.url_beside("/tokenize");
        let response = self.client.post(&url, body.to_string().into_bytes()).await.ok()?;
        let body = whole(response.into_body(), MAX_BODY).await.ok()?;
        let counted: Option<Counted> = serde_json::from_slice(&body).ok();
        if counted.is_none() {
            tracing::debug!(url, answer = shown(&body), "the server does not count tokens");
        }
        counted.map(|counted| counted.count)
    }

    /// A request whose answer is a status alone.
    pub(crate) async fn tell(&self, path: &str, body: &Value) -> Result<(), Failure> {
        let url = self.client.url(path);
        let asked = async {
            let response = self.client.post(&url, body.to_string().into_bytes()).await.map_err(failed)?;
            let (parts, body) = response.into_parts();
            let body = whole(body, MAX_BODY).await.map_err(failed)?;
            if parts.status.is_success() { Ok(()) } else { Err(Failure::of_status(&url, parts.status, &parts.headers, &body)) }
        };
        let late = |_| Failure::again(format!("`{url}` did not answer within `{:?}`", self.options.timeout));
        tokio::time::timeout(self.options.timeout, asked).await.map_err(late)?
    }

    /// The optional fields that requests leave out.
    pub(crate) fn left_out(&self) -> Vec<&'static str> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on requests leave out `fields`. Whether one of them is new.
    pub(crate) fn leave_out(&self, fields: Vec<&'static str>) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let before = refused.len();
        for field in fields {
            if !refused.contains(&field) {
                tracing::warn!(field, "the server refuses this field of a request: it is left out");
                refused.push(field);
            }
        }
        refused.len() > before
    }

    /// Asks the server for its models again.
    pub(crate) async fn look_again(&self) -> Result<(), GenerateError> {
        let Ok(listing) = list(&self.client).await.map_err(Failure::told)? else { return Ok(()) };
        let Some(served) = listing.around(&self.info.name) else {
            let (url, model) = (self.options.url.clone(), self.info.name.clone());
            return Err(GenerateError::engine(RemoteError::UnknownModel { url, model, served: listing.names() }.to_string()));
        };
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

//! How a server wants to be asked: what it serves, and through which of its interfaces. Servers do
//! not say, so it is found out with one token.

use std::path::{Path, PathBuf};

use autoact_http_client::retry;
use autoact_http_client::said::shown;
use autoact_http_client::{Client, whole};
use autoact_model::BackendInfo;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::error::RemoteError;
use crate::failure::{Failure, failed};
use crate::models::{Listing, Served};
use crate::options::{ASSUMED_CONTEXT, Api, Dialect, MAX_BODY, RemoteOptions};
use crate::wire::Usage;

/// The most tokens that a message of one letter has where the chat template adds nothing to it: the
/// letter, and a token at the beginning of every prompt.
const BARE_LETTER: usize = 2;
/// The longest `adapter_config.json` that is read, in bytes.
const MAX_ADAPTER_CONFIG: u64 = 1 << 20;
/// vLLM's first minor version (of major version 0) that knows `structured_outputs` alone.
const STRUCTURED_OUTPUTS: u64 = 12;

/// Through which interface a model is asked, and in which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `/completions`: the prompt is one text.
    Completions,
    /// `/chat/completions` of a model whose chat template adds nothing: the prompt is the text of
    /// one message.
    BareChat,
    /// `/chat/completions`: messages, of which the last is the beginning of the reply. The server
    /// continues it.
    ContinuedChat,
    /// `/chat/completions`: messages. The server begins every reply anew.
    Chat,
}

impl Style {
    /// The path below the API's URL.
    pub(crate) fn path(self) -> &'static str {
        if self == Style::Completions { "/completions" } else { "/chat/completions" }
    }

    /// Whether a prompt is to be messages.
    pub(crate) fn takes_messages(self) -> bool {
        matches!(self, Style::ContinuedChat | Style::Chat)
    }
}

/// What was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) info: BackendInfo,
    pub(crate) served: Served,
    pub(crate) style: Style,
    pub(crate) dialect: Dialect,
}

/// Finds the model and how it is asked. Waits for a server that does not answer yet.
pub(crate) async fn find(client: &Client, options: &RemoteOptions) -> Result<Found, RemoteError> {
    let probe = Probe { client, options, end: Instant::now() + options.start_timeout };
    let listing = probe.listing().await?;
    let listed = listing.as_ref().ok().and_then(|listing| listing.around(&options.model));
    let directory = listing.as_ref().ok().and_then(|listing| listing.directory(&options.model)).map(Path::to_owned);
    if let Some(directory) = directory
        && let Ok(Some(path)) = tokio::task::spawn_blocking(move || activated(&directory)).await
    {
        return Err(RemoteError::Activated { url: options.url.clone(), model: options.model.clone(), path });
    }
    let dialect = match options.dialect {
        Dialect::Auto if listing.as_ref().is_ok_and(Listing::is_of_vllm) => probe.vllm().await,
        Dialect::Auto => Dialect::Openai,
        dialect => dialect,
    };
    let style = probe.style(listed.is_some(), dialect).await?.map_err(|answers| match listing {
        Ok(listing) if listed.is_none() => {
            RemoteError::UnknownModel { url: options.url.clone(), model: options.model.clone(), served: listing.names() }
        }
        Ok(_) => mute(options, &answers),
        Err(no_list) => mute(options, &format!("{no_list}; {answers}")),
    })?;
    let served = listed.unwrap_or_else(|| Served::unlisted(&options.model));
    let context_length = match (served.context_length, options.context_length) {
        (Some(theirs), Some(ours)) => theirs.min(ours),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => {
            tracing::warn!(
                model = options.model,
                assumed = ASSUMED_CONTEXT,
                "the server does not say how many tokens its model reads; `engine.context_length` says it instead"
            );
            ASSUMED_CONTEXT
        }
    };
    let info = BackendInfo {
        name: served.base.clone(),
        // servers do not report a digest of their weights
        digest: String::new(),
        context_length,
        chat_template: style.takes_messages(),
    };
    Ok(Found { info, served, style, dialect })
}

/// The configuration of an activated adapter in a directory, if that is to be seen from here: where
/// the server runs on another machine it is not. Reads files: not for a thread of the runtime.
fn activated(directory: &Path) -> Option<PathBuf> {
    let path = Some(directory).filter(|directory| directory.is_absolute())?.join(autoact_lora::CONFIG_FILE);
    // not a pipe, nor something long: the server named it
    let small = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_ADAPTER_CONFIG);
    let text = Some(&path).filter(|_| small).and_then(|path| std::fs::read_to_string(path).ok())?;
    let config = autoact_lora::AdapterConfig::parse(&text, &path).ok()?;
    config.alora_invocation_tokens.map(|_| path)
}

fn mute(options: &RemoteOptions, reason: &str) -> RemoteError {
    RemoteError::Mute { url: options.url.clone(), model: options.model.clone(), reason: reason.to_owned() }
}

/// The list of models; an error text if the server has none.
pub(crate) async fn list(client: &Client) -> Result<Result<Listing, String>, Failure> {
    let url = client.url("/models");
    let response = client.get(&url).await.map_err(failed)?;
    let (parts, body) = response.into_parts();
    let body = whole(body, MAX_BODY).await.map_err(failed)?;
    match parts.status {
        StatusCode::OK => {
            Ok(serde_json::from_slice(&body)
                .map_err(|error| format!("`{url}` answered with no list of models ({error}): {}", shown(&body))))
        }
        // 500: `transformers serve` where it has downloaded nothing
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED | StatusCode::INTERNAL_SERVER_ERROR | StatusCode::NOT_IMPLEMENTED => {
            Ok(Err(format!("`{url}` answered {}: {}", parts.status.as_u16(), shown(&body))))
        }
        status => Err(Failure::of_status(&url, status, &parts.headers, &body)),
    }
}

/// Requests of the start, all of which end at the same time.
struct Probe<'a> {
    client: &'a Client,
    options: &'a RemoteOptions,
    end: Instant,
}

/// How many tokens a prompt had, if the server says it.
type PromptTokens = Option<usize>;

/// The answer to one token that was asked for, as far as it matters.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct OneToken {
    choices: Option<Vec<Value>>,
    usage: Option<Usage>,
}

impl Probe<'_> {
    /// The list of models, as soon as the server answers.
    async fn listing(&self) -> Result<Result<Listing, String>, RemoteError> {
        let url = self.client.url("/models");
        let listed = self.patiently(&url, || list(self.client)).await?;
        listed.map_err(|reason| RemoteError::Refused { url, reason })
    }

    /// How the model is asked; an error text if it is not served, or completes nothing.
    async fn style(&self, listed: bool, dialect: Dialect) -> Result<Result<Style, String>, RemoteError> {
        let chat = match self.options.api {
            Api::Completions => Err(String::new()),
            Api::Auto | Api::Chat => self.chat().await?,
        };
        let of_messages = if dialect.guides() { Style::ContinuedChat } else { Style::Chat };
        Ok(match (self.options.api, chat) {
            (Api::Auto | Api::Chat, Ok(tokens)) if tokens.is_none_or(|tokens| tokens > BARE_LETTER) => Ok(of_messages),
            (Api::Chat, Ok(_)) => Ok(Style::BareChat),
            (Api::Chat, Err(reason)) => Err(reason),
            // the same text, and the text that it has begun with is continued without doubt
            (_, Ok(_)) => Ok(self.completions().await?.map_or(Style::BareChat, |_| Style::Completions)),
            (_, Err(_)) if listed => Ok(Style::Completions),
            (_, Err(reason)) => match self.completions().await? {
                Ok(_) => Ok(Style::Completions),
                Err(other) if reason.is_empty() => Err(other),
                Err(other) => Err(format!("{other}; {reason}")),
            },
        })
    }

    async fn completions(&self) -> Result<Result<PromptTokens, String>, RemoteError> {
        self.one_token("/completions", json!({ "model": self.options.model, "prompt": "x", "max_tokens": 1 })).await
    }

    async fn chat(&self) -> Result<Result<PromptTokens, String>, RemoteError> {
        let body = |limit: &str| json!({ "model": self.options.model, "messages": [{ "role": "user", "content": "x" }], limit: 1 });
        match self.one_token("/chat/completions", body("max_tokens")).await? {
            Err(reason) if reason.contains("max_completion_tokens") => {
                self.one_token("/chat/completions", body("max_completion_tokens")).await
            }
            answer => Ok(answer),
        }
    }

    async fn one_token(&self, path: &str, body: Value) -> Result<Result<PromptTokens, String>, RemoteError> {
        let url = self.client.url(path);
        let body = body.to_string().into_bytes();
        self.patiently(&url, || async {
            let response = self.client.post(&url, body.clone()).await.map_err(failed)?;
            let (parts, body) = response.into_parts();
            let body = whole(body, MAX_BODY).await.map_err(failed)?;
            match parts.status.as_u16() {
                200 => {}
                // where a model has no chat template, some servers fail
                500 => return Err(Failure::last(format!("`{url}` answered 500: {}", shown(&body)))),
                404 => return Err(Failure::last(format!("`{url}` answered 404: {}", shown(&body)))),
                _ => return Err(Failure::of_status(&url, parts.status, &parts.headers, &body)),
            }
            let answer: OneToken = serde_json::from_slice(&body).unwrap_or_default();
            match answer.choices {
                Some(_) => Ok(answer.usage.map(|usage| usage.prompt_tokens).filter(|tokens| *tokens > 0)),
                None => Err(Failure::last(format!("`{url}` answered with no completion: {}", shown(&body)))),
            }
        })
        .await
    }

    /// The dialect of vLLM's version.
    async fn vllm(&self) -> Dialect {
        #[derive(Deserialize)]
        struct Version {
            version: String,
        }
        let url = self.client.url_beside("/version");
        let asked = async {
            let response = self.client.get(&url).await.ok()?;
            let body = whole(response.into_body(), MAX_BODY).await.ok()?;
            serde_json::from_slice::<Version>(&body).ok()
        };
        let version = tokio::time::timeout_at(self.end, asked).await.ok().flatten();
        version.map_or(Dialect::Vllm, |found| of_version(&found.version))
    }

    /// Asks until there is an answer, or a refusal that will not change, which is the inner error.
    async fn patiently<T, F>(&self, url: &str, ask: impl Fn() -> F) -> Result<Result<T, String>, RemoteError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let mut attempt = 0;
        let unreachable = |reason: String| RemoteError::Unreachable { url: url.to_owned(), waited: self.options.start_timeout, reason };
        loop {
            let reason = match tokio::time::timeout_at(self.end, ask()).await {
                Ok(Ok(answer)) => return Ok(Ok(answer)),
                Ok(Err(Failure::Again { message, .. })) => message,
                Ok(Err(refused)) => return Ok(Err(refused.told().to_string())),
                Err(_) => return Err(unreachable("it accepts connections and says nothing".to_owned())),
            };
            let pause = retry::pause(attempt, None);
            if Instant::now() + pause >= self.end {
                return Err(unreachable(reason));
            }
            if attempt == 0 {
                tracing::warn!(url, reason, limit = ?self.options.start_timeout, "waiting for the model's server");
            }
            tokio::time::sleep(pause).await;
            attempt += 1;
        }
    }
}

/// vLLM's dialect by its version, such as `0.11.2` or `0.12.0rc1.dev3+g1234`.
fn of_version(version: &str) -> Dialect {
    let mut parts = version.split('.').map(|part| part.parse::<u64>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(0), Some(minor)) if minor < STRUCTURED_OUTPUTS => Dialect::VllmGuided,
        _ => Dialect::Vllm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_says_the_dialect() {
        for old in ["0.11.2", "0.6.3.post1", "0.11.0rc1.dev3+g1234"] {
            assert_eq!(of_version(old), Dialect::VllmGuided, "{old}");
        }
        for new in ["0.12.0", "0.19.1", "1.0.0", "dev", ""] {
            assert_eq!(of_version(new), Dialect::Vllm, "{new}");
        }
    }
}

//! The model on another machine: its settings, and how an agent speaks through it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_config::{Check, Secret, duration};
use autoact_openai::{Api, ClientError, Dialect, Remote, RemoteError, RemoteOptions};
use autoact_service::StartError;
use autoact_trajectory::Role;
use serde::{Deserialize, Serialize};

use crate::config::{EngineConfig, without_adapter};
use crate::host::ServerHost;
use crate::load::{Opened, Sources, first_voice, open_registry};
use crate::registry::Configured;
use crate::template;
use crate::voice::Adapters;

/// An OpenAI-compatible server that speaks in place of an engine of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BackendConfig {
    /// Where its API begins: `http://vllm:8000/v1`; empty: the model runs in this process.
    pub url: String,
    /// The served name that speaks: a LoRA adapter's or the base's; empty: the agent's own name,
    /// `plan`, `tool` or `reflect`.
    pub model: String,
    /// How the server is asked: `completions` or `chat`; `auto`: as a chat where it has a chat
    /// template for the model.
    pub api: Api,
    /// How the server is told what a reply must look like: `vllm`, `vllm_guided` (before 0.12) or
    /// `openai` (of JSON alone); `auto`: as the server says what it is.
    pub dialect: Dialect,
    /// Sent as a bearer token.
    pub api_key: Secret,
    /// A file that holds the token.
    pub api_key_file: PathBuf,
    /// PEM certificates of the authorities to trust, beside those of the system.
    pub ca_file: PathBuf,
    /// A directory with the `tokenizer_config.json` and `chat_template.jinja` of a model that wants
    /// to be asked with its chat template; empty: with the plain transcript.
    pub chat_template: PathBuf,
    /// Where the server sees the directory of `adapter_registry`, whose versions it loads; empty:
    /// where the agent sees it.
    pub registry_path: PathBuf,
    /// Requests that are with the server at once; `engine.queue` more wait.
    pub max_in_flight: usize,
    /// Further attempts at a request that failed before its first token.
    pub retries: u32,
    /// How long a connection may take.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// How long the start waits for a server that does not answer yet.
    #[serde(with = "duration")]
    pub start_timeout: Duration,
    /// How long a reply may take, whatever the caller's deadline.
    #[serde(with = "duration")]
    pub timeout: Duration,
}

impl Default for BackendConfig {
    fn default() -> Self {
        let options = RemoteOptions::new("", "");
        BackendConfig {
            url: String::new(),
            model: String::new(),
            api: options.api,
            dialect: options.dialect,
            api_key: Secret::default(),
            api_key_file: PathBuf::new(),
            ca_file: PathBuf::new(),
            chat_template: PathBuf::new(),
            registry_path: PathBuf::new(),
            max_in_flight: options.max_in_flight,
            retries: options.retries,
            connect_timeout: options.connect_timeout,
            start_timeout: options.start_timeout,
            timeout: options.timeout,
        }
    }
}

impl BackendConfig {
    /// Whether the model runs elsewhere.
    pub fn is_remote(&self) -> bool {
        !self.url.is_empty()
    }

    /// What is wrong with it, and what of the agent's other settings does not go with it.
    pub fn validate(&self, adapter: &Path, registry: &Path, check: &mut Check<'_>) {
        let (adapter, registry) = (adapter.display().to_string(), registry.display().to_string());
        if self.is_remote() {
            let known = self.url.starts_with("http://") || self.url.starts_with("https://");
            check.require(known, "backend.url", "an address such as `http://vllm:8000/v1`", &self.url);
            // the built-in default is for the engine, and means nothing here
            let asked = check.given("adapter") && !adapter.is_empty();
            check.require(!asked, "adapter", "empty where `backend.url` is set: the adapters are the server's", adapter);
        } else {
            let alone = "empty where `backend.url` is";
            check.require(self.model.is_empty(), "backend.model", alone, &self.model);
            // a key without a server is not a mistake: a variable may hold it for all services of a
            // machine
            check.require(self.api_key_file.as_os_str().is_empty(), "backend.api_key_file", alone, self.api_key_file.display());
        }
        let seen = self.registry_path.display();
        let of_both = seen.to_string().is_empty() || (self.is_remote() && !registry.is_empty());
        check.require(of_both, "backend.registry_path", "empty without `backend.url` and `adapter_registry`", seen);
        let template = self.chat_template.display();
        let rendered = self.chat_template.as_os_str().is_empty() || self.api != Api::Chat;
        check.require(rendered, "backend.chat_template", "empty where `backend.api` is `chat`: the server has its own", template);
        let one_key = self.api_key.is_empty() || self.api_key_file.as_os_str().is_empty();
        check.require(one_key, "backend.api_key_file", "empty where `backend.api_key` is set", self.api_key_file.display());
        check.require(self.max_in_flight > 0, "backend.max_in_flight", "at least 1", self.max_in_flight);
        for (key, value) in [("connect_timeout", self.connect_timeout), ("timeout", self.timeout)] {
            check.require(!value.is_zero(), &format!("backend.{key}"), "more than 0s", duration::format(value));
        }
    }

    async fn options(&self, role: Role, engine: &EngineConfig) -> Result<RemoteOptions, StartError> {
        let model = if self.model.is_empty() { role.as_str() } else { &self.model };
        Ok(RemoteOptions {
            dialect: self.dialect,
            // what is rendered here is a text
            api: if self.chat_template.as_os_str().is_empty() { self.api } else { Api::Completions },
            api_key: self.key().await?,
            ca_file: (!self.ca_file.as_os_str().is_empty()).then(|| self.ca_file.clone()),
            context_length: (engine.context_length > 0).then_some(engine.context_length),
            max_in_flight: self.max_in_flight,
            queue: engine.queue,
            retries: self.retries,
            connect_timeout: self.connect_timeout,
            start_timeout: self.start_timeout,
            timeout: self.timeout,
            ..RemoteOptions::new(&self.url, model)
        })
    }

    async fn key(&self) -> Result<Secret, StartError> {
        if self.api_key_file.as_os_str().is_empty() {
            return Ok(self.api_key.clone());
        }
        let what = format!("cannot read the API key from `{}`", self.api_key_file.display());
        let fix = "set `backend.api_key_file` to a file that holds the key and nothing else";
        let text = tokio::fs::read_to_string(&self.api_key_file).await;
        let text = text.map_err(|error| StartError::because(&what, &error).fix(fix))?;
        match text.trim() {
            "" => Err(StartError::new(format!("{what}: it is empty")).fix(fix)),
            key => Ok(Secret::new(key)),
        }
    }
}

/// A server's model, with what speaks first.
pub(crate) async fn open(role: Role, sources: Sources<'_>, engine: &EngineConfig) -> Result<Opened, StartError> {
    let config = sources.backend;
    let mut options = config.options(role, engine).await?;
    let template = template::read(&config.chat_template).await?.map(|found| {
        options.control_tokens = found.control_tokens;
        found.template
    });
    let remote = Arc::new(Remote::connect(options).await.map_err(|error| refused(&config.url, &error))?);
    let speaker = remote.speaker().map(|adapter| adapter.name.clone());
    tracing::info!(agent = role.as_str(), server = config.url, path = remote.path(), dialect = ?remote.dialect(), "model found");
    let configured = Configured::Served(speaker);
    let host = ServerHost::new(Arc::clone(&remote), sources.registry, &config.registry_path);
    let adapters = Arc::new(Adapters::new(Arc::new(host)));
    let registry = sources.registry.to_owned();
    let first = tokio::task::spawn_blocking(move || {
        let source = if without_adapter(&registry) { None } else { Some(open_registry(role, registry, &configured, &adapters)?) };
        first_voice(role, source, &adapters, &configured).map_err(|error| StartError::because("cannot speak", &error))
    });
    let (voice, adapter, followed) = first.await.map_err(StartError::new)??;
    Ok(Opened { backend: remote, template, voice, adapter, followed })
}

fn refused(url: &str, error: &RemoteError) -> StartError {
    let fix = match error {
        RemoteError::UnknownModel { .. } => {
            "set `--backend-model NAME` to one of them, or serve one more: `vllm serve … --lora-modules plan=…`"
        }
        RemoteError::Activated { .. } => "serve one that always acts; `autoact model train plan --plain` makes such a one",
        RemoteError::ControlTokens { .. } => "check the `tokenizer_config.json` in `backend.chat_template`",
        RemoteError::Mute { .. } => {
            "set `--backend URL` to where the API begins, such as `http://vllm:8000/v1`, and `--backend-model NAME` to a model it has"
        }
        RemoteError::Client(ClientError::Key) => "check `backend.api_key`, or the file that `backend.api_key_file` names",
        RemoteError::Client(ClientError::Certificates { .. } | ClientError::NoAuthorities { .. }) => {
            "set `backend.ca_file` to a PEM file with the certificate of the server's authority"
        }
        RemoteError::Unreachable { .. } => "start the server, or set `--backend URL` to where it listens",
        RemoteError::Client(ClientError::Url { .. }) | RemoteError::Refused { .. } | RemoteError::Grammars { .. } => {
            "set `--backend URL` to where the API begins, such as `http://vllm:8000/v1`, and `backend.api_key` where it wants a key"
        }
    };
    StartError::because(format!("cannot speak through `{url}`"), error).fix(fix)
}

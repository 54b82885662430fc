//! Options of a remote backend.

use std::path::PathBuf;
use std::time::Duration;

use autoact_config::Secret;
use autoact_http_client::ClientOptions;
use serde::{Deserialize, Serialize};

/// How a grammar is sent to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// As the server's list of models says: vLLM names itself there, and has its version at
    /// `/version`. Any other is [`Openai`](Dialect::Openai).
    #[default]
    Auto,
    /// vLLM 0.12 and later: `structured_outputs`.
    Vllm,
    /// vLLM before 0.12: `guided_regex`, `guided_choice`, `guided_grammar`, `guided_json`.
    VllmGuided,
    /// OpenAI's own fields only: of grammars, a JSON schema in a chat. The reply is cut where the
    /// grammar is complete, and continued in a further round where it violates the grammar.
    Openai,
}

/// Which of the server's interfaces completes prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// Found out with one token at the start: a chat where the server has a chat template for the
    /// model, otherwise completions.
    #[default]
    Auto,
    /// `/completions`: the prompt is one text.
    Completions,
    /// `/chat/completions`: the prompt is messages, and the server applies the chat template.
    Chat,
}

impl Dialect {
    /// Whether the grammar is sent to the server.
    pub(crate) fn guides(self) -> bool {
        matches!(self, Dialect::Vllm | Dialect::VllmGuided)
    }
}

/// Requests at the server at a time: vLLM batches 256 by default, and three agents share it.
const DEFAULT_MAX_IN_FLIGHT: usize = 64;
/// Requests that wait.
const DEFAULT_QUEUE: usize = 64;
/// Three retries cover the restart of a proxy, but not of the server.
const DEFAULT_RETRIES: u32 = 3;
/// Servers of the same cluster accept a connection in milliseconds.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that was just started loads its model for up to minutes.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(120);
/// Tokens that models of the last years read at least; a prompt that is refused as too long is
/// shortened.
pub(crate) const ASSUMED_CONTEXT: usize = 4096;
/// Maximum size in bytes of a body that is read whole: lists of models, errors, replies that are
/// not streamed.
pub(crate) const MAX_BODY: usize = 4 << 20;
/// Time limit of a completion without a deadline.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// Options of a [`Remote`](crate::Remote).
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// The base URL of the API: `http://vllm:8000/v1`.
    pub url: String,
    /// The served name: a LoRA adapter or a base.
    pub model: String,
    /// How a grammar is sent to the server.
    pub dialect: Dialect,
    /// Which interface completes prompts.
    pub api: Api,
    /// API key, sent as a bearer token; empty: none.
    pub api_key: Secret,
    /// PEM file of certificate authorities to trust, in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Maximum number of tokens of prompt and completion, for a server that does not report it; it
    /// can also reduce the server's value. Without either, 4,096 are assumed.
    pub context_length: Option<usize>,
    /// Spellings of the model's control tokens, which are broken up in text parts. Empty: those of
    /// the known model families.
    pub control_tokens: Vec<String>,
    /// Maximum number of requests at the server.
    pub max_in_flight: usize,
    /// Maximum number of waiting requests; further ones are refused as overloaded.
    pub queue: usize,
    /// Maximum number of retries of a request that failed before its first token.
    pub retries: u32,
    /// Time limit of a connection.
    pub connect_timeout: Duration,
    /// How long [`Remote::connect`](crate::Remote::connect) waits for a server that does not
    /// answer.
    pub start_timeout: Duration,
    /// Time limit of a completion, in addition to its deadline.
    pub timeout: Duration,
}

impl RemoteOptions {
    /// Default options for the served name `model` at `url`.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> RemoteOptions {
        RemoteOptions {
            url: url.into(),
            model: model.into(),
            dialect: Dialect::default(),
            api: Api::default(),
            api_key: Secret::default(),
            ca_file: None,
            context_length: None,
            control_tokens: Vec::new(),
            max_in_flight: DEFAULT_MAX_IN_FLIGHT,
            queue: DEFAULT_QUEUE,
            retries: DEFAULT_RETRIES,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            start_timeout: DEFAULT_START_TIMEOUT,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// The part of the HTTP client.
    pub(crate) fn client(&self) -> ClientOptions {
        ClientOptions {
            url: self.url.clone(),
            api_key: self.api_key.clone(),
            ca_file: self.ca_file.clone(),
            connect_timeout: self.connect_timeout,
        }
    }
}

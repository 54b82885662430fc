//! How a server is reached and spoken to.

use std::path::PathBuf;
use std::time::Duration;

use autoact_config::Secret;
use serde::{Deserialize, Serialize};

/// How the server is told what a completion must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// vLLM from 0.12 on: `structured_outputs`.
    #[default]
    Vllm,
    /// vLLM before 0.12: `guided_regex`, `guided_choice`, `guided_grammar`, `guided_json`.
    VllmGuided,
    /// Nothing but OpenAI's own fields. The server does not hold the model to a grammar: its text is cut where the grammar is satisfied, and
    /// led back where it leaves it.
    Openai,
}

impl Dialect {
    /// Whether the server is told of the grammar.
    pub(crate) fn guides(self) -> bool {
        self != Dialect::Openai
    }
}

/// Requests that are with the server at once: vLLM batches 256 by default, and three agents share it.
const DEFAULT_MAX_IN_FLIGHT: usize = 64;
/// Requests that wait for one of those places.
const DEFAULT_QUEUE: usize = 64;
/// Three more attempts bridge a restart of a proxy, not one of the server.
const DEFAULT_RETRIES: u32 = 3;
/// A server of the same cluster answers in milliseconds.
const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that has just been started loads its model for minutes.
const DEFAULT_START_TIMEOUT: Duration = Duration::from_secs(120);
/// Nobody waits longer for one completion, deadline or not.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// How a [`Remote`](crate::Remote) runs.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Where the API begins: `http://vllm:8000/v1`.
    pub url: String,
    /// The served name that speaks: a LoRA adapter's or the base's.
    pub model: String,
    /// How the server is told of a grammar.
    pub dialect: Dialect,
    /// Sent as a bearer token; empty: none.
    pub api_key: Secret,
    /// PEM certificates of the authorities to trust, beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// Most tokens of prompt and completion together, where the server does not say or less is wanted.
    pub context_length: Option<usize>,
    /// Spellings of the model's control tokens, which are broken up where text holds them; empty:
    /// those of the families that we know.
    pub control_tokens: Vec<String>,
    /// Requests that are with the server at once.
    pub max_in_flight: usize,
    /// Requests that wait for one of those places; one more is refused as overloaded.
    pub queue: usize,
    /// Further attempts at a request that failed before its first token.
    pub retries: u32,
    /// How long a connection may take.
    pub connect_timeout: Duration,
    /// How long [`Remote::connect`](crate::Remote::connect) waits for a server that does not answer yet.
    pub start_timeout: Duration,
    /// How long a completion may take, whatever its deadline.
    pub timeout: Duration,
}

impl RemoteOptions {
    /// The served name `model` of the server at `url`, and the defaults.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> RemoteOptions {
        RemoteOptions {
            url: url.into(),
            model: model.into(),
            dialect: Dialect::default(),
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
}

//! The interface between services and whatever answers prompts.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::{ChatTemplate, GenerateStream, Grammar, Prompt, Sampling, WordBias};

/// One prompt, and how to continue it.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// What to continue.
    pub prompt: Prompt,
    /// Name of a loaded adapter; `None` = the base.
    pub adapter: Option<String>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Most tokens to generate; the context's end may come first.
    pub max_tokens: usize,
    /// Texts that end the completion; they are not part of it.
    pub stop: Vec<String>,
    /// Words to lean towards. Only the engine can; a server elsewhere answers without.
    pub word_bias: Option<WordBias>,
    /// What the completion must look like.
    pub grammar: Option<Grammar>,
    /// When the answer is of no use any more.
    pub deadline: Option<Instant>,
    /// Whether the begin-of-sequence token goes first; `None` = as the tokenizer's own files say.
    pub add_bos: Option<bool>,
}

/// Enough for a thought and an action; callers with longer answers say so.
const DEFAULT_MAX_TOKENS: usize = 256;

impl GenerateRequest {
    /// Greedy, unconstrained, by the base, at most 256 tokens.
    pub fn new(prompt: impl Into<Prompt>) -> Self {
        Self {
            prompt: prompt.into(),
            adapter: None,
            sampling: Sampling::greedy(),
            max_tokens: DEFAULT_MAX_TOKENS,
            stop: Vec::new(),
            word_bias: None,
            grammar: None,
            deadline: None,
            add_bos: None,
        }
    }
}

/// What a stream gives.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerateEvent {
    /// More text. A slow reader gets several tokens' text in one event.
    Token {
        /// Never empty, never half a character, never part of a stop string.
        text: String,
    },
    /// The end, and all that was generated.
    Done(Generated),
}

/// A finished completion.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The whole completion, as the events gave it.
    pub text: String,
    /// Why it ended.
    pub finish: FinishReason,
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Of those, how many were already in a cache.
    pub cached_prompt_tokens: usize,
    /// Tokens generated, one that ended the sequence included.
    pub completion_tokens: usize,
    /// Tokens read on the chance that they come next.
    pub drafted_tokens: usize,
    /// Of those, how many did.
    pub accepted_tokens: usize,
    /// Waiting for the model.
    pub queue: Duration,
    /// Reading the prompt, up to the first token's logits.
    pub prefill: Duration,
    /// Generating, from there on.
    pub decode: Duration,
    /// The adapter that answered.
    pub adapter: Option<AdapterVersion>,
    /// The model's name.
    pub model: String,
}

/// Why a completion ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model ended it, or a stop string came.
    Stop,
    /// The grammar is satisfied.
    Grammar,
    /// `max_tokens`, or the end of the context.
    Length,
}

/// An adapter, by name and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterVersion {
    /// The name requests use.
    pub name: String,
    /// sha256 (hex) of its files.
    pub digest: String,
}

/// What a backend says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendInfo {
    /// The model's name.
    pub name: String,
    /// sha256 (hex) of its weights.
    pub digest: String,
    /// Most tokens of prompt and completion together.
    pub context_length: usize,
    /// Whether the model brings a chat template.
    pub chat_template: bool,
}

/// Something that continues prompts: the engine here, a scripted one in tests, a server elsewhere.
pub trait Backend: Send + Sync + 'static {
    /// What this backend is; does not change.
    fn info(&self) -> &BackendInfo;

    /// The adapters that requests can name now. Not part of [`BackendInfo`] because adapters come and go while the
    /// backend serves.
    fn adapters(&self) -> Vec<AdapterVersion>;

    /// Starts a completion and returns at once; dropping the stream cancels it.
    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError>;

    /// How the model wants to be asked; `None`: with the plain transcript, or nothing is known of it here.
    fn chat_template(&self) -> Option<&ChatTemplate> {
        None
    }

    /// Bytes of keys and values held in this process; `None` where the model runs elsewhere.
    fn cache_bytes(&self) -> Option<usize> {
        None
    }
}

/// Why a completion failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// Too many requests are waiting.
    #[error("the model's queue is full; try again in `{retry_after:?}`")]
    Overloaded {
        /// When a place is likely.
        retry_after: Duration,
    },
    /// The prompt leaves no room for a completion.
    #[error("the prompt has `{tokens}` tokens, at most `{limit}` fit")]
    PromptTooLong {
        /// Tokens of the prompt.
        tokens: usize,
        /// Most that would have been accepted.
        limit: usize,
    },
    /// No adapter of that name is loaded.
    #[error("no adapter `{name}`; loaded: `{}`", loaded.join("`, `"))]
    UnknownAdapter {
        /// The name asked for.
        name: String,
        /// Those there are.
        loaded: Vec<String>,
    },
    /// The grammar does not compile.
    #[error("the grammar does not compile: {reason}")]
    InvalidGrammar {
        /// Where and why.
        reason: String,
    },
    /// The request's deadline passed before it was done.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// Nobody waits for the answer any more.
    #[error("cancelled")]
    Cancelled,
    /// The engine itself failed.
    #[error("the model engine failed: {message}")]
    Engine {
        /// What happened.
        message: String,
    },
}

impl GenerateError {
    /// An [`Engine`](Self::Engine) failure.
    pub fn engine(message: impl Into<String>) -> Self {
        Self::Engine { message: message.into() }
    }

    /// Whether the same request may succeed later. Only an overload passes by itself.
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Overloaded { .. })
    }
}

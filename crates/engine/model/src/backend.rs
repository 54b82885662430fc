//! The interface between services and a model backend, which completes prompts.

use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{ChatTemplate, GenerateStream, Grammar, Message, Prompt, Sampling, Scored, Scores, WordBias, WordLimit};

/// A prompt, and how to complete it.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateRequest {
    /// The prompt.
    pub prompt: Prompt,
    /// Name of a loaded adapter; `None`: the base model.
    pub adapter: Option<String>,
    /// Sampling parameters.
    pub sampling: Sampling,
    /// Maximum number of generated tokens. The end of the context may come first.
    pub max_tokens: usize,
    /// Stop strings: they end the completion and are not part of it.
    pub stop: Vec<String>,
    /// Logit bias on words. Only the engine supports it; remote servers ignore it.
    pub word_bias: Vec<WordBias>,
    /// The only words of the completion's first line; `None`: any. Where none of them goes on, any does.
    /// Only the engine supports it; remote servers ignore it.
    pub word_limit: Option<WordLimit>,
    /// A grammar that the completion must match.
    pub grammar: Option<Grammar>,
    /// The time after which the completion is not needed any more.
    pub deadline: Option<Instant>,
    /// Whether the begin-of-sequence token comes first; `None`: as the tokenizer's files define it.
    pub add_bos: Option<bool>,
    /// Log-probabilities to compute beside decoding; `None`: none, which costs nothing.
    pub scores: Option<Scores>,
    /// Whose prompt it is; `None`: there is one owner only. The engine alone keeps owners apart;
    /// remote servers have caches of their own.
    pub owner: Option<Owner>,
}

/// Whose prompt it is. What is cached of the prompt, and the drafts made from its completion, serve
/// this owner alone: neither the time of a call nor its cached tokens tell another one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Owner {
    /// The owner's name.
    pub name: String,
    /// What the prompt begins with that all owners may share.
    pub head: Prompt,
}

/// Enough for a thought and an action; callers set it for longer replies.
const DEFAULT_MAX_TOKENS: usize = 256;

impl GenerateRequest {
    /// A request for greedy, unconstrained decoding by the base, with at most 256 tokens.
    pub fn new(prompt: impl Into<Prompt>) -> Self {
        Self {
            prompt: prompt.into(),
            adapter: None,
            sampling: Sampling::greedy(),
            max_tokens: DEFAULT_MAX_TOKENS,
            stop: Vec::new(),
            word_bias: Vec::new(),
            word_limit: None,
            grammar: None,
            deadline: None,
            add_bos: None,
            scores: None,
            owner: None,
        }
    }
}

/// An event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum GenerateEvent {
    /// Further text. A slow reader gets the text of several tokens in one event.
    Token {
        /// Never empty, never ends within a character, never contains a part of a stop string.
        text: String,
    },
    /// The end, with the whole completion.
    Done(Generated),
}

/// A finished completion.
#[derive(Debug, Clone, PartialEq)]
pub struct Generated {
    /// The whole completion, which is the concatenated text of the events.
    pub text: String,
    /// Why decoding ended.
    pub finish: FinishReason,
    /// Number of prompt tokens.
    pub prompt_tokens: usize,
    /// Number of prompt tokens whose keys and values came from a cache.
    pub cached_prompt_tokens: usize,
    /// Number of generated tokens, including one that ended the sequence.
    pub completion_tokens: usize,
    /// Number of drafted tokens (speculative decoding).
    pub drafted_tokens: usize,
    /// Number of drafted tokens that were accepted.
    pub accepted_tokens: usize,
    /// Time in the queue.
    pub queue: Duration,
    /// Time of prefill, up to the logits of the first token.
    pub prefill: Duration,
    /// Time of decoding, from there to the end.
    pub decode: Duration,
    /// The adapter that was used.
    pub adapter: Option<AdapterVersion>,
    /// The model's name.
    pub model: String,
    /// The log-probabilities that the request asked for; `None` if it asked for none, or if a
    /// server does not report them. Boxed: a stream's other events are small.
    pub scores: Option<Box<Scored>>,
}

/// Why decoding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end-of-sequence token or a stop string.
    Stop,
    /// The grammar allows no further token.
    Grammar,
    /// `max_tokens` or the end of the context.
    Length,
    /// The same, and the text repeats itself up to its end. No backend says so; what composes
    /// prompts does.
    Repetition,
}

/// An adapter, identified by name and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterVersion {
    /// The name in requests.
    pub name: String,
    /// SHA-256 digest (hex) of its files.
    pub digest: String,
}

/// Properties of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendInfo {
    /// The model's name.
    pub name: String,
    /// SHA-256 digest (hex) of its weights.
    pub digest: String,
    /// Maximum number of tokens of prompt and completion together.
    pub context_length: usize,
    /// Whether the model has a chat template.
    pub chat_template: bool,
}

/// Completes prompts: the engine of this crate, a scripted backend in tests, or a remote server.
pub trait Backend: Send + Sync + 'static {
    /// The backend's properties, which do not change.
    fn info(&self) -> &BackendInfo;

    /// The loaded adapters. They are not part of [`BackendInfo`] because they change while the
    /// backend serves.
    fn adapters(&self) -> Vec<AdapterVersion>;

    /// Starts a completion and returns immediately. Dropping the stream cancels it.
    fn generate(&self, request: GenerateRequest) -> Result<GenerateStream, GenerateError>;

    /// The model's chat template; `None` if it has none, or if the remote server applies it.
    fn chat_template(&self) -> Option<&ChatTemplate> {
        None
    }

    /// Whether a prompt is to be messages ([`Prompt::reply_to`]), which a remote server renders with
    /// its model's chat template.
    fn takes_messages(&self) -> bool {
        false
    }

    /// The tokens of a prompt. `add_bos` is as in [`GenerateRequest`]. A backend without a
    /// tokenizer estimates them, rather too high.
    fn count_tokens(&self, prompt: &Prompt, add_bos: Option<bool>) -> BoxFuture<'_, Result<usize, GenerateError>> {
        let _ = add_bos;
        std::future::ready(Ok(estimated_prompt_tokens(prompt))).boxed()
    }

    /// Bytes of keys and values in this process; `None` if the model runs elsewhere.
    fn cache_bytes(&self) -> Option<usize> {
        None
    }

    /// How long the model's thread is at one piece of work, such as a forward pass; `None` if it
    /// waits for work, or the model runs elsewhere. A pass takes seconds at most, so a long time
    /// says that it never ends.
    fn at_work(&self) -> Option<Duration> {
        None
    }
}

/// [`estimated_tokens`] of all that a prompt says, its messages included, and of what a chat
/// template puts around each of them.
pub fn estimated_prompt_tokens(prompt: &Prompt) -> usize {
    const AROUND: usize = 8;
    let message = |message: &Message| estimated_tokens(&message.content) + AROUND;
    estimated_tokens(prompt) + prompt.messages().iter().map(message).sum::<usize>()
}

/// Tokens that a text has at most with most vocabularies: a word of English has four or five
/// letters and is a token or two, a character of another script is up to one and a half.
pub fn estimated_tokens(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(3) + (text.len() - ascii).div_ceil(2)
}

/// Why a completion failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// Too many requests are waiting.
    #[error("the model's queue is full; try again in `{retry_after:?}`")]
    Overloaded {
        /// When to try again.
        retry_after: Duration,
    },
    /// The prompt leaves no room for a completion.
    #[error("the prompt has `{tokens}` tokens, at most `{limit}` fit")]
    PromptTooLong {
        /// Number of prompt tokens.
        tokens: usize,
        /// Maximum number of prompt tokens.
        limit: usize,
    },
    /// No adapter of that name is loaded.
    #[error("no adapter `{name}`; loaded: `{}`", loaded.join("`, `"))]
    UnknownAdapter {
        /// The requested name.
        name: String,
        /// The loaded adapters.
        loaded: Vec<String>,
    },
    /// The grammar cannot be compiled.
    #[error("the grammar does not compile: {reason}")]
    InvalidGrammar {
        /// The position and the cause.
        reason: String,
    },
    /// A server's reply does not match the grammar, after as many attempts as are made.
    #[error("the model's reply does not have the form that is needed: {reason}")]
    Malformed {
        /// Where it leaves the grammar.
        reason: String,
    },
    /// The request's deadline passed before it was done.
    #[error("the deadline passed")]
    DeadlineExceeded,
    /// The stream was dropped.
    #[error("cancelled")]
    Cancelled,
    /// The engine itself failed.
    #[error("the model engine failed: {message}")]
    Engine {
        /// The cause.
        message: String,
    },
}

impl GenerateError {
    /// An [`Engine`](Self::Engine) failure.
    pub fn engine(message: impl Into<String>) -> Self {
        Self::Engine { message: message.into() }
    }

    /// Whether the same request can succeed later, which is true only for an overload.
    pub fn retryable(&self) -> bool {
        matches!(self, Self::Overloaded { .. })
    }
}

//! What an agent's call cost, and what stood around it.

use std::time::Duration;

use crate::bounds::{MAX_NAME_BYTES, cut};

/// Where the time of one agent call went, its tokens, and how likely its words were.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Waiting for the model.
    pub queue: Duration,
    /// Reading the prompt.
    pub prefill: Duration,
    /// Writing the reply.
    pub decode: Duration,
    /// The tool's own run.
    pub tool: Duration,
    /// The call as the gateway saw it, network included.
    pub total: Duration,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Of these, tokens that were not read again.
    pub cached_prompt_tokens: u32,
    /// Tokens written.
    pub completion_tokens: u32,
    /// The base model's name.
    pub model: String,
    /// The adapter's name; empty for the base alone.
    pub adapter: String,
    /// SHA-256 of the adapter that spoke.
    pub adapter_digest: String,
    /// The sum of the natural log-probabilities of the agent's own words, from the model's raw
    /// logits: of a thought up to the action or verdict after it, of an input. `None`: unknown,
    /// since the model's server reports none, or an earlier release wrote the event.
    pub log_prob: Option<f64>,
    /// Tokens of these words; 0 without a sum.
    pub scored_tokens: u32,
}

impl Usage {
    /// The mean log-probability of a token of the agent's own words; `None` if it is unknown.
    pub fn mean_log_prob(&self) -> Option<f64> {
        self.log_prob.filter(|_| self.scored_tokens > 0).map(|sum| sum / f64::from(self.scored_tokens))
    }

    /// The same with names that fit an event.
    #[must_use]
    pub fn bounded(self) -> Usage {
        let name = |text| cut(text, MAX_NAME_BYTES).0;
        Usage { model: name(self.model), adapter: name(self.adapter), adapter_digest: name(self.adapter_digest), ..self }
    }
}

/// Where the time between an event and the one before went, the call that [`Usage`] tells of left
/// out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timing {
    /// The gateway's own work; for `Submitted` since the request came, for `Started` since the
    /// lease did.
    pub own: Duration,
    /// Storing the event before; for `Started` reading the trajectory.
    pub bus: Duration,
    /// Attempts of the call that failed, and the pauses after them.
    pub retry: Duration,
}

/// How long a prompt is, and how long it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptSize {
    /// Tokens of the prompt.
    pub tokens: usize,
    /// The most tokens that leave room for a whole reply in the model's context.
    pub limit: usize,
}

impl PromptSize {
    /// Whether a reply has room.
    pub fn fits(self) -> bool {
        self.tokens <= self.limit
    }
}

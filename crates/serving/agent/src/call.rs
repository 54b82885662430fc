//! One call of the model as traces and metrics see it.

use autoact_model::{FinishReason, GenerateError, GenerateRequest, Generated};
use autoact_telemetry::gen_ai;
use tracing::Span;

/// Counted when it ends; one that is dropped before counts as cancelled.
#[derive(Debug)]
pub(crate) struct Call {
    agent: &'static str,
    span: Span,
    capture_content: bool,
    ended: bool,
}

impl Call {
    pub(crate) fn begin(agent: &'static str, span: Span, request: &GenerateRequest, capture_content: bool) -> Call {
        span.record(gen_ai::REQUEST_MAX_TOKENS, request.max_tokens);
        span.record(gen_ai::REQUEST_TEMPERATURE, f64::from(request.sampling.temperature));
        span.record(gen_ai::REQUEST_SEED, request.sampling.seed);
        if let Some(k) = request.sampling.top_k {
            span.record(gen_ai::REQUEST_TOP_K, k);
        }
        if let Some(p) = request.sampling.top_p {
            span.record(gen_ai::REQUEST_TOP_P, f64::from(p));
        }
        if capture_content {
            span.record(gen_ai::INPUT_MESSAGES, request.prompt.as_str());
        }
        Call { agent, span, capture_content, ended: false }
    }

    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// The reply is complete; the model's process keeps `cache_bytes` of keys and values.
    pub(crate) fn done(&mut self, generated: &Generated, cache_bytes: Option<usize>) {
        let finish = match generated.finish {
            FinishReason::Stop | FinishReason::Grammar => "stop",
            FinishReason::Length => "length",
            FinishReason::Repetition => "repetition",
        };
        self.span.record(gen_ai::RESPONSE_FINISH_REASONS, finish);
        self.span.record(gen_ai::USAGE_INPUT_TOKENS, generated.prompt_tokens);
        self.span.record(gen_ai::USAGE_CACHE_READ_INPUT_TOKENS, generated.cached_prompt_tokens);
        self.span.record(gen_ai::USAGE_OUTPUT_TOKENS, generated.completion_tokens);
        if self.capture_content {
            self.span.record(gen_ai::OUTPUT_MESSAGES, generated.text.as_str());
        }
        for (phase, took) in [("queue", generated.queue), ("prefill", generated.prefill), ("decode", generated.decode)] {
            metrics::histogram!("autoact_model_seconds", "agent" => self.agent, "phase" => phase).record(took.as_secs_f64());
        }
        let tokens = [
            ("prompt", generated.prompt_tokens.saturating_sub(generated.cached_prompt_tokens)),
            ("cached", generated.cached_prompt_tokens),
            ("completion", generated.completion_tokens),
            ("drafted", generated.drafted_tokens),
            ("accepted", generated.accepted_tokens),
        ];
        for (kind, tokens) in tokens {
            metrics::counter!("autoact_model_tokens_total", "agent" => self.agent, "kind" => kind).increment(tokens as u64);
        }
        if let Some(bytes) = cache_bytes {
            metrics::gauge!("autoact_model_cache_bytes", "agent" => self.agent).set(bytes as f64);
        }
        self.end(if generated.finish == FinishReason::Repetition { "repeated" } else { "ok" });
    }

    pub(crate) fn failed(&mut self, error: &GenerateError) {
        let outcome = match error {
            GenerateError::Overloaded { .. } => "overloaded",
            GenerateError::PromptTooLong { .. } => "prompt_too_long",
            GenerateError::DeadlineExceeded => "deadline_exceeded",
            GenerateError::Cancelled => "cancelled",
            GenerateError::UnknownAdapter { .. }
            | GenerateError::InvalidGrammar { .. }
            | GenerateError::Malformed { .. }
            | GenerateError::Engine { .. } => {
                tracing::error!(parent: &self.span, %error, agent = self.agent, "the model failed");
                "failed"
            }
        };
        self.span.record(gen_ai::ERROR_TYPE, outcome);
        self.span.record("otel.status_code", "ERROR");
        self.end(outcome);
    }

    fn end(&mut self, outcome: &'static str) {
        if !std::mem::replace(&mut self.ended, true) {
            metrics::counter!("autoact_model_calls_total", "agent" => self.agent, "outcome" => outcome).increment(1);
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.ended {
            self.span.record(gen_ai::ERROR_TYPE, "cancelled");
            self.end("cancelled");
        }
    }
}

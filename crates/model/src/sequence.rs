//! One request's way through the model, one token boundary at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use candle_core::Tensor;

use crate::detokenize::TextStream;
use crate::engine::{LoadedAdapter, Shared};
use crate::grammar::{Constraint, Grammars};
use crate::prefix::Prefixes;
use crate::sampler::Sampler;
use crate::{FinishReason, GenerateError, GenerateRequest, GenerateSender, Generated, KvCache, Logits};

/// A request with everything that could be settled before it met the model.
pub(crate) struct Work {
    pub(crate) request: GenerateRequest,
    pub(crate) tokens: Vec<u32>,
    pub(crate) adapter: Option<Arc<LoadedAdapter>>,
    pub(crate) queued: Instant,
    /// The caller's span: what the model does belongs to it.
    pub(crate) span: tracing::Span,
}

/// A request in the model. [`advance`](Self::advance) does the work between two token boundaries; between them the
/// sequence can wait, be cancelled, or make room for others.
pub(crate) struct Sequence {
    work: Work,
    /// Prompt and completion.
    tokens: Vec<u32>,
    cache: KvCache,
    sampler: Sampler,
    constraint: Option<Constraint>,
    text: TextStream,
    cached: usize,
    started: Instant,
    prefill: Duration,
}

/// Prompt tokens read between two looks at deadline and cancellation.
const PREFILL_CHUNK: usize = 256;

impl Sequence {
    /// Compiles the grammar and finds a cache to start from.
    pub(crate) fn start(work: Work, shared: &Shared, grammars: &mut Grammars, prefixes: &mut Prefixes) -> Result<Self, GenerateError> {
        let started = Instant::now();
        let constraint = work.request.grammar.as_ref().map(|g| grammars.start(g)).transpose()?;
        let cache = match prefixes.take(work.adapter.as_ref().map(|a| a.version.digest.as_str()), &work.tokens)? {
            Some(cache) => cache,
            None => shared.model.new_cache()?,
        };
        Ok(Self {
            tokens: work.tokens.clone(),
            cached: cache.len(),
            cache,
            sampler: Sampler::new(work.request.sampling),
            constraint,
            text: TextStream::new(&work.request.stop),
            started,
            prefill: Duration::ZERO,
            work,
        })
    }

    /// Whether anybody still wants this.
    pub(crate) fn check(work: &Work, sender: &GenerateSender) -> Result<(), GenerateError> {
        if sender.is_cancelled() {
            return Err(GenerateError::Cancelled);
        }
        match work.request.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(GenerateError::DeadlineExceeded),
            _ => Ok(()),
        }
    }

    /// Up to the next token boundary: a chunk of the prompt, or one token. The reason once it is finished.
    pub(crate) fn advance(&mut self, shared: &Shared, sender: &mut GenerateSender) -> Result<Option<FinishReason>, GenerateError> {
        Self::check(&self.work, sender)?;
        let left = self.tokens.len() - self.cache.len();
        let chunk = left.min(PREFILL_CHUNK);
        let from = self.cache.len();
        let adapter = self.work.adapter.as_ref().map(|a| &a.bound);
        let logits = shared.model.forward(&self.tokens[from..from + chunk], &mut self.cache, adapter, Logits::Last)?;
        if chunk < left {
            return Ok(None);
        }
        if self.completed() == 0 {
            self.prefill = self.started.elapsed();
        }
        if self.work.request.max_tokens == 0 {
            return Ok(Some(FinishReason::Length));
        }
        let token = self.choose(logits)?;
        self.tokens.push(token);
        let finish = self.accept(token, shared)?;
        let text = if finish.is_some() { self.text.finish() } else { self.text.take() };
        if let Some(text) = text {
            sender.text(&text);
        }
        Ok(finish)
    }

    fn choose(&mut self, logits: Tensor) -> Result<u32, GenerateError> {
        let mut logits = logits.flatten_all()?.to_vec1::<f32>()?;
        if let Some(constraint) = &mut self.constraint {
            constraint.mask(&mut logits)?;
        }
        self.sampler.sample(&logits).ok_or_else(|| GenerateError::engine("no token has a finite logit; are the weights sound?"))
    }

    fn accept(&mut self, token: u32, shared: &Shared) -> Result<Option<FinishReason>, GenerateError> {
        if shared.tokenizer.eos().contains(&token) {
            // Under a grammar the end is only allowed where the grammar is satisfied.
            return Ok(Some(if self.constraint.is_some() { FinishReason::Grammar } else { FinishReason::Stop }));
        }
        let complete = match &mut self.constraint {
            Some(constraint) => constraint.accept(token)?,
            None => false,
        };
        if self.text.push(shared.tokenizer.bytes(token)) {
            return Ok(Some(FinishReason::Stop));
        }
        if complete {
            return Ok(Some(FinishReason::Grammar));
        }
        let full = self.completed() >= self.work.request.max_tokens || self.tokens.len() >= shared.context_length;
        Ok(full.then_some(FinishReason::Length))
    }

    fn completed(&self) -> usize {
        self.tokens.len() - self.work.tokens.len()
    }

    /// The result, its cache kept for the next prompt that begins with it.
    pub(crate) fn finish(self, reason: FinishReason, shared: &Shared, prefixes: &mut Prefixes) -> Generated {
        let completion_tokens = self.completed();
        let adapter = self.work.adapter.as_ref().map(|a| a.version.clone());
        prefixes.put(adapter.as_ref().map(|a| a.digest.clone()), self.tokens, self.cache);
        Generated {
            text: self.text.text().to_owned(),
            finish: reason,
            prompt_tokens: self.work.tokens.len(),
            cached_prompt_tokens: self.cached,
            completion_tokens,
            queue: self.started.duration_since(self.work.queued),
            prefill: self.prefill,
            decode: self.started.elapsed().saturating_sub(self.prefill),
            adapter,
            model: shared.name.clone(),
        }
    }
}

//! The state of one running request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::detokenize::TextStream;
use crate::draft::{Draft, Drafts};
use crate::grammar::{Constraint, Grammars};
use crate::known::Known;
use crate::sampler::Sampler;
use crate::state::{EngineState, LoadedAdapter};
use crate::transformer::Item;
use crate::word_bias::TokenBias;
use crate::{FinishReason, GenerateError, GenerateRequest, GenerateSender, Generated, KvCache, Logits};

/// A request after all checks that do not need the model.
pub(crate) struct Work {
    pub(crate) request: GenerateRequest,
    pub(crate) tokens: Vec<u32>,
    pub(crate) bias: Option<TokenBias>,
    pub(crate) adapter: Option<Arc<LoadedAdapter>>,
    pub(crate) queued: Instant,
    /// The caller's tracing span, to which the model's work belongs.
    pub(crate) span: tracing::Span,
}

/// A running request. Between two passes it can wait or be cancelled.
pub(crate) struct Sequence {
    work: Work,
    /// Tokens of prompt and completion.
    tokens: Vec<u32>,
    cache: KvCache,
    sampler: Sampler,
    constraint: Option<Constraint>,
    text: TextStream,
    /// The draft that the current pass verifies.
    draft: Draft,
    drafted: usize,
    drafted_right: usize,
    cached: usize,
    /// Index of the first token on which the adapter acts; `usize::MAX`: none.
    adapter_from: usize,
    /// Number of blocks that are already in the shared prefix cache.
    shared_blocks: usize,
    started: Instant,
    /// Duration of prefill, once the prompt is complete.
    prefill: Option<Duration>,
}

impl Sequence {
    /// Compiles the grammar and looks up the prompt in the prefix caches.
    pub(crate) fn start(work: Work, grammars: &mut Grammars, known: &mut Known) -> Result<Self, GenerateError> {
        let started = Instant::now();
        let constraint = work.request.grammar.as_ref().map(|g| grammars.start(g)).transpose()?;
        let acts_from = |a: &Arc<LoadedAdapter>| {
            a.bound.acts_from(&work.tokens).unwrap_or_else(|| {
                tracing::warn!(adapter = a.version.name, "the prompt does not hold the adapter's invocation tokens: the base speaks");
                usize::MAX
            })
        };
        let adapter_from = work.adapter.as_ref().map_or(0, acts_from);
        // For an activated adapter, at most the base's part is in the cache; `take` leaves out the
        // last token.
        let shared = if adapter_from == 0 { work.tokens.len() } else { work.tokens.len().min(adapter_from.saturating_add(1)) };
        let cache = known.take(key(&work, adapter_from), &work.tokens[..shared]);
        Ok(Self {
            tokens: work.tokens.clone(),
            cached: cache.len(),
            shared_blocks: cache.len() / autoact_kernels::BLOCK,
            cache,
            sampler: Sampler::new(work.request.sampling),
            constraint,
            adapter_from,
            text: TextStream::new(&work.request.stop),
            draft: Draft::default(),
            drafted: 0,
            drafted_right: 0,
            started,
            prefill: None,
            work,
        })
    }

    /// Fails if the request is cancelled or its deadline has passed.
    pub(crate) fn check(&self, sender: &GenerateSender) -> Result<(), GenerateError> {
        if sender.is_cancelled() {
            return Err(GenerateError::Cancelled);
        }
        match self.work.request.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(GenerateError::DeadlineExceeded),
            _ => Ok(()),
        }
    }

    /// Appends the tokens that the grammar forces at the beginning. They are computed with the
    /// prompt.
    pub(crate) fn begin(&mut self, shared: &EngineState, sender: &mut GenerateSender) -> Result<Option<FinishReason>, GenerateError> {
        if self.work.request.max_tokens == 0 {
            return Ok(None);
        }
        let finish = self.force(shared)?;
        self.tell(finish, sender);
        Ok(finish)
    }

    /// Number of tokens not computed yet.
    pub(crate) fn pending(&self) -> usize {
        self.tokens.len() - self.cache.len()
    }

    /// Whether the prompt is complete.
    pub(crate) fn decoding(&self) -> bool {
        self.prefill.is_some()
    }

    /// A key for grouping sequences by adapter.
    pub(crate) fn speaker(&self) -> usize {
        self.work.adapter.as_ref().map_or(0, |a| Arc::as_ptr(a).addr())
    }

    pub(crate) fn span(&self) -> &tracing::Span {
        &self.work.span
    }

    /// Drafts tokens for the next pass if `chunk` covers all pending tokens. Returns their number.
    pub(crate) fn draft(&mut self, chunk: usize, shared: &EngineState, drafts: &mut Drafts, worth: f32) -> usize {
        if chunk < self.pending() {
            return 0;
        }
        // The pass gives one token in any case.
        let left = self.work.request.max_tokens.saturating_sub(self.completed());
        let room = left.min(shared.context_length - self.tokens.len()).saturating_sub(1);
        let mut draft = drafts.after(&self.tokens, room, worth);
        if let Some(constraint) = self.constraint.as_mut().filter(|_| !draft.tokens.is_empty()) {
            // An error of the grammar is reported when a token is chosen.
            draft.tokens.truncate(constraint.allows(&draft.tokens).unwrap_or(0));
        }
        self.tokens.extend_from_slice(&draft.tokens);
        self.draft = draft;
        self.draft.tokens.len()
    }

    /// Number of rows of logits of its next pass, if all pending tokens are in it.
    pub(crate) fn rows(&self) -> usize {
        1 + self.draft.tokens.len()
    }

    /// Its part of the next pass: `chunk` pending tokens, at least one, and the draft.
    pub(crate) fn item(&mut self, chunk: usize) -> Item<'_> {
        let from = self.cache.len();
        let chunk = chunk + self.draft.tokens.len();
        let logits = if chunk == self.tokens.len() - from { Logits::Tail(self.rows()) } else { Logits::None };
        let adapter = self.work.adapter.as_ref().map(|a| &a.bound);
        let adapter_from = self.adapter_from.saturating_sub(from);
        Item { tokens: &self.tokens[from..from + chunk], cache: &mut self.cache, adapter, adapter_from, logits }
    }

    /// Samples tokens from a pass's logits `[rows, vocabulary]`, for the last pending token and the
    /// draft. Returns the reason if the request has finished.
    pub(crate) fn advance(
        &mut self,
        logits: &mut [f32],
        shared: &EngineState,
        known: &mut Known,
        drafts: &mut Drafts,
        sender: &mut GenerateSender,
    ) -> Result<Option<FinishReason>, GenerateError> {
        let draft = std::mem::take(&mut self.draft);
        let vocabulary = logits.len() / (1 + draft.tokens.len());
        let before = self.tokens.len() - draft.tokens.len();
        self.tokens.truncate(before);
        self.cache.rewind(before);
        if self.prefill.is_none() {
            self.prefill = Some(self.started.elapsed());
            // Whole blocks only: the last one is still written, so sharing it would cause a copy.
            let whole = self.cache.len() / autoact_kernels::BLOCK * autoact_kernels::BLOCK;
            self.keep(whole, known);
        }
        if self.work.request.max_tokens == 0 {
            return Ok(Some(FinishReason::Length));
        }
        let mut finish = None;
        // `before + right` computed tokens are valid.
        let mut right = 0;
        for (row, logits) in logits.chunks_exact_mut(vocabulary).enumerate() {
            if row < right {
                continue; // the grammar forced what follows here
            }
            let token = self.choose(logits)?;
            finish = self.accept(token, shared)?;
            if finish.is_none() {
                finish = self.force(shared)?;
            }
            right = self.tokens[before..].iter().zip(&draft.tokens).take_while(|(new, drafted)| new == drafted).count();
            // After a rejected token, the remaining rows of the draft are invalid.
            if finish.is_some() || right < self.tokens.len() - before {
                break;
            }
        }
        drafts.judge(&draft, right, right < self.tokens.len() - before);
        self.drafted += draft.tokens.len();
        self.drafted_right += right;
        self.cache.advance(right);
        self.tell(finish, sender);
        Ok(finish)
    }

    /// Samples the next token. The grammar checks the sampled token first. The mask of all tokens
    /// takes much longer, and is computed only if that token is not allowed.
    fn choose(&mut self, logits: &mut [f32]) -> Result<u32, GenerateError> {
        if let Some(bias) = &self.work.bias {
            bias.add(self.tokens.last().copied(), logits);
        }
        if let Some(constraint) = &mut self.constraint {
            if self.sampler.may_draw_first()
                && let Some(token) = self.sampler.sample(logits)
                && constraint.allows(&[token])? == 1
            {
                return Ok(token);
            }
            constraint.mask(logits)?;
        }
        let token = self.sampler.sample(logits);
        token.ok_or_else(|| GenerateError::engine("no token has a finite logit; are the weights sound?"))
    }

    /// Appends tokens that the grammar forces, without the model.
    fn force(&mut self, shared: &EngineState) -> Result<Option<FinishReason>, GenerateError> {
        let forced = self.constraint.as_mut().map(Constraint::forced).unwrap_or_default();
        for token in forced {
            if let Some(finish) = self.accept(token, shared)? {
                return Ok(Some(finish));
            }
        }
        Ok(None)
    }

    fn accept(&mut self, token: u32, shared: &EngineState) -> Result<Option<FinishReason>, GenerateError> {
        self.tokens.push(token);
        if shared.tokenizer.eos().contains(&token) {
            // With a grammar, the end token is only allowed at the end of the grammar.
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

    fn tell(&mut self, finish: Option<FinishReason>, sender: &mut GenerateSender) {
        let text = if finish.is_some() { self.text.finish() } else { self.text.take() };
        if let Some(text) = text {
            sender.text(&text);
        }
    }

    /// Stores keys and values of the first `len` tokens in the prefix caches; with an activated
    /// adapter, only those before it acts.
    fn keep(&mut self, len: usize, known: &mut Known) {
        let len = if self.adapter_from == 0 { len } else { len.min(self.adapter_from) };
        self.shared_blocks = known.put(key(&self.work, self.adapter_from), &self.tokens[..len], self.shared_blocks, &mut self.cache);
    }

    fn completed(&self) -> usize {
        self.tokens.len() - self.work.tokens.len()
    }

    /// Finishes the request and stores its keys and values and its completion.
    pub(crate) fn finish(mut self, reason: FinishReason, shared: &EngineState, known: &mut Known, drafts: &mut Drafts) -> Generated {
        self.keep(self.tokens.len(), known);
        drafts.remember(&self.tokens, self.work.tokens.len());
        let prefill = self.prefill.unwrap_or_default();
        Generated {
            text: self.text.text().to_owned(),
            finish: reason,
            prompt_tokens: self.work.tokens.len(),
            cached_prompt_tokens: self.cached,
            completion_tokens: self.completed(),
            drafted_tokens: self.drafted,
            accepted_tokens: self.drafted_right,
            queue: self.started.duration_since(self.work.queued),
            prefill,
            decode: self.started.elapsed().saturating_sub(prefill),
            adapter: self.work.adapter.as_ref().map(|a| a.version.clone()),
            model: shared.name.clone(),
        }
    }
}

/// The adapter under which keys and values are stored; `None` for the base, also with an activated
/// adapter, which shares the base's.
fn key(work: &Work, adapter_from: usize) -> Option<&str> {
    work.adapter.as_ref().filter(|_| adapter_from == 0).map(|a| a.version.digest.as_str())
}

//! The state of one running request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_kernels::{Team, log_sum_exp};

use crate::detokenize::TextStream;
use crate::draft::{Draft, Drafts};
use crate::grammar::{Constraint, Grammars};
use crate::known::{Known, Owned};
use crate::sampler::Sampler;
use crate::scores::{Forks, Scoring};
use crate::state::{EngineState, LoadedAdapter};
use crate::transformer::{Item, Scratch};
use crate::word_bias::TokenBias;
use crate::word_limit::TokenLimit;
use crate::{FinishReason, GenerateError, GenerateRequest, GenerateSender, Generated, KvCache, Logits, Tokenizer};

/// A request after all checks that do not need the model.
pub(crate) struct Work {
    pub(crate) request: GenerateRequest,
    pub(crate) tokens: Vec<u32>,
    /// `None`: there is one owner only.
    pub(crate) owner: Option<Owned>,
    pub(crate) bias: TokenBias,
    pub(crate) limit: Option<TokenLimit>,
    /// Moves to the sequence when it starts.
    pub(crate) scoring: Option<Scoring>,
    pub(crate) adapter: Option<Arc<LoadedAdapter>>,
    pub(crate) queued: Instant,
    /// The caller's tracing span, to which the model's work belongs.
    pub(crate) span: tracing::Span,
}

impl Work {
    /// Whose it is; empty where there is one owner only.
    pub(crate) fn owner_name(&self) -> &str {
        self.owner.as_ref().map_or("", |owner| &owner.name)
    }
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
    scoring: Option<Scoring>,
    /// Number of rows of logits of the current pass.
    rows: usize,
    /// Why the completion ended, while the model computes scores of its last tokens.
    ending: Option<FinishReason>,
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
    pub(crate) fn start(mut work: Work, grammars: &mut Grammars, known: &mut Known) -> Result<Self, GenerateError> {
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
        let cache = known.take(key(&work, adapter_from), work.owner.as_ref(), &work.tokens[..shared]);
        Ok(Self {
            tokens: work.tokens.clone(),
            cached: cache.len(),
            shared_blocks: cache.len() / autoact_kernels::BLOCK,
            cache,
            sampler: Sampler::new(work.request.sampling),
            constraint,
            adapter_from,
            text: TextStream::new(&work.request.stop),
            scoring: work.scoring.take(),
            rows: 0,
            ending: None,
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
        Ok(self.ended(finish))
    }

    /// Delays the end if tokens still need scores: those that the grammar forced last have no row
    /// of logits yet.
    fn ended(&mut self, finish: Option<FinishReason>) -> Option<FinishReason> {
        let text = self.text.text().len();
        if finish.is_some() && self.scoring.as_ref().is_some_and(|scoring| scoring.incomplete(text)) {
            self.ending = finish;
            return None;
        }
        finish
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
        if chunk < self.pending() || self.ending.is_some() {
            return 0;
        }
        // The pass gives one token in any case.
        let left = self.work.request.max_tokens.saturating_sub(self.completed());
        let room = left.min(shared.context_length - self.tokens.len()).saturating_sub(1);
        let mut draft = drafts.after(self.work.owner_name(), &self.tokens, room, worth);
        if let Some(constraint) = self.constraint.as_mut().filter(|_| !draft.tokens.is_empty()) {
            // An error of the grammar is reported when a token is chosen.
            draft.tokens.truncate(constraint.allows(&draft.tokens).unwrap_or(0));
        }
        self.tokens.extend_from_slice(&draft.tokens);
        self.draft = draft;
        self.draft.tokens.len()
    }

    /// Number of rows of logits of the pass that its last [`Sequence::item`] is for.
    pub(crate) fn take_rows(&mut self) -> usize {
        std::mem::take(&mut self.rows)
    }

    /// Its part of the next pass: `chunk` pending tokens, at least one, and the draft.
    pub(crate) fn item(&mut self, chunk: usize) -> Item<'_> {
        let from = self.cache.len();
        let end = from + chunk + self.draft.tokens.len();
        let sampled = if end == self.tokens.len() { 1 + self.draft.tokens.len() } else { 0 };
        // The row before the first token without a score, if that token is known already: the
        // grammar forced it.
        let first = self.scoring.as_ref().filter(|s| s.wanted()).map(|s| self.work.tokens.len() + s.len() - 1);
        let forced = first.map_or(0, |first| end.saturating_sub(first.max(from)));
        self.rows = sampled.max(forced);
        let logits = if self.rows == 0 { Logits::None } else { Logits::Tail(self.rows) };
        let adapter = self.work.adapter.as_ref().map(|a| &a.bound);
        let adapter_from = self.adapter_from.saturating_sub(from);
        Item { tokens: &self.tokens[from..end], cache: &mut self.cache, adapter, adapter_from, logits }
    }

    /// Scores the tokens that follow the rows of a pass and are known already.
    pub(crate) fn score(&mut self, logits: &[f32], rows: usize) {
        if rows == 0 {
            return;
        }
        for row in logits.chunks_exact(logits.len() / rows) {
            self.score_known(row);
        }
    }

    /// Scores the first token without a score, which follows a row and is known already.
    fn score_known(&mut self, row: &[f32]) {
        if let Some(scoring) = &mut self.scoring
            && let Some(token) = self.tokens.get(self.work.tokens.len() + scoring.len())
        {
            scoring.score(row, *token);
        }
    }

    /// Samples tokens from a pass's logits `[rows, vocabulary]`: those of forced tokens, which are
    /// only scored, of the last pending token and of the draft. Returns the reason if the request
    /// has finished.
    pub(crate) fn advance(
        &mut self,
        logits: &mut [f32],
        rows: usize,
        shared: &EngineState,
        known: &mut Known,
        drafts: &mut Drafts,
        sender: &mut GenerateSender,
    ) -> Result<Option<FinishReason>, GenerateError> {
        let draft = std::mem::take(&mut self.draft);
        let vocabulary = logits.len() / rows;
        let before = self.tokens.len() - draft.tokens.len();
        self.tokens.truncate(before);
        self.cache.rewind(before);
        if self.prefill.is_none() {
            self.prefill = Some(self.started.elapsed());
            // Whole blocks only: the last one is still written, so sharing it would cause a copy.
            let whole = self.cache.len() / autoact_kernels::BLOCK * autoact_kernels::BLOCK;
            self.keep(whole, known);
        }
        let forced = rows - 1 - draft.tokens.len();
        let (scored, logits) = logits.split_at_mut(forced * vocabulary);
        self.score(scored, forced);
        if let Some(reason) = self.ending {
            return Ok(Some(reason));
        }
        if self.work.request.max_tokens == 0 {
            return Ok(Some(FinishReason::Length));
        }
        let mut finish = None;
        // `before + right` computed tokens are valid.
        let mut right = 0;
        for (row, logits) in logits.chunks_exact_mut(vocabulary).enumerate() {
            // After a rejected token, the remaining rows of the draft are invalid.
            if row > right {
                break;
            }
            if before + row < self.tokens.len() {
                self.score_known(logits); // the grammar forced what follows here
                continue;
            }
            if finish.is_some() {
                break;
            }
            let token = self.choose(logits, &shared.tokenizer)?;
            finish = self.accept(token, shared)?;
            if finish.is_none() {
                finish = self.force(shared)?;
            }
            right = self.tokens[before..].iter().zip(&draft.tokens).take_while(|(new, drafted)| new == drafted).count();
        }
        drafts.judge(&draft, right, right < self.tokens.len() - before);
        self.drafted += draft.tokens.len();
        self.drafted_right += right;
        self.cache.advance(right);
        self.tell(finish, sender);
        Ok(self.ended(finish))
    }

    /// Samples the next token, and scores it from the logits as the model gave them.
    fn choose(&mut self, logits: &mut [f32], tokenizer: &Tokenizer) -> Result<u32, GenerateError> {
        let changes = !self.work.bias.is_empty();
        let completion = &self.tokens[self.work.tokens.len()..];
        let sum = self.scoring.as_mut().and_then(|scoring| scoring.read(logits, completion, changes));
        let token = self.sample(logits, tokenizer)?;
        if let (Some(scoring), Some(sum)) = (&mut self.scoring, sum) {
            scoring.sampled(logits, token, sum, changes);
        }
        Ok(token)
    }

    /// Samples the next token. Grammar and limit check the sampled token first. The masks of all tokens
    /// take much longer, and are computed only if that token is not allowed. No logit of an allowed
    /// token changes, except by a bias.
    fn sample(&mut self, logits: &mut [f32], tokenizer: &Tokenizer) -> Result<u32, GenerateError> {
        let completion = &self.tokens[self.work.tokens.len()..];
        self.work.bias.add(completion, logits);
        let limit = self.work.limit.as_ref().and_then(|limit| limit.after(completion, tokenizer));
        let within = |token: u32| limit.as_ref().is_none_or(|limit| limit.allows(token, tokenizer));
        if self.constraint.is_some() || limit.is_some() {
            if self.sampler.may_draw_first()
                && let Some(token) = self.sampler.sample(logits)
                && within(token)
                && match &mut self.constraint {
                    Some(constraint) => constraint.allows(&[token])? == 1,
                    None => true,
                }
            {
                return Ok(token);
            }
            if let Some(constraint) = &mut self.constraint {
                constraint.mask(logits)?;
            }
            if limit.is_some() {
                let (inside, outside): (Vec<u32>, Vec<u32>) =
                    (0..logits.len() as u32).filter(|token| logits[*token as usize].is_finite()).partition(|token| within(*token));
                if !inside.is_empty() {
                    outside.into_iter().for_each(|token| logits[token as usize] = f32::NEG_INFINITY);
                }
            }
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
        if let Some(scoring) = &mut self.scoring {
            scoring.accept(shared.tokenizer.bytes(token));
        }
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
        let (key, owner) = (key(&self.work, self.adapter_from), self.work.owner.as_ref());
        self.shared_blocks = known.put(key, owner, &self.tokens[..len], self.shared_blocks, &mut self.cache);
    }

    fn completed(&self) -> usize {
        self.tokens.len() - self.work.tokens.len()
    }

    /// Compares the continuations that the request asked for, if no pass so far had the rows for
    /// it: in a pass of their own, in which both go on from the same keys and values.
    pub(crate) fn weigh(&mut self, shared: &EngineState, team: &Team, scratch: &mut Scratch) -> Result<(), GenerateError> {
        let Some(scoring) = &mut self.scoring else { return Ok(()) };
        let Some(forks) = scoring.unweighed(&shared.tokenizer)? else { return Ok(()) };
        let end = self.work.tokens.len() + forks.from;
        let parted = forks.shared();
        let longest = forks.tokens.iter().map(Vec::len).max().unwrap_or_default();
        let vocabulary = shared.model.config().vocab_size;
        let unknown = forks.tokens.iter().flatten().any(|token| *token as usize >= vocabulary);
        if unknown || end + longest > shared.context_length {
            return Ok(());
        }
        let mut log_probs = [0.0; 2];
        let Forks { tokens: forks, .. } = forks;
        let from = self.cache.len().min(end - 1);
        // One that the other begins with has no tokens to compare, and a log-probability of 0.
        let sides: Vec<usize> = (0..forks.len()).filter(|side| forks[*side].len() > parted).collect();
        let texts = sides.iter().map(|side| [&self.tokens[from..end], &forks[*side][..forks[*side].len() - 1]].concat());
        let texts: Vec<Vec<u32>> = texts.collect();
        let mut caches = vec![self.cache.clone(); sides.len()];
        let mut items = Vec::with_capacity(sides.len());
        for ((side, tokens), cache) in sides.iter().zip(&texts).zip(&mut caches) {
            cache.rewind(from);
            let adapter = self.work.adapter.as_ref().map(|a| &a.bound);
            let adapter_from = self.adapter_from.saturating_sub(from);
            items.push(Item { tokens, cache, adapter, adapter_from, logits: Logits::Tail(forks[*side].len() - parted) });
        }
        if !items.is_empty() {
            let logits = shared.model.forward(team, &mut items, scratch);
            let mut rows = logits.chunks_exact(vocabulary);
            for side in &sides {
                for (token, row) in forks[*side][parted..].iter().zip(&mut rows) {
                    log_probs[*side] += f64::from(row[*token as usize]) - log_sum_exp(row);
                }
            }
        }
        scoring.set_log_odds(log_probs[0] - log_probs[1]);
        Ok(())
    }

    /// Finishes the request and stores its keys and values and its completion.
    pub(crate) fn finish(mut self, reason: FinishReason, shared: &EngineState, known: &mut Known, drafts: &mut Drafts) -> Generated {
        self.keep(self.tokens.len(), known);
        drafts.remember(self.work.owner_name(), &self.tokens, self.work.tokens.len());
        let prefill = self.prefill.unwrap_or_default();
        let scores = self.scoring.take().and_then(|scoring| scoring.finish(self.text.text().len())).map(Box::new);
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
            scores,
        }
    }
}

/// The adapter under which keys and values are stored; `None` for the base, also with an activated
/// adapter, which shares the base's.
fn key(work: &Work, adapter_from: usize) -> Option<&str> {
    work.adapter.as_ref().filter(|_| adapter_from == 0).map(|a| a.version.digest.as_str())
}

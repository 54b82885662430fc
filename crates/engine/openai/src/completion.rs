//! One completion: its attempts, and its rounds if the text violates the grammar.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use autoact_http_client::retry;
use autoact_http_client::said::clip;
use autoact_model::{
    AdapterVersion, FinishReason, GenerateError, GenerateRequest, GenerateSender, Generated, Prompt, estimated_prompt_tokens,
};

use crate::failure::Failure;
use crate::follow::{Fit, Follow};
use crate::limit::TimeLimit;
use crate::probe::Style;
use crate::queue::Ticket;
use crate::scores::Gathered;
use crate::server::Server;
use crate::whole::Whole;
use crate::wire::{Asked, LOGPROBS, Usage, refused_fields};

/// Maximum number of further rounds after a violation of the grammar.
const MAX_ROUNDS: u64 = 3;
/// Maximum number of characters of an invalid text in an error.
const SHOWN_TAIL: usize = 60;

/// How a stream ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The grammar is complete: it allows no further text.
    Complete,
    /// The next piece does not match the grammar.
    Broken {
        /// The piece.
        found: String,
    },
    /// An end-of-sequence token or a stop string.
    Stop {
        /// Whether it was a stop string, according to the server.
        by_text: bool,
    },
    /// `max_tokens` or the end of the context.
    Length,
}

/// A running completion.
pub(crate) struct Completion {
    pub(crate) server: Arc<Server>,
    pub(crate) request: GenerateRequest,
    pub(crate) sender: GenerateSender,
    pub(crate) limit: TimeLimit,
    ticket: Ticket,
    adapter: Option<AdapterVersion>,
    /// Maximum number of tokens: the requested one, or fewer if the context ends before.
    pub(crate) most: usize,
    /// The grammar's state after the text.
    pub(crate) follow: Option<Follow>,
    /// Of a chat that the server does not continue: what is read of the reply before the reader
    /// gets any of it.
    pub(crate) whole: Option<Whole>,
    /// All text that the reader has.
    pub(crate) text: String,
    /// Number of the current round, from 0.
    pub(crate) round: u64,
    /// Spaces at the end of the text that are not sent, because tokens of words begin with a space.
    pub(crate) held: String,
    /// The log-probabilities of the text so far.
    pub(crate) gathered: Gathered,
    /// Whether no log-probabilities are asked for any more, because the server refused a request
    /// for them.
    plain: bool,
    /// Of this round: the number of pieces of text (an estimate of the tokens), and the server's
    /// usage.
    pub(crate) pieces: usize,
    pub(crate) usage: Option<Usage>,
    prompt_tokens: usize,
    cached_prompt_tokens: usize,
    completion_tokens: usize,
    queued: Instant,
    /// When the successful attempt was sent, and when its first token arrived.
    pub(crate) sent: Option<Instant>,
    pub(crate) first: Option<Instant>,
}

impl Completion {
    pub(crate) fn new(server: Arc<Server>, request: GenerateRequest, ticket: Ticket, sender: GenerateSender) -> Completion {
        let limit = TimeLimit::new(request.deadline, server.options.timeout);
        Completion {
            most: request.max_tokens,
            server,
            request,
            sender,
            limit,
            ticket,
            adapter: None,
            follow: None,
            whole: None,
            text: String::new(),
            round: 0,
            held: String::new(),
            gathered: Gathered::default(),
            plain: false,
            pieces: 0,
            usage: None,
            prompt_tokens: 0,
            cached_prompt_tokens: 0,
            completion_tokens: 0,
            queued: Instant::now(),
            sent: None,
            first: None,
        }
    }

    pub(crate) async fn run(mut self) {
        let end = self.complete().await;
        let Completion { sender, ticket, .. } = self;
        // the place must be free when the reader sees the end
        drop(ticket);
        sender.end(end);
    }

    async fn complete(&mut self) -> Result<Generated, GenerateError> {
        let server = Arc::clone(&self.server);
        self.limit.wait(&self.sender, self.ticket.place()).await??;
        if let Some(name) = self.request.adapter.clone() {
            self.adapter = Some(self.limit.wait(&self.sender, server.adapter(&name)).await??);
        }
        if let Some(grammar) = &self.request.grammar {
            let follow = server.grammars.start(grammar)?;
            if server.style == Style::Chat && !self.request.prompt.messages().is_empty() {
                self.whole = Some(Whole::new(grammar.clone(), &self.request.prompt));
            } else {
                self.follow = Some(follow);
            }
        }
        if self.request.max_tokens == 0 {
            return Ok(self.generated(FinishReason::Length));
        }
        loop {
            let end = self.ask().await?;
            self.count();
            if let Some(finish) = self.judge(&end)? {
                return Ok(self.generated(finish));
            }
            if self.whole.is_none() && self.completion_tokens >= self.most {
                return Ok(self.generated(FinishReason::Length));
            }
            self.round += 1;
        }
    }

    /// One round: a reply, after as many attempts as necessary and allowed.
    async fn ask(&mut self) -> Result<End, GenerateError> {
        let before = self.text.len();
        let mut attempt = 0;
        let mut shortened = false;
        loop {
            let failure = match self.attempt().await {
                Ok(end) => {
                    // the refusal was about the log-probabilities
                    if self.plain && !self.server.scoreless.swap(true, Ordering::Relaxed) {
                        tracing::warn!("the server refuses to report log-probabilities: replies have no scores");
                    }
                    return Ok(end);
                }
                Err(failure) => failure,
            };
            match failure {
                // no text was shown in this round, so a retry is not visible
                Failure::Again { after, busy, .. } if self.text.len() == before && attempt < self.server.options.retries => {
                    let pause = retry::pause(attempt, after);
                    if pause > retry::LONGEST || !self.limit.allows(pause) {
                        return Err(failure.told());
                    }
                    attempt += 1;
                    let reason = if busy { "busy" } else { "failed" };
                    metrics::counter!("autoact_remote_retries_total", "reason" => reason).increment(1);
                    tracing::debug!(?failure, ?pause, attempt, "asking the model's server again");
                    self.limit.wait(&self.sender, tokio::time::sleep(pause)).await?;
                }
                Failure::TooLong { message, tokens } if !shortened => {
                    shortened = true;
                    self.shorten(message, tokens).await?;
                }
                Failure::Refused { message } => {
                    let mut fields = refused_fields(&message);
                    let scores = fields.contains(&LOGPROBS) || fields.is_empty();
                    fields.retain(|field| *field != LOGPROBS);
                    if !self.server.leave_out(fields) {
                        if !(scores && self.logprobs().is_some()) {
                            return Err(Failure::Refused { message }.told());
                        }
                        tracing::debug!(message, "asking the model's server again, without log-probabilities");
                        self.plain = true;
                    }
                }
                Failure::UnknownModel => return Err(self.unserved().await),
                failure => return Err(failure.told()),
            }
        }
    }

    /// Reduces the maximum number of tokens if the prompt leaves less room in the context.
    async fn shorten(&mut self, message: String, said: Option<usize>) -> Result<(), GenerateError> {
        let context = self.server.info.context_length;
        match self.counted().await?.or(said) {
            Some(tokens) if tokens >= context => Err(GenerateError::PromptTooLong { tokens, limit: context.saturating_sub(1) }),
            Some(tokens) if context - tokens < self.left() => {
                self.most = context - tokens + self.completion_tokens;
                Ok(())
            }
            // the server's context is smaller than it was said to be, or nobody counts: less of a
            // prompt may fit
            counted => {
                tracing::debug!(message, ?counted, "the server refuses a prompt as too long");
                let tokens = counted.unwrap_or_else(|| estimated_prompt_tokens(&self.request.prompt)).max(1);
                Err(GenerateError::PromptTooLong { tokens, limit: tokens - 1 })
            }
        }
    }

    /// Number of the prompt's tokens according to vLLM; `None` if the server cannot count.
    async fn counted(&self) -> Result<Option<usize>, GenerateError> {
        let prompt = self.prompt();
        let asked = Asked::new(self.server.style, &self.server.spellings, &prompt);
        let ask = self.server.counted(self.model(), &asked, self.request.add_bos);
        self.limit.wait(&self.sender, ask).await
    }

    /// The server no longer serves the name: an error that lists the names that it serves.
    async fn unserved(&self) -> GenerateError {
        match self.limit.wait(&self.sender, self.server.look_again()).await {
            Ok(Ok(())) => self.server.unknown(self.model()),
            Ok(Err(error)) | Err(error) => error,
        }
    }

    /// The meaning of an end; `None`: the text continues in another round.
    fn judge(&mut self, end: &End) -> Result<Option<FinishReason>, GenerateError> {
        if self.whole.is_some() {
            return self.judge_whole(end);
        }
        let guides = self.server.dialect.guides();
        match (end, &self.follow) {
            (End::Complete, _) => return Ok(Some(FinishReason::Grammar)),
            (End::Length, _) => return Ok(Some(FinishReason::Length)),
            (End::Stop { .. }, None) | (End::Stop { by_text: true }, _) => return Ok(Some(FinishReason::Stop)),
            _ => {}
        }
        let Some(mut follow) = self.follow.take() else { return Ok(Some(FinishReason::Stop)) };
        if follow.accepts()? {
            return Ok(Some(FinishReason::Grammar));
        }
        // a server that does not report why it stopped may have found a stop string
        if matches!(end, End::Stop { .. }) && !guides && !self.request.stop.is_empty() {
            return Ok(Some(FinishReason::Stop));
        }
        let astray = self.astray(end);
        if guides && !self.server.warned.swap(true, Ordering::Relaxed) {
            let dialect = self.server.dialect;
            tracing::warn!(?dialect, astray, "the server does not hold its model to the grammar; is it another dialect's?");
        }
        let forced = follow.forced()?;
        if self.round >= MAX_ROUNDS || (forced.is_empty() && self.request.sampling.temperature <= 0.0) {
            return Err(GenerateError::Malformed { reason: astray });
        }
        tracing::debug!(astray, forced, "a reply is led back to its grammar");
        self.text.push_str(&forced);
        self.sender.text(&forced);
        let complete = matches!(follow.take("")?, Fit::Complete(_));
        self.follow = Some(follow);
        Ok(complete.then_some(FinishReason::Grammar))
    }

    /// Describes where a text violates its grammar.
    fn astray(&self, end: &End) -> String {
        let from = self.text.char_indices().rev().nth(SHOWN_TAIL).map_or(0, |(at, _)| at);
        let after = clip(&self.text[from..]);
        match end {
            End::Broken { found } => format!("after {after} came {}", clip(found)),
            _ => format!("it ended after {after}"),
        }
    }

    /// The served name for the request.
    pub(crate) fn model(&self) -> &str {
        self.request.adapter.as_deref().unwrap_or(&self.server.info.name)
    }

    /// The meaning of the end of a reply that was read whole; `None`: it is asked for again.
    fn judge_whole(&mut self, end: &End) -> Result<Option<FinishReason>, GenerateError> {
        let Some(whole) = &mut self.whole else { return Ok(None) };
        let fitted = whole.fitted(&self.server.grammars)?;
        let text = match fitted {
            Ok(text) => text,
            // a reply that was cut ends where it was cut
            Err(unfit) if *end == End::Length => {
                self.give(&unfit.begins);
                return Ok(Some(FinishReason::Length));
            }
            Err(unfit) if self.round >= MAX_ROUNDS => return Err(GenerateError::Malformed { reason: unfit.reason }),
            Err(unfit) => {
                tracing::debug!(reason = unfit.reason, "a reply is asked for again");
                whole.reject(&unfit.reason);
                return Ok(None);
            }
        };
        self.give(&text);
        Ok(Some(FinishReason::Grammar))
    }

    /// The prompt, followed by the text so far.
    pub(crate) fn prompt(&self) -> Prompt {
        let mut prompt = self.request.prompt.clone();
        prompt.push_text(self.text.strip_suffix(&self.held).unwrap_or(&self.text));
        prompt
    }

    /// Number of likely tokens whose log-probabilities are asked for with each token, if any are.
    pub(crate) fn logprobs(&self) -> Option<u32> {
        let scores = self.request.scores.as_ref()?;
        // those of a reply that is not taken as it is would be another text's
        let refused = self.whole.is_some() || self.plain || self.server.scoreless.load(Ordering::Relaxed);
        // servers read 0 as none, and OpenAI's own accepts at most 5
        (!refused).then_some(if scores.odds.is_some() { 5 } else { 1 })
    }

    /// Number of tokens that may still be generated.
    pub(crate) fn left(&self) -> usize {
        if self.whole.is_some() {
            return self.most;
        }
        self.most.saturating_sub(self.completion_tokens).max(1)
    }

    /// Adds the round's usage to the totals.
    fn count(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        let usage = self.usage.take();
        self.completion_tokens += usage.and_then(|usage| usage.completion_tokens).unwrap_or(pieces);
        if let Some(usage) = usage.filter(|_| self.round == 0) {
            self.prompt_tokens = usage.prompt_tokens;
            self.cached_prompt_tokens = usage.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or_default();
        }
    }

    fn generated(&mut self, finish: FinishReason) -> Generated {
        let end = Instant::now();
        let sent = self.sent.unwrap_or(end);
        let first = self.first.unwrap_or(end);
        let scores = self.request.scores.as_ref().and_then(|asked| self.gathered.scored(asked, &self.text));
        Generated {
            text: std::mem::take(&mut self.text),
            finish,
            prompt_tokens: self.prompt_tokens,
            cached_prompt_tokens: self.cached_prompt_tokens,
            completion_tokens: self.completion_tokens,
            drafted_tokens: 0, // servers do not report it
            accepted_tokens: 0,
            queue: sent.saturating_duration_since(self.queued),
            prefill: first.saturating_duration_since(sent),
            decode: end.saturating_duration_since(first),
            adapter: self.adapter.clone(),
            model: self.server.info.name.clone(),
            scores: scores.map(Box::new),
        }
    }
}

//! One completion: its attempts, and the rounds in which it is led back to its grammar.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use autoact_model::{AdapterVersion, FinishReason, GenerateError, GenerateRequest, GenerateSender, Generated};

use crate::attempt::End;
use crate::backend::Shared;
use crate::failure::{Failure, clip, shown};
use crate::follow::{Fit, Follow};
use crate::http::whole;
use crate::options::Dialect;
use crate::patience::Patience;
use crate::queue::Ticket;
use crate::retry;
use crate::wire::{Counted, Usage};

/// How often a text is led back to its grammar before it is given up.
const MAX_ROUNDS: u64 = 3;
/// How much of a text that went astray is shown.
const SHOWN_TAIL: usize = 60;

/// A completion under way.
pub(crate) struct Completion {
    pub(crate) shared: Arc<Shared>,
    pub(crate) request: GenerateRequest,
    pub(crate) sender: GenerateSender,
    pub(crate) patience: Patience,
    ticket: Ticket,
    adapter: Option<AdapterVersion>,
    /// Most tokens: what was asked for, or less where the context ends.
    pub(crate) most: usize,
    /// Where the text is in its grammar.
    pub(crate) follow: Option<Follow>,
    /// All that the reader was given.
    pub(crate) text: String,
    /// Of this round: how often the text has been led back.
    pub(crate) round: u64,
    /// Spaces at the end of the text that were not sent: a model writes them with the word that follows.
    pub(crate) held: String,
    /// Of this round: pieces of text, which are tokens as far as one can tell, and what the server says.
    pub(crate) pieces: usize,
    pub(crate) usage: Option<Usage>,
    prompt_tokens: usize,
    cached_prompt_tokens: usize,
    completion_tokens: usize,
    queued: Instant,
    /// When the attempt that answered was sent, and its first token came.
    pub(crate) sent: Option<Instant>,
    pub(crate) first: Option<Instant>,
}

impl Completion {
    pub(crate) fn new(shared: Arc<Shared>, request: GenerateRequest, ticket: Ticket, sender: GenerateSender) -> Completion {
        let patience = Patience::new(request.deadline, shared.options.timeout);
        Completion {
            most: request.max_tokens,
            shared,
            request,
            sender,
            patience,
            ticket,
            adapter: None,
            follow: None,
            text: String::new(),
            round: 0,
            held: String::new(),
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
        // a reader who sees the end finds the place free
        drop(ticket);
        sender.end(end);
    }

    async fn complete(&mut self) -> Result<Generated, GenerateError> {
        let shared = Arc::clone(&self.shared);
        self.patience.wait(&self.sender, self.ticket.place()).await??;
        if let Some(name) = self.request.adapter.clone() {
            self.adapter = Some(self.patience.wait(&self.sender, shared.adapter(&name)).await??);
        }
        if let Some(grammar) = &self.request.grammar {
            self.follow = Some(shared.grammars.start(grammar)?);
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
            if self.completion_tokens >= self.most {
                return Ok(self.generated(FinishReason::Length));
            }
            self.round += 1;
        }
    }

    /// One round: an answer, after as many attempts as it takes and there are.
    async fn ask(&mut self) -> Result<End, GenerateError> {
        let before = self.text.len();
        let mut attempt = 0;
        let mut shortened = false;
        loop {
            let failure = match self.attempt().await {
                Ok(end) => return Ok(end),
                Err(failure) => failure,
            };
            match failure {
                // nothing was shown: nobody sees that it is done again
                Failure::Again { after, busy, .. } if self.text.len() == before && attempt < self.shared.options.retries => {
                    let pause = retry::pause(attempt, after);
                    if pause > retry::LONGEST || !self.patience.allows(pause) {
                        return Err(failure.told());
                    }
                    attempt += 1;
                    let reason = if busy { "busy" } else { "failed" };
                    metrics::counter!("autoact_remote_retries_total", "reason" => reason).increment(1);
                    tracing::debug!(?failure, ?pause, attempt, "asking the model's server again");
                    self.patience.wait(&self.sender, tokio::time::sleep(pause)).await?;
                }
                Failure::TooLong { message, tokens } if !shortened => {
                    shortened = true;
                    self.shorten(message, tokens).await?;
                }
                Failure::UnknownModel => return Err(self.unserved().await),
                failure => return Err(failure.told()),
            }
        }
    }

    /// The prompt leaves less room than was asked for: the context's end comes first.
    async fn shorten(&mut self, message: String, said: Option<usize>) -> Result<(), GenerateError> {
        let context = self.shared.info.context_length;
        let counted = if self.shared.options.dialect == Dialect::Openai { None } else { self.counted().await? };
        match counted.or(said) {
            Some(tokens) if tokens >= context => Err(GenerateError::PromptTooLong { tokens, limit: context.saturating_sub(1) }),
            Some(tokens) if context - tokens < self.left() => {
                self.most = context - tokens + self.completion_tokens;
                Ok(())
            }
            _ => Err(GenerateError::engine(message)),
        }
    }

    /// The tokens of the prompt as vLLM counts them; `None` where it does not.
    async fn counted(&self) -> Result<Option<usize>, GenerateError> {
        let mut body = serde_json::json!({ "model": self.model(), "prompt": self.prompt() });
        if let Some(bos) = self.request.add_bos {
            body["add_special_tokens"] = bos.into();
        }
        let url = self.shared.client.url_beside("/tokenize");
        let ask = async {
            let response = self.shared.client.post(&url, body.to_string().into_bytes()).await.ok()?;
            let body = whole(response.into_body()).await.ok()?;
            let counted: Option<Counted> = serde_json::from_slice(&body).ok();
            if counted.is_none() {
                tracing::debug!(url, answer = shown(&body), "the server does not count tokens");
            }
            counted.map(|counted| counted.count)
        };
        self.patience.wait(&self.sender, ask).await
    }

    /// The server does not know the name any more: those it knows.
    async fn unserved(&self) -> GenerateError {
        match self.patience.wait(&self.sender, self.shared.look_again()).await {
            Ok(Ok(())) => self.shared.unknown(self.model()),
            Ok(Err(error)) | Err(error) => error,
        }
    }

    /// What an end means; `None`: the text goes on in another round.
    fn judge(&mut self, end: &End) -> Result<Option<FinishReason>, GenerateError> {
        let guides = self.shared.options.dialect.guides();
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
        // a server that does not say why it stopped may have seen a text to stop at
        if matches!(end, End::Stop { .. }) && !guides && !self.request.stop.is_empty() {
            return Ok(Some(FinishReason::Stop));
        }
        let astray = self.astray(end);
        if guides && !self.shared.warned.swap(true, Ordering::Relaxed) {
            let dialect = self.shared.options.dialect;
            tracing::warn!(?dialect, astray, "the server does not hold its model to the grammar; is it another dialect's?");
        }
        let forced = follow.forced()?;
        if self.round >= MAX_ROUNDS || (forced.is_empty() && self.request.sampling.temperature <= 0.0) {
            return Err(GenerateError::engine(format!("the server's reply does not fit the grammar: {astray}")));
        }
        tracing::debug!(astray, forced, "a reply is led back to its grammar");
        self.text.push_str(&forced);
        self.sender.text(&forced);
        let complete = matches!(follow.take("")?, Fit::Complete(_));
        self.follow = Some(follow);
        Ok(complete.then_some(FinishReason::Grammar))
    }

    /// Where a text left its grammar.
    fn astray(&self, end: &End) -> String {
        let from = self.text.char_indices().rev().nth(SHOWN_TAIL).map_or(0, |(at, _)| at);
        let after = clip(&self.text[from..]);
        match end {
            End::Broken { found } => format!("after {after} came {}", clip(found)),
            _ => format!("it ended after {after}"),
        }
    }

    /// The served name that answers.
    pub(crate) fn model(&self) -> &str {
        self.request.adapter.as_deref().unwrap_or(&self.shared.info.name)
    }

    /// What the model goes on with: the prompt, and the text where that was cut. No text in it
    /// spells a control token.
    pub(crate) fn prompt(&self) -> Cow<'_, str> {
        let text = self.text.strip_suffix(&self.held).unwrap_or(&self.text);
        if text.is_empty() {
            return self.shared.spellings.broken_up(&self.request.prompt);
        }
        let mut prompt = self.request.prompt.clone();
        prompt.push_text(text);
        Cow::Owned(self.shared.spellings.broken_up(&prompt).into_owned())
    }

    /// Tokens that may still come.
    pub(crate) fn left(&self) -> usize {
        self.most.saturating_sub(self.completion_tokens).max(1)
    }

    /// Adds up a round.
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
        Generated {
            text: std::mem::take(&mut self.text),
            finish,
            prompt_tokens: self.prompt_tokens,
            cached_prompt_tokens: self.cached_prompt_tokens,
            completion_tokens: self.completion_tokens,
            drafted_tokens: 0, // servers do not tell
            accepted_tokens: 0,
            queue: sent.saturating_duration_since(self.queued),
            prefill: first.saturating_duration_since(sent),
            decode: end.saturating_duration_since(first),
            adapter: self.adapter.clone(),
            model: self.shared.info.name.clone(),
        }
    }
}

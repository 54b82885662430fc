//! One attempt at a completion: a request and its stream.

use std::time::Instant;

use autoact_http_client::said::clip;
use autoact_http_client::{more, whole};
use http::StatusCode;
use http::header::CONTENT_TYPE;
use hyper::body::Incoming;

use crate::completion::{Completion, End};
use crate::failure::{Failure, failed};
use crate::follow::Fit;
use crate::options::MAX_BODY;
use crate::sse::{Events, TooLong};
use crate::wire::{self, Asked, Chunk, CompletionRequest};

/// The data of the last event of a stream.
const DONE: &str = "[DONE]";

impl Completion {
    /// Sends one request. Text that matches the grammar goes to the reader as it arrives.
    pub(crate) async fn attempt(&mut self) -> Result<End, Failure> {
        self.pieces = 0;
        self.usage = None;
        self.gathered.restart(self.text.len());
        self.held = if self.round == 0 { String::new() } else { self.text[self.text.trim_end_matches(' ').len()..].to_owned() };
        if let Some(whole) = &mut self.whole {
            whole.reply.clear();
        }
        let prompt = self.prompt();
        let mut asked = Asked::new(self.server.style, &self.server.spellings, &prompt);
        if let (Some(whole), Asked::Messages { messages, .. }) = (&self.whole, &mut asked) {
            whole.remind(messages);
        }
        let left_out = self.server.left_out();
        // a grammar constrains from its beginning, so the server can apply it in the first round
        // only
        let guided = self.round == 0 || self.whole.is_some();
        let ask = CompletionRequest {
            model: self.model(),
            asked,
            max_tokens: self.left(),
            round: self.round,
            guided,
            logprobs: self.logprobs(),
            left_out: &left_out,
        };
        let body = wire::body(ask, &self.request, self.server.dialect);
        let body = body.map_err(|error| Failure::last(format!("the request cannot be written as JSON: {error}")))?;
        if self.first.is_none() {
            self.sent = Some(Instant::now());
        }
        let url = self.server.client.url(self.server.style.path());
        let sent = self.limit.wait(&self.sender, self.server.client.post(&url, body)).await.map_err(Failure::Final)?;
        let (parts, body) = sent.map_err(failed)?.into_parts();
        if parts.status != StatusCode::OK {
            let body = self.limit.wait(&self.sender, whole(body, MAX_BODY)).await.map_err(Failure::Final)?.map_err(failed)?;
            return Err(Failure::of_status(&url, parts.status, &parts.headers, &body));
        }
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") { self.stream(body).await } else { self.at_once(body).await }
    }

    /// Reads the reply of a server that does not stream.
    async fn at_once(&mut self, body: Incoming) -> Result<End, Failure> {
        let body = self.limit.wait(&self.sender, whole(body, MAX_BODY)).await.map_err(Failure::Final)?.map_err(failed)?;
        let mut end = None;
        self.read(&String::from_utf8_lossy(&body), &mut end)?;
        end.ok_or_else(|| Failure::again("the server's reply has no end"))
    }

    async fn stream(&mut self, mut body: Incoming) -> Result<End, Failure> {
        let mut events = Events::default();
        let mut end = None;
        let mut over = false;
        loop {
            while let Some(data) = events.next() {
                if data.trim() == DONE || self.read(&data, &mut end)? {
                    return end.ok_or_else(cut);
                }
            }
            if over {
                return end.ok_or_else(cut);
            }
            match self.limit.wait(&self.sender, more(&mut body)).await.map_err(Failure::Final)? {
                Ok(Some(bytes)) => events.push(&bytes).map_err(|TooLong| Failure::last("the server sent an event without an end"))?,
                Ok(None) => {
                    events.end();
                    over = true;
                }
                // only the usage was missing
                Err(_) if end.is_some() => over = true,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// Reads one chunk. Returns true if the rest is not needed.
    fn read(&mut self, data: &str, end: &mut Option<End>) -> Result<bool, Failure> {
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| Failure::again(format!("the server sent something else than a completion ({error}): {}", clip(data))))?;
        if let Some(error) = &chunk.error {
            return Err(Failure::of_event(error));
        }
        self.usage = chunk.usage.or(self.usage);
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(false) };
        if let Some(logprobs) = choice.logprobs.as_ref().filter(|_| end.is_none() && self.logprobs().is_some()) {
            let at = self.text.len() - self.held.len();
            self.gathered.add(at, choice.words().unwrap_or_default(), logprobs);
        }
        if let Some(text) = choice.words() {
            if end.is_some() {
                // text after the end of the grammar
                return Ok(true);
            }
            self.pieces += 1;
            self.first.get_or_insert_with(Instant::now);
            *end = self.take(text)?;
            self.gathered.cut(self.text.len());
        }
        match choice.finish_reason.as_deref() {
            _ if matches!(end, Some(End::Broken { .. })) => return Ok(true),
            None => {}
            Some("stop") => {
                let by_text = choice.stop_reason.is_some_and(|reason| reason.is_string());
                end.get_or_insert(End::Stop { by_text });
            }
            Some("length") => {
                end.get_or_insert(End::Length);
            }
            Some(other) => return Err(Failure::last(format!("the server ended the reply with `{}`", clip(other)))),
        }
        // a server that knows the grammar ends by itself, and then sends the usage
        let told = self.server.dialect.guides() && self.round == 0;
        Ok(matches!(end, Some(End::Complete)) && !told)
    }

    /// Gives the reader the part of a piece that matches the grammar. Of a reply that is read whole
    /// first, the reader gets nothing yet.
    fn take(&mut self, piece: &str) -> Result<Option<End>, Failure> {
        if let Some(whole) = &mut self.whole {
            whole.reply.push_str(piece);
            return Ok(None);
        }
        let piece = self.unheld(piece);
        let Some(follow) = &mut self.follow else {
            self.give(piece);
            return Ok(None);
        };
        let fit = follow.take(piece).map_err(Failure::Final)?;
        let (fits, end) = match fit {
            Fit::Open => (piece, None),
            Fit::Complete(at) => (&piece[..at], Some(End::Complete)),
            Fit::Broken(at) => (&piece[..at], Some(End::Broken { found: piece[at..].to_owned() })),
        };
        self.give(fits);
        Ok(end)
    }

    pub(crate) fn give(&mut self, text: &str) {
        self.text.push_str(text);
        self.sender.text(text);
    }

    /// The piece without spaces that the reader already has.
    fn unheld<'a>(&mut self, mut piece: &'a str) -> &'a str {
        while !self.held.is_empty() && !piece.is_empty() {
            match piece.strip_prefix(' ') {
                Some(rest) => {
                    piece = rest;
                    self.held.pop();
                }
                None => self.held.clear(),
            }
        }
        piece
    }
}

fn cut() -> Failure {
    Failure::again("the server's reply broke off")
}

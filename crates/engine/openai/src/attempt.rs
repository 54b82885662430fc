//! One attempt at an answer: a request, and its stream as it is read.

use std::time::Instant;

use http::StatusCode;
use http::header::CONTENT_TYPE;
use hyper::body::Incoming;

use crate::completion::Completion;
use crate::failure::{Failure, clip};
use crate::follow::Fit;
use crate::http::{HttpError, more, whole};
use crate::sse::{Events, TooLong};
use crate::wire::{self, Ask, Chunk};

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The grammar is satisfied, and nothing can follow.
    Complete,
    /// The next piece does not fit the grammar.
    Broken {
        /// What came.
        found: String,
    },
    /// The model ended it, or a stop string came.
    Stop {
        /// A stop string, as the server says.
        by_text: bool,
    },
    /// There was no room for more.
    Length,
}

/// What marks the end of a stream.
const DONE: &str = "[DONE]";

impl Completion {
    /// Asks once. What fits the grammar goes to the reader as it comes.
    pub(crate) async fn attempt(&mut self) -> Result<End, Failure> {
        let options = &self.shared.options;
        self.pieces = 0;
        self.usage = None;
        self.held = if self.round == 0 { String::new() } else { self.text[self.text.trim_end_matches(' ').len()..].to_owned() };
        let prompt = self.prompt();
        // a grammar starts at its beginning, so only the first round can be held to it
        let guided = self.round == 0;
        let ask = Ask { model: self.model(), prompt: &prompt, max_tokens: self.left(), round: self.round, guided };
        let body = wire::body(ask, &self.request, options.dialect);
        let body = body.map_err(|error| Failure::last(format!("the request cannot be written as JSON: {error}")))?;
        if self.first.is_none() {
            self.sent = Some(Instant::now());
        }
        let url = self.shared.client.url("/completions");
        let sent = self.patience.wait(&self.sender, self.shared.client.post(&url, body)).await.map_err(Failure::Final)?;
        let (parts, body) = sent.map_err(failed)?.into_parts();
        if parts.status != StatusCode::OK {
            let body = self.patience.wait(&self.sender, whole(body)).await.map_err(Failure::Final)?.map_err(failed)?;
            return Err(Failure::of_status(&url, parts.status, &parts.headers, &body));
        }
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if kind.starts_with("text/event-stream") { self.stream(body).await } else { self.at_once(body).await }
    }

    /// A server that does not stream answers all at once.
    async fn at_once(&mut self, body: Incoming) -> Result<End, Failure> {
        let body = self.patience.wait(&self.sender, whole(body)).await.map_err(Failure::Final)?.map_err(failed)?;
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
            match self.patience.wait(&self.sender, more(&mut body)).await.map_err(Failure::Final)? {
                Ok(Some(bytes)) => events.push(&bytes).map_err(|TooLong| Failure::last("the server sent an event without an end"))?,
                Ok(None) => {
                    events.end();
                    over = true;
                }
                // only the costs were still to come
                Err(_) if end.is_some() => over = true,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// One chunk; true when the rest is not worth reading.
    fn read(&mut self, data: &str, end: &mut Option<End>) -> Result<bool, Failure> {
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| Failure::again(format!("the server sent something else than a completion ({error}): {}", clip(data))))?;
        if let Some(error) = &chunk.error {
            return Err(Failure::of_event(error));
        }
        self.usage = chunk.usage.or(self.usage);
        let Some(choice) = chunk.choices.into_iter().next() else { return Ok(false) };
        if let Some(text) = choice.text.filter(|text| !text.is_empty()) {
            if end.is_some() {
                // it goes on behind the grammar's end
                return Ok(true);
            }
            self.pieces += 1;
            self.first.get_or_insert_with(Instant::now);
            *end = self.take(&text)?;
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
        // a server that was told of the grammar ends by itself, and then says what it cost
        let told = self.shared.options.dialect.guides() && self.round == 0;
        Ok(matches!(end, Some(End::Complete)) && !told)
    }

    /// Gives the reader as much of a piece as fits.
    fn take(&mut self, piece: &str) -> Result<Option<End>, Failure> {
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

    fn give(&mut self, text: &str) {
        self.text.push_str(text);
        self.sender.text(text);
    }

    /// A piece without the spaces that the reader has already.
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

fn failed(error: HttpError) -> Failure {
    if error.lasting { Failure::last(error.reason) } else { Failure::again(error.reason) }
}

fn cut() -> Failure {
    Failure::again("the server's reply broke off")
}

//! Completions as the servers send them: streamed, or at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use autoact_model::{FinishReason, GenerateError, GenerateEvent, GenerateRequest, GenerateStream, Generated, Odds, Scores};
use axum::body::Body;
use axum::response::Response;
use futures::stream;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::request::Request;
use super::{Fault, Kind, State, answer, chat, error};

pub(super) async fn completion(state: &Arc<State>, request: Request, chat: bool, fault: Option<Fault>) -> Response {
    let stops = !request.generate.stop.is_empty();
    let constrained = request.generate.grammar.is_some();
    // dropped with the connection, also while it is held
    let open = Open::new(state);
    if !request.stream {
        state.released().await;
    }
    let likely = Likely { request: request.generate.clone(), most: request.logprobs };
    let tokens = match generate(state, request.generate) {
        Ok(tokens) => tokens,
        Err(refusal) => {
            open.done();
            return *refusal;
        }
    };
    let reply = Reply { state: Arc::clone(state), model: request.model, chat, stops, constrained, usage: request.usage, likely };
    if !request.stream {
        let response = match tokens.finish().await {
            Ok(done) => {
                let logprobs = reply.logprobs(&done).await;
                let logprobs: Value = logprobs.into_iter().fold(Value::Null, joined);
                let choice = json!({ "index": 0, "text": done.text, "logprobs": logprobs, "finish_reason": reply.finish(done.finish), "stop_reason": reply.stop_reason(done.finish) });
                let choice = if chat { chat::choice(choice, false) } else { choice };
                answer(
                    StatusCode::OK,
                    &json!({ "id": "cmpl-1", "object": reply.object(), "model": reply.model, "choices": [choice], "usage": reply.costs(&done) }),
                )
            }
            Err(failed) => *refusal(&failed),
        };
        open.done();
        return response;
    }
    let writer = Writer { reply, tokens, open: Some(open), fault, pieces: 0, begun: false, scored: None, rest: Vec::new() };
    let body = stream::unfold(Some(writer), async |writer| Writer::next(writer?).await);
    let mut response = Response::new(Body::from_stream(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    response
}

fn generate(state: &State, request: GenerateRequest) -> Result<GenerateStream, Box<Response>> {
    state.backend.generate(request).map_err(|failed| refusal(&failed))
}

fn refusal(failed: &GenerateError) -> Box<Response> {
    let message = failed.to_string();
    Box::new(match failed {
        GenerateError::Overloaded { retry_after } => {
            let mut response = error(StatusCode::TOO_MANY_REQUESTS, &message);
            if let Ok(value) = HeaderValue::from_str(&retry_after.as_secs_f64().to_string()) {
                response.headers_mut().insert(RETRY_AFTER, value);
            }
            response
        }
        GenerateError::PromptTooLong { tokens, limit } => error(
            StatusCode::BAD_REQUEST,
            &format!("This model's maximum context length is {} tokens and your request has {tokens} input tokens.", limit + 1),
        ),
        GenerateError::InvalidGrammar { .. } => error(StatusCode::BAD_REQUEST, &message),
        _ => error(StatusCode::INTERNAL_SERVER_ERROR, &message),
    })
}

/// Counts a reply while it is open, and as abandoned when it is dropped before its end.
struct Open {
    state: Arc<State>,
    done: bool,
}

impl Open {
    fn new(state: &Arc<State>) -> Open {
        state.open.fetch_add(1, Ordering::SeqCst);
        Open { state: Arc::clone(state), done: false }
    }

    fn done(mut self) {
        self.done = true;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.state.open.fetch_sub(1, Ordering::SeqCst);
        if !self.done {
            self.state.abandoned.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// What is the same in all chunks.
struct Reply {
    state: Arc<State>,
    model: String,
    /// Whether it is a chat's.
    chat: bool,
    stops: bool,
    constrained: bool,
    usage: bool,
    likely: Likely,
}

/// What log-probabilities are asked for.
struct Likely {
    request: GenerateRequest,
    /// Number of tokens to name for each token; 0: no log-probabilities.
    most: usize,
}

/// The pieces of text that have whole characters, with their log-probabilities.
type Scored = Vec<(String, Value)>;

fn joined(all: Value, (_, piece): (String, Value)) -> Value {
    let Value::Object(mut all) = all else { return piece };
    for (field, values) in &mut all {
        if let (Some(values), Some(more)) = (values.as_array_mut(), piece[field].as_array()) {
            values.extend(more.iter().cloned());
        }
    }
    Value::Object(all)
}

impl Reply {
    /// The whole text in pieces with log-probabilities; nothing if none are asked for, or if the
    /// backend gives none.
    async fn logprobs(&self, done: &Generated) -> Scored {
        let Some(scores) = done.scores.as_ref().filter(|_| self.likely.most > 0) else { return Vec::new() };
        let mut pieces: Scored = Vec::new();
        for (i, token) in scores.tokens.iter().enumerate() {
            let end = scores.tokens.get(i + 1).map_or(done.text.len(), |next| next.at);
            let bytes = &done.text.as_bytes()[token.at..end];
            let spelling = String::from_utf8_lossy(bytes).into_owned();
            let mut top = self.alternatives(&done.text[..done.text.floor_char_boundary(token.at)]).await;
            top.truncate(self.likely.most - 1);
            top.push((spelling.clone(), token.log_prob));
            let top: serde_json::Map<String, Value> = top.into_iter().map(|(token, log_prob)| (token, log_prob.into())).collect();
            let piece =
                json!({ "tokens": [spelling], "token_logprobs": [token.log_prob], "top_logprobs": [top], "text_offset": [token.at] });
            // text that begins within a character comes with the token that began it
            match pieces.pop() {
                Some((text, before)) if !done.text.is_char_boundary(token.at) => {
                    pieces.push((text, joined(before, (String::new(), piece))))
                }
                last => {
                    pieces.extend(last);
                    let end = scores.tokens[i + 1..].iter().map(|next| next.at).find(|at| done.text.is_char_boundary(*at));
                    pieces.push((done.text[token.at..end.unwrap_or(done.text.len())].to_owned(), piece));
                }
            }
        }
        pieces
    }

    /// The tokens that the server names, the likeliest first, with their log-probabilities after
    /// `text`.
    async fn alternatives(&self, text: &str) -> Vec<(String, f64)> {
        let mut all = Vec::new();
        for token in self.state.options.alternatives.iter().filter(|_| self.likely.most > 1) {
            let mut prompt = self.likely.request.prompt.clone();
            prompt.push_text(text);
            let odds = Odds { after: String::new(), this: token.clone(), other: String::new() };
            let scores = Some(Scores { until: None, odds: Some(odds) });
            let request = GenerateRequest { prompt, max_tokens: 0, grammar: None, scores, ..self.likely.request.clone() };
            let Ok(stream) = self.state.backend.generate(request) else { continue };
            let log_prob = stream.finish().await.ok().and_then(|done| done.scores?.log_odds);
            all.extend(log_prob.map(|log_prob| (token.clone(), log_prob)));
        }
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        all
    }

    fn finish(&self, finish: FinishReason) -> &'static str {
        if finish == FinishReason::Length { "length" } else { "stop" }
    }

    /// vLLM names the stop string. Ours does not say which it was.
    fn stop_reason(&self, finish: FinishReason) -> Value {
        let stopped = self.stops && finish == FinishReason::Stop && self.state.options.kind != Kind::OpenAi;
        if stopped && self.constrained { json!("a stop string") } else { Value::Null }
    }

    fn costs(&self, done: &Generated) -> Value {
        json!({
            "prompt_tokens": done.prompt_tokens,
            "completion_tokens": done.completion_tokens,
            "total_tokens": done.prompt_tokens + done.completion_tokens,
            "prompt_tokens_details": { "cached_tokens": done.cached_prompt_tokens },
        })
    }

    fn chunk(&self, text: &str, finish: Option<FinishReason>, logprobs: Value) -> String {
        let finished = finish.map(|finish| self.finish(finish));
        let mut choice = json!({ "index": 0, "text": text, "logprobs": logprobs, "finish_reason": finished });
        if self.state.options.kind != Kind::OpenAi {
            choice["stop_reason"] = finish.map_or(Value::Null, |finish| self.stop_reason(finish));
        }
        let choice = if self.chat { chat::choice(choice, true) } else { choice };
        self.event(&json!({ "id": "cmpl-1", "object": self.object(), "created": 1, "model": self.model, "choices": [choice] }))
    }

    fn object(&self) -> &'static str {
        if self.chat { "chat.completion.chunk" } else { "text_completion" }
    }

    fn event(&self, data: &Value) -> String {
        format!("data: {data}\n\n")
    }
}

/// A stream as it is written.
struct Writer {
    reply: Reply,
    tokens: GenerateStream,
    open: Option<Open>,
    fault: Option<Fault>,
    pieces: usize,
    begun: bool,
    /// The end, and text with log-probabilities that comes before it, last first.
    scored: Option<(Scored, Generated)>,
    /// What is left to write, last first.
    rest: Vec<String>,
}

impl Writer {
    /// The next bytes, and the writer if there are more.
    async fn next(mut self) -> Option<(io::Result<String>, Option<Writer>)> {
        if !self.begun {
            self.begun = true;
            self.reply.state.released().await;
        }
        if let Some(last) = self.rest.pop() {
            if !self.rest.is_empty() {
                return Some((Ok(last), Some(self)));
            }
            self.close();
            return Some((Ok(last), None));
        }
        if self.fault.as_ref().and_then(Fault::after) == Some(self.pieces) {
            return self.fail().await;
        }
        if let Some((text, logprobs)) = self.scored.as_mut().and_then(|(scored, _)| scored.pop()) {
            self.pieces += 1;
            return Some((Ok(self.reply.chunk(&text, None, logprobs)), Some(self)));
        }
        let event = match self.scored.take() {
            Some((_, done)) => Ok(GenerateEvent::Done(done)),
            None => self.tokens.next().await?,
        };
        match event {
            // it comes with its log-probabilities
            Ok(GenerateEvent::Token { .. }) if self.reply.likely.most > 0 => Box::pin(self.scored()).await,
            Ok(GenerateEvent::Token { text }) => {
                self.pieces += 1;
                Some((Ok(self.reply.chunk(&text, None, Value::Null)), Some(self)))
            }
            Ok(GenerateEvent::Done(done)) => {
                let mut events = vec![self.reply.chunk("", Some(done.finish), Value::Null)];
                if self.reply.usage {
                    events.push(
                        self.reply.event(
                            &json!({ "id": "cmpl-1", "object": self.reply.object(), "choices": [], "usage": self.reply.costs(&done) }),
                        ),
                    );
                }
                events.push("data: [DONE]\n\n".to_owned());
                let first = events.remove(0);
                events.reverse();
                self.rest = events;
                Some((Ok(first), Some(self)))
            }
            Err(failed) => {
                let code = if matches!(failed, GenerateError::InvalidGrammar { .. }) { 400 } else { 500 };
                let event = json!({ "error": { "message": failed.to_string(), "type": "InternalServerError", "code": code } });
                let event = self.reply.event(&event);
                self.rest = vec!["data: [DONE]\n\n".to_owned()];
                Some((Ok(event), Some(self)))
            }
        }
    }

    /// Waits for the whole reply, and goes on with its text and log-probabilities.
    async fn scored(mut self) -> Option<(io::Result<String>, Option<Writer>)> {
        loop {
            match self.tokens.next().await? {
                Ok(GenerateEvent::Token { .. }) => {}
                Ok(GenerateEvent::Done(done)) => {
                    let mut pieces = self.reply.logprobs(&done).await;
                    if pieces.is_empty() {
                        pieces.push((done.text.clone(), Value::Null));
                    }
                    pieces.reverse();
                    self.scored = Some((pieces, done));
                    return self.next().await;
                }
                Err(failed) => {
                    let event = json!({ "error": { "message": failed.to_string(), "type": "InternalServerError", "code": 500 } });
                    let event = self.reply.event(&event);
                    self.rest = vec!["data: [DONE]\n\n".to_owned()];
                    return Some((Ok(event), Some(self)));
                }
            }
        }
    }

    async fn fail(mut self) -> Option<(io::Result<String>, Option<Writer>)> {
        // what was written before goes out first
        tokio::task::yield_now().await;
        let last = match self.fault.take()? {
            Fault::CutAfter(_) => Err(io::Error::from(io::ErrorKind::ConnectionReset)),
            Fault::EndAfter(_) => Ok(": that is all\n\n".to_owned()),
            Fault::ErrorAfter(_) => Ok(self.reply.event(&json!({ "error": { "message": "the engine died", "code": 500 } }))),
            Fault::GarbageAfter(_) => Ok("data: {\"choices\": [{\"te\n\n".to_owned()),
            // kept open until the reader goes away
            Fault::SilenceAfter(_) => std::future::pending().await,
            Fault::Refuse | Fault::Status { .. } => return None,
        };
        self.close();
        Some((last, None))
    }

    /// The reply has ended as it was meant to.
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            open.done();
        }
    }
}

//! A reply as it is spoken.

use std::pin::Pin;
use std::sync::Arc;

use autoact_model::{FinishReason, GenerateError, GenerateEvent, GenerateRequest, GenerateStream, Generated, Grammar};
use autoact_prompt::{ParseError, Role};
use autoact_proto::status::to_status;
use autoact_proto::v1;
use futures::StreamExt;
use tonic::Status;

use crate::agent::Agent;
use crate::call::Call;
use crate::error::AgentError;
use crate::usage::usage;
use crate::voice::Voice;

/// Tokens to finish a reply whose thought used up its own: a line break, a label and a name.
const CLOSING_TOKENS: usize = 64;

/// What a speech gives.
#[derive(Debug, Clone, PartialEq)]
pub enum Spoken {
    /// Text as the model writes it, labels included.
    Delta(String),
    /// The end: the whole reply.
    Done(Generated),
}

/// A reply being written: any number of [`Spoken::Delta`], then [`Spoken::Done`] or an error. Dropping it stops the model.
pub struct Speech {
    agent: Arc<Agent>,
    /// Keeps the adapter it began with in the engine.
    _voice: Arc<Voice>,
    request: GenerateRequest,
    stream: GenerateStream,
    call: Call,
    /// What was generated before the current stream.
    before: Option<Generated>,
}

impl Speech {
    pub(crate) fn begin(agent: Arc<Agent>, voice: Arc<Voice>, task: &str, request: GenerateRequest) -> Result<Speech, AgentError> {
        let mut call = agent.call(task, &request);
        // within the span: the model's own log lines belong to this call
        match call.span().in_scope(|| agent.backend().generate(request.clone())) {
            Ok(stream) => Ok(Speech { agent, _voice: voice, request, stream, call, before: None }),
            Err(error) => Err(fail(&agent, &mut call, error)),
        }
    }

    /// The next piece; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<Spoken, AgentError>> {
        let event = self.stream.next().await?;
        match event {
            Ok(GenerateEvent::Token { text }) => Some(Ok(Spoken::Delta(text))),
            Ok(GenerateEvent::Done(generated)) => Some(self.done(generated)),
            Err(error) => Some(Err(fail(&self.agent, &mut self.call, error))),
        }
    }

    fn done(&mut self, generated: Generated) -> Result<Spoken, AgentError> {
        let generated = match self.before.take() {
            Some(before) => joined(before, generated),
            None => generated,
        };
        if generated.finish == FinishReason::Length {
            if let Some(regex) = self.closing(&generated.text) {
                return self.close(generated, regex);
            }
            if self.agent.role() == Role::Tool && generated.prompt_tokens + generated.completion_tokens >= self.context() {
                // half an input is not what the model meant, and what cut it was the prompt
                let limit = self.context().saturating_sub(self.request.max_tokens);
                let error = GenerateError::PromptTooLong { tokens: generated.prompt_tokens, limit };
                return Err(fail(&self.agent, &mut self.call, error));
            }
        }
        self.agent.health().worked();
        self.call.done(&generated, self.agent.backend().cache_bytes());
        Ok(Spoken::Done(generated))
    }

    fn context(&self) -> usize {
        self.agent.backend().info().context_length
    }

    /// What has to follow a reply that was cut within its thought, or before it was complete.
    fn closing(&self, text: &str) -> Option<String> {
        let label = match self.agent.role() {
            Role::Plan => "\nAction: ",
            Role::Reflect => "\nVerdict: ",
            Role::Tool => return None,
        };
        if text.contains(label) && text.ends_with('\n') {
            return None;
        }
        let Some(Grammar::Regex(regex)) = &self.request.grammar else { return None };
        let at = regex.find(&label.replace('\n', "\\n"))?;
        Some(regex[at..].to_owned())
    }

    /// Goes on after a cut thought, held to the rest of the form. The prompt and the thought are in the cache, so this costs a few tokens.
    fn close(&mut self, mut cut: Generated, regex: String) -> Result<Spoken, AgentError> {
        // the thought is one line: what comes after it is begun anew
        let mut end = cut.text.find('\n').unwrap_or(cut.text.len());
        let over = (cut.prompt_tokens + cut.completion_tokens + CLOSING_TOKENS).saturating_sub(self.context());
        if over >= cut.completion_tokens {
            let limit = self.context().saturating_sub(CLOSING_TOKENS + 1);
            return Err(fail(&self.agent, &mut self.call, GenerateError::PromptTooLong { tokens: cut.prompt_tokens, limit }));
        }
        // where the context is full, the end of the thought makes room for the closing
        end = end.min(cut.text.len() * (cut.completion_tokens - over) / cut.completion_tokens);
        while !cut.text.is_char_boundary(end) {
            end -= 1;
        }
        cut.text.truncate(end);
        tracing::debug!(agent = self.agent.role().as_str(), tokens = cut.completion_tokens, "a long thought was cut");
        let request = GenerateRequest {
            prompt: format!("{}{}", self.request.prompt, cut.text),
            max_tokens: CLOSING_TOKENS,
            grammar: Some(Grammar::Regex(regex)),
            ..self.request.clone()
        };
        // asked to close only once
        self.request.grammar = None;
        match self.call.span().in_scope(|| self.agent.backend().generate(request)) {
            Ok(stream) => {
                self.stream = stream;
                self.before = Some(cut);
                Ok(Spoken::Delta(String::new()))
            }
            Err(error) => Err(fail(&self.agent, &mut self.call, error)),
        }
    }
}

fn fail(agent: &Agent, call: &mut Call, error: GenerateError) -> AgentError {
    if matches!(error, GenerateError::Engine { .. }) {
        agent.health().doubt();
    }
    call.failed(&error);
    AgentError::Generate(error)
}

/// Two generations as one: the second went on where the first was cut.
fn joined(before: Generated, after: Generated) -> Generated {
    Generated {
        text: before.text + &after.text,
        prompt_tokens: before.prompt_tokens,
        cached_prompt_tokens: before.cached_prompt_tokens,
        completion_tokens: before.completion_tokens + after.completion_tokens,
        drafted_tokens: before.drafted_tokens + after.drafted_tokens,
        accepted_tokens: before.accepted_tokens + after.accepted_tokens,
        queue: before.queue + after.queue,
        prefill: before.prefill,
        decode: before.decode + after.prefill + after.decode,
        ..after
    }
}

/// A finished reply, parsed by its service.
pub type Reply<T> = Result<T, ParseError>;

/// What a streaming rpc returns.
pub type Stream<R> = Pin<Box<dyn futures::Stream<Item = Result<R, Status>> + Send>>;

/// A speech as the responses of an rpc: `delta` wraps text, `result` parses the whole reply.
pub fn stream<R: Send + 'static>(
    speech: Speech,
    delta: impl Fn(v1::Delta) -> R + Send + 'static,
    result: impl Fn(&str, v1::Usage) -> Reply<R> + Send + 'static,
) -> Stream<R> {
    let spoken = futures::stream::unfold(speech, |mut speech| async move { Some((speech.next().await?, speech)) });
    let responses = spoken.filter_map(move |spoken| {
        let response = match spoken {
            Ok(Spoken::Delta(text)) if text.is_empty() => None,
            Ok(Spoken::Delta(text)) => Some(Ok(delta(v1::Delta { text }))),
            Ok(Spoken::Done(generated)) => {
                Some(result(&generated.text, usage(&generated)).map_err(|error| to_status(&AgentError::Reply(error))))
            }
            Err(error) => Some(Err(to_status(&error))),
        };
        futures::future::ready(response)
    });
    Box::pin(responses)
}

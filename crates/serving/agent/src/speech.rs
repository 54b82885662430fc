//! A reply of an agent: the speaker's, with its trace, its counters and what it tells of the model's health.

use std::pin::Pin;
use std::sync::Arc;

use autoact_model::{GenerateError, GenerateRequest};
use autoact_speaker::{ParseError, ReplyEvent, ReplyStream, SpeakError, usage};
use autoact_trajectory::{ToolSpec, Trajectory};
use autoact_wire::agents_v1;
use autoact_wire::status::to_status;
use autoact_wire::v1;
use futures::StreamExt;
use tonic::Status;
use tracing::Instrument;

use crate::agent::Agent;
use crate::call::Call;
use crate::error::AgentError;
use crate::voice::Voice;

/// A reply being written: any number of [`ReplyEvent::Delta`], then [`ReplyEvent::Done`] or an error. Dropping it stops the model.
pub struct Speech {
    agent: Arc<Agent>,
    /// Keeps the adapter it began with in the engine.
    _voice: Arc<Voice>,
    reply: ReplyStream,
    call: Call,
    tools: Vec<ToolSpec>,
}

impl Speech {
    pub(crate) fn begin(
        agent: Arc<Agent>,
        voice: Arc<Voice>,
        trajectory: Trajectory,
        request: GenerateRequest,
    ) -> Result<Speech, AgentError> {
        let mut call = agent.call(&trajectory.task_id, &request);
        // within the span: the model's own log lines belong to this call
        match call.span().in_scope(|| agent.speaker().begin(agent.role(), request)) {
            Ok(reply) => Ok(Speech { agent, _voice: voice, reply, call, tools: trajectory.tools }),
            Err(error) => Err(fail(&agent, &mut call, error)),
        }
    }

    /// The tools that were there to choose from.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// The next piece; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<ReplyEvent, AgentError>> {
        // a cut thought is closed in here
        let event = self.reply.next().instrument(self.call.span()).await?;
        Some(match event {
            Ok(event) => {
                if let ReplyEvent::Done(generated) = &event {
                    self.agent.health().worked();
                    self.call.done(generated, self.agent.backend().cache_bytes());
                }
                Ok(event)
            }
            Err(error) => Err(fail(&self.agent, &mut self.call, error)),
        })
    }
}

fn fail(agent: &Agent, call: &mut Call, error: SpeakError) -> AgentError {
    if let SpeakError::Generate(error) = &error {
        if matches!(error, GenerateError::Engine { .. }) {
            agent.health().doubt();
        }
        call.failed(error);
    }
    AgentError::Speak(error)
}

/// A finished reply, parsed by its service.
pub type Reply<T> = Result<T, ParseError>;

/// What a streaming rpc returns.
pub type Stream<R> = Pin<Box<dyn futures::Stream<Item = Result<R, Status>> + Send>>;

/// A speech as the responses of an rpc: `delta` wraps text, `result` parses the whole reply.
pub fn stream<R: Send + 'static>(
    speech: Speech,
    delta: impl Fn(agents_v1::Delta) -> R + Send + 'static,
    result: impl Fn(&str, v1::Usage) -> Reply<R> + Send + 'static,
) -> Stream<R> {
    let spoken = futures::stream::unfold(speech, |mut speech| async move { Some((speech.next().await?, speech)) });
    let responses = spoken.map(move |spoken| match spoken {
        Ok(ReplyEvent::Delta(text)) => Ok(delta(agents_v1::Delta { text })),
        Ok(ReplyEvent::Done(generated)) => {
            let usage = v1::Usage::from(&usage(&generated));
            result(&generated.text, usage).map_err(|error| to_status(&AgentError::Speak(error.into())))
        }
        Err(error) => Err(to_status(&error)),
    });
    Box::pin(responses)
}

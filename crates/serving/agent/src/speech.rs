//! A reply of an agent: the speaker's, with its trace, its counters and what it tells of the
//! model's health.

use std::sync::Arc;
use std::time::Instant;

use autoact_model::{GenerateError, GenerateRequest};
use autoact_speaker::{ReplyEvent, ReplyStream, SpeakError, SpeakRequest};
use autoact_trajectory::{Calibration, ToolSpec, Trajectory};
use autoact_wire::v1;
use tracing::Instrument;

use crate::agent::Agent;
use crate::call::Call;
use crate::check;
use crate::error::AgentError;
use crate::voice::Voice;

/// Prompts of more bytes are tokenised on a blocking thread: a megabyte takes long enough to hold
/// up other calls.
const LONG_PROMPT: usize = 32 * 1024;

/// What an agent is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The history to go on with.
    pub trajectory: Option<v1::Trajectory>,
    /// How to decode.
    pub sampling: Option<v1::SamplingParams>,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
    /// Whose task it is.
    pub tenant: String,
}

impl Agent {
    /// Starts a reply. Dropping it stops the model.
    pub async fn speak(self: &Arc<Self>, request: Request) -> Result<Speech, AgentError> {
        let trajectory = check::trajectory(self.role(), request.trajectory)?;
        let sampling = check::sampling(request.sampling)?;
        let voice = self.voice();
        let ask = SpeakRequest {
            sampling,
            adapter: voice.name.as_deref(),
            deadline: request.deadline,
            owner: Some(&request.tenant),
            ..SpeakRequest::new(self.role(), &trajectory)
        };
        let generate = self.speaker().compose(&ask)?;
        let agent = Arc::clone(self);
        if generate.prompt.len() <= LONG_PROMPT {
            return Speech::begin(agent, voice, trajectory, generate);
        }
        let span = tracing::Span::current();
        tokio::task::spawn_blocking(move || span.in_scope(|| Speech::begin(agent, voice, trajectory, generate)))
            .await
            .unwrap_or_else(|error| Err(AgentError::Speak(GenerateError::engine(error.to_string()).into())))
    }
}

/// A reply being written: any number of [`ReplyEvent::Delta`], then [`ReplyEvent::Done`] or an
/// error. Dropping it stops the model.
pub struct Speech {
    agent: Arc<Agent>,
    /// Keeps the adapter it began with in the engine.
    voice: Arc<Voice>,
    reply: ReplyStream,
    call: Call,
    tools: Vec<ToolSpec>,
    /// Where in `tools` the one is that the last step chose.
    chosen: Option<usize>,
}

impl Speech {
    /// What its adapter's judgements are worth.
    pub fn calibration(&self) -> Option<&Arc<Calibration>> {
        self.voice.calibration.as_ref()
    }

    fn begin(agent: Arc<Agent>, voice: Arc<Voice>, trajectory: Trajectory, request: GenerateRequest) -> Result<Speech, AgentError> {
        let mut call = agent.call(&trajectory.task_id, &request);
        // within the span: the model's own log lines belong to this call
        match call.span().in_scope(|| agent.speaker().begin(agent.role(), request)) {
            Ok(reply) => {
                let chosen = trajectory.open_step().and_then(|step| trajectory.tools.iter().position(|tool| tool.name == step.tool));
                Ok(Speech { agent, voice, reply, call, tools: trajectory.tools, chosen })
            }
            Err(error) => Err(fail(&agent, &mut call, error)),
        }
    }

    /// The tools that were there to choose from.
    pub fn tools(&self) -> &[ToolSpec] {
        &self.tools
    }

    /// The tool that the last step chose.
    pub fn tool(&self) -> Option<&ToolSpec> {
        self.tools.get(self.chosen?)
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

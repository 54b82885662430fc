//! A model in one role.

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_model::{Backend, ChatTemplate, GenerateError, GenerateRequest, Grammar, Message};
use autoact_prompt::{Expect, Role, chat, cue, transcript};
use autoact_proto::v1;
use autoact_telemetry::gen_ai;
use autoact_trajectory::Trajectory;

use crate::call::Call;
use crate::check;
use crate::error::AgentError;
use crate::health::Health;
use crate::speech::Speech;

/// Prompts of more bytes are tokenised on a blocking thread: a megabyte takes long enough to hold up other calls.
const LONG_PROMPT: usize = 32 * 1024;

/// How an agent is set up.
#[derive(Debug, Clone, Default)]
pub struct AgentOptions {
    /// The adapter's name in the backend; `None`: the base speaks.
    pub adapter: Option<String>,
    /// How the model wants to be asked; `None`: with the plain transcript.
    pub template: Option<ChatTemplate>,
    /// Put prompts and replies into traces.
    pub capture_content: bool,
}

/// What an agent is asked.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The history to go on with.
    pub trajectory: Option<v1::Trajectory>,
    /// How to decode.
    pub sampling: Option<v1::SamplingParams>,
    /// When the caller stops waiting.
    pub deadline: Option<Instant>,
}

/// A base model with one adapter that speaks in one role.
pub struct Agent {
    role: Role,
    backend: Arc<dyn Backend>,
    options: AgentOptions,
    health: Health,
}

impl Agent {
    /// An agent over a backend that has the adapter.
    pub fn new(role: Role, backend: Arc<dyn Backend>, options: AgentOptions) -> Agent {
        Agent { role, backend, options, health: Health::default() }
    }

    /// Whose part it speaks.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Starts a reply. Dropping it stops the model.
    pub async fn speak(self: &Arc<Self>, request: Request) -> Result<Speech, AgentError> {
        let trajectory = check::trajectory(self.role, request.trajectory)?;
        let sampling = check::sampling(request.sampling)?;
        let expect = Expect::new(self.role, &trajectory.tools);
        let prompt = self.prompt(&trajectory)?;
        let generate = GenerateRequest {
            adapter: self.options.adapter.clone(),
            sampling,
            max_tokens: expect.max_tokens,
            grammar: Some(Grammar::Regex(expect.regex)),
            deadline: request.deadline,
            // a chat template writes that token itself
            add_bos: self.options.template.is_some().then_some(false),
            ..GenerateRequest::new(prompt)
        };
        let agent = Arc::clone(self);
        if generate.prompt.len() <= LONG_PROMPT {
            return Speech::begin(agent, &trajectory.task_id, generate);
        }
        let span = tracing::Span::current();
        tokio::task::spawn_blocking(move || span.in_scope(|| Speech::begin(agent, &trajectory.task_id, generate)))
            .await
            .unwrap_or_else(|error| Err(AgentError::Generate(GenerateError::engine(error.to_string()))))
    }

    /// What the model is given: for the same history always the same text, and always a prefix of the next one.
    fn prompt(&self, trajectory: &Trajectory) -> Result<String, AgentError> {
        let mut prompt = match &self.options.template {
            None => transcript(trajectory),
            Some(template) => {
                let messages: Vec<Message> =
                    chat(self.role, trajectory).into_iter().map(|message| Message::new(message.role, message.content)).collect();
                template.render(&messages, true).map_err(|error| AgentError::Template(error.to_string()))?
            }
        };
        prompt.push_str(cue(self.role));
        Ok(prompt)
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The trace and the counters of one reply.
    pub(crate) fn call(&self, task: &str, request: &GenerateRequest) -> Call {
        let name = self.options.adapter.as_deref().unwrap_or_default();
        let digest = self.backend.adapters().into_iter().find(|adapter| adapter.name == name).map(|adapter| adapter.digest);
        let span = gen_ai::chat_span(&self.backend.info().name, self.role.as_str(), name, &digest.unwrap_or_default(), task);
        Call::begin(self.role.as_str(), span, request, self.options.capture_content)
    }

    /// One token, to see whether the model works. A full queue is a sign of life.
    pub(crate) async fn probe(&self, limit: Duration) -> Result<(), GenerateError> {
        let request = GenerateRequest {
            adapter: self.options.adapter.clone(),
            max_tokens: 1,
            deadline: Instant::now().checked_add(limit),
            ..GenerateRequest::new("Question:")
        };
        match self.backend.generate(request) {
            Ok(stream) => stream.finish().await.map(|_| ()),
            Err(GenerateError::Overloaded { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

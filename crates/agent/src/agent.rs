//! A model in one role.

use std::sync::{Arc, PoisonError, RwLock};
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
use crate::registry::Refusal;
use crate::speech::Speech;
use crate::voice::Voice;

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
    voice: RwLock<Arc<Voice>>,
    template: Option<ChatTemplate>,
    capture_content: bool,
    health: Health,
}

impl Agent {
    /// An agent over a backend that has the adapter.
    pub fn new(role: Role, backend: Arc<dyn Backend>, options: AgentOptions) -> Agent {
        let voice = Voice::fixed(options.adapter.clone());
        Agent::with_voice(role, backend, voice, options)
    }

    /// An agent that speaks with `voice`, whatever the options say of an adapter.
    pub(crate) fn with_voice(role: Role, backend: Arc<dyn Backend>, voice: Voice, options: AgentOptions) -> Agent {
        let AgentOptions { template, capture_content, .. } = options;
        Agent { role, backend, voice: RwLock::new(Arc::new(voice)), template, capture_content, health: Health::default() }
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
        let voice = self.voice();
        let generate = GenerateRequest {
            adapter: voice.name.clone(),
            sampling,
            max_tokens: expect.max_tokens,
            grammar: Some(Grammar::Regex(expect.regex)),
            deadline: request.deadline,
            // a chat template writes that token itself
            add_bos: self.template.is_some().then_some(false),
            ..GenerateRequest::new(prompt)
        };
        let agent = Arc::clone(self);
        if generate.prompt.len() <= LONG_PROMPT {
            return Speech::begin(agent, voice, &trajectory.task_id, generate);
        }
        let span = tracing::Span::current();
        tokio::task::spawn_blocking(move || span.in_scope(|| Speech::begin(agent, voice, &trajectory.task_id, generate)))
            .await
            .unwrap_or_else(|error| Err(AgentError::Generate(GenerateError::engine(error.to_string()))))
    }

    /// What the model is given: for the same history always the same text, and always a prefix of the next one.
    fn prompt(&self, trajectory: &Trajectory) -> Result<String, AgentError> {
        let mut prompt = match &self.template {
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

    /// What a reply that begins now speaks with, to its end.
    fn voice(&self) -> Arc<Voice> {
        Arc::clone(&self.voice.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// New replies speak with `voice`; those that have begun keep theirs.
    pub(crate) fn switch(&self, voice: Voice) {
        let mut current = self.voice.write().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *current, Arc::new(voice));
        // let go of outside the lock: the last holder unloads an adapter
        drop(current);
        drop(old);
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        self.backend.as_ref()
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The trace and the counters of one reply.
    pub(crate) fn call(&self, task: &str, request: &GenerateRequest) -> Call {
        let name = request.adapter.as_deref().unwrap_or_default();
        let digest = self.backend.adapters().into_iter().find(|adapter| adapter.name == name).map(|adapter| adapter.digest);
        let span = gen_ai::chat_span(&self.backend.info().name, self.role.as_str(), name, &digest.unwrap_or_default(), task);
        Call::begin(self.role.as_str(), span, request, self.capture_content)
    }

    /// One token, to see whether the model works.
    pub(crate) async fn probe(&self, limit: Duration) -> Result<(), GenerateError> {
        self.one_token(&self.voice(), limit).await
    }

    /// One token with a voice that does not speak yet, to see whether it can.
    pub(crate) async fn trial(&self, voice: &Voice, limit: Duration) -> Result<(), Refusal> {
        let reason = match tokio::time::timeout(limit, self.one_token(voice, limit)).await {
            // the queue took up the time: the model is busy, which says nothing of the adapter
            Ok(Ok(()) | Err(GenerateError::DeadlineExceeded)) | Err(_) => return Ok(()),
            Ok(Err(error)) => error.to_string(),
        };
        Err(Refusal::Mute { name: voice.name.clone().unwrap_or_default(), reason })
    }

    /// A full queue is a sign of life.
    async fn one_token(&self, voice: &Voice, limit: Duration) -> Result<(), GenerateError> {
        let request = GenerateRequest {
            adapter: voice.name.clone(),
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

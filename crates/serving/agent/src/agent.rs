//! A model in one role.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use autoact_model::{Backend, ChatTemplate, GenerateError, GenerateRequest};
use autoact_prompt::cue;
use autoact_speaker::Speaker;
use autoact_telemetry::gen_ai;
use autoact_trajectory::Role;

use crate::call::Call;
use crate::health::Health;
use crate::registry::Refusal;
use crate::voice::Voice;

/// How an agent is set up.
#[derive(Debug, Clone, Default)]
pub struct AgentOptions {
    /// The adapter's name in the backend; `None`: the base speaks.
    pub adapter: Option<String>,
    /// How the model wants to be asked, in place of what it says itself; `None`: as it says.
    pub template: Option<ChatTemplate>,
    /// The most tokens of a reply where that is more than a reply's form allows; 0: as the form
    /// allows.
    pub reply_tokens: usize,
    /// Put prompts and replies into traces.
    pub capture_content: bool,
}

/// A base model with one adapter that speaks in one role.
pub struct Agent {
    role: Role,
    speaker: Speaker,
    voice: RwLock<Arc<Voice>>,
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
        let AgentOptions { template, capture_content, reply_tokens, .. } = options;
        let mut speaker = Speaker::new(backend).with_reply_tokens(reply_tokens);
        if let Some(template) = template {
            speaker = speaker.with_template(template);
        }
        Agent { role, speaker, voice: RwLock::new(Arc::new(voice)), capture_content, health: Health::default() }
    }

    /// Whose part it speaks.
    pub fn role(&self) -> Role {
        self.role
    }

    /// What a reply that begins now speaks with, to its end.
    pub(crate) fn voice(&self) -> Arc<Voice> {
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

    pub(crate) fn speaker(&self) -> &Speaker {
        &self.speaker
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        self.speaker.backend().as_ref()
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// The trace and the counters of one reply.
    pub(crate) fn call(&self, task: &str, request: &GenerateRequest) -> Call {
        let name = request.adapter.as_deref().unwrap_or_default();
        let digest = self.backend().adapters().into_iter().find(|adapter| adapter.name == name).map(|adapter| adapter.digest);
        let span = gen_ai::chat_span(&self.backend().info().name, self.role.as_str(), name, &digest.unwrap_or_default(), task);
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

    /// The prompt ends as the role's prompts do: an activated adapter acts from there on, and before
    /// it the base would speak alone. A full queue is a sign of life.
    async fn one_token(&self, voice: &Voice, limit: Duration) -> Result<(), GenerateError> {
        let request = GenerateRequest {
            adapter: voice.name.clone(),
            max_tokens: 1,
            deadline: Instant::now().checked_add(limit),
            ..GenerateRequest::new(format!("Question:\n{}", cue(self.role)))
        };
        match self.backend().generate(request) {
            Ok(stream) => stream.finish().await.map(|_| ()),
            Err(GenerateError::Overloaded { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ScriptedBackend;

    #[tokio::test]
    async fn a_trial_ends_where_an_activated_adapter_begins() {
        for role in Role::ALL {
            let backend = Arc::new(ScriptedBackend::saying(" It is.\n").with_adapter("new"));
            let agent = Agent::new(role, Arc::clone(&backend) as Arc<dyn Backend>, AgentOptions::default());
            agent.trial(&Voice::fixed(Some("new".to_owned())), Duration::from_secs(5)).await.expect("it speaks");
            let asked = backend.requests().pop().expect("it was asked");
            assert!(asked.prompt.ends_with(&format!("\n{}", cue(role))), "{}", asked.prompt);
            assert_eq!(asked.adapter.as_deref(), Some("new"));
        }
    }
}

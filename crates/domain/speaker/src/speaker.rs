//! Composes what a model is asked.

use std::sync::Arc;
use std::time::Instant;

use autoact_model::{Backend, ChatTemplate, GenerateRequest, Generated, Message, Owner, Prompt, WordBias, WordLimit};
use autoact_prompt::{Expect, chat, cue, transcript};
use autoact_trajectory::{PromptSize, Role, Sampling, Trajectory};

use crate::closing::CLOSING_TOKENS;
use crate::convert::{grammar, model_sampling, scores};
use crate::error::SpeakError;
use crate::reply::ReplyStream;

/// What a model is asked that reads its prompt as it stands: with its chat template, or with the
/// plain transcript where there is none. Training reads the same.
///
/// # Errors
/// The chat template fails.
pub fn prompt(template: Option<&ChatTemplate>, role: Role, trajectory: &Trajectory) -> Result<Prompt, SpeakError> {
    let mut prompt = match template {
        None => transcript(trajectory).into(),
        Some(template) => template.render(&messages(role, trajectory), true).map_err(|error| SpeakError::Template(error.to_string()))?,
    };
    prompt.push_text(cue(role));
    Ok(prompt)
}

fn messages(role: Role, trajectory: &Trajectory) -> Vec<Message> {
    chat(role, trajectory).into_iter().map(|message| Message::new(message.role, message.content)).collect()
}

/// One turn of one role.
#[derive(Debug, Clone, Copy)]
pub struct SpeakRequest<'a> {
    /// Who is to speak.
    pub role: Role,
    /// The history to go on with.
    pub trajectory: &'a Trajectory,
    /// How to decode. The seed is this call's own.
    pub sampling: Sampling,
    /// The adapter's name in the backend; `None`: the base speaks.
    pub adapter: Option<&'a str>,
    /// Words to lean towards.
    pub word_bias: &'a [WordBias],
    /// The only words of its first line; `None`: any.
    pub word_limit: Option<&'a WordLimit>,
    /// When the reply is of no use any more.
    pub deadline: Option<Instant>,
    /// Whose task it is: what the model's server keeps of the prompt serves nobody else, the tools'
    /// descriptions left out. `None`: there is one owner only.
    pub owner: Option<&'a str>,
}

impl<'a> SpeakRequest<'a> {
    /// The base speaks, greedily and without a deadline.
    pub fn new(role: Role, trajectory: &'a Trajectory) -> SpeakRequest<'a> {
        SpeakRequest {
            role,
            trajectory,
            sampling: Sampling::default(),
            adapter: None,
            word_bias: &[],
            word_limit: None,
            deadline: None,
            owner: None,
        }
    }
}

/// A model, and how it wants to be asked. Cheap to clone.
#[derive(Clone)]
pub struct Speaker {
    backend: Arc<dyn Backend>,
    template: Option<Arc<ChatTemplate>>,
    /// The most tokens of a reply; 0: as its form says.
    reply_tokens: usize,
}

impl Speaker {
    /// Asks with the chat template that the model brings, in messages where a server applies it, or
    /// with the plain transcript where there is none.
    pub fn new(backend: Arc<dyn Backend>) -> Speaker {
        let template = backend.chat_template().cloned().map(Arc::new);
        Speaker { backend, template, reply_tokens: 0 }
    }

    /// The same model, with replies of up to so many tokens where their form allows fewer.
    #[must_use]
    pub fn with_reply_tokens(self, reply_tokens: usize) -> Speaker {
        Speaker { reply_tokens, ..self }
    }

    /// The same model, asked with another template than its own.
    #[must_use]
    pub fn with_template(self, template: ChatTemplate) -> Speaker {
        Speaker { template: Some(Arc::new(template)), ..self }
    }

    /// The model.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// What the model is asked: for the same history always the same text, and always a prefix of
    /// the next one.
    ///
    /// # Errors
    /// The chat template fails.
    pub fn compose(&self, request: &SpeakRequest<'_>) -> Result<GenerateRequest, SpeakError> {
        let SpeakRequest { role, trajectory, sampling, adapter, word_bias, word_limit, deadline, owner } = *request;
        let expect = Expect::next(role, trajectory).with_tokens(self.reply_tokens);
        let owner = match owner {
            Some(name) => Some(Owner { name: name.to_owned(), head: self.head(role, trajectory)? }),
            None => None,
        };
        Ok(GenerateRequest {
            adapter: adapter.map(str::to_owned),
            sampling: model_sampling(sampling),
            max_tokens: expect.max_tokens,
            word_bias: word_bias.to_vec(),
            word_limit: word_limit.cloned(),
            grammar: Some(grammar(expect.form)),
            deadline,
            // a chat template writes that token itself
            add_bos: self.template.is_some().then_some(false),
            scores: Some(scores(role)),
            owner,
            ..GenerateRequest::new(self.prompt(role, trajectory)?)
        })
    }

    /// The most tokens that a prompt of `role` and its reply may have together. The rest of the
    /// context is for the closing of a cut thought.
    pub fn room(&self, role: Role) -> usize {
        let closing = if role == Role::Tool { 0 } else { CLOSING_TOKENS };
        self.backend.info().context_length.saturating_sub(closing)
    }

    /// The prompt that `role` would be asked with, whoever's turn it is.
    ///
    /// # Errors
    /// The chat template fails, or the tokens cannot be counted.
    pub async fn measure(&self, role: Role, trajectory: &Trajectory) -> Result<PromptSize, SpeakError> {
        let GenerateRequest { prompt, add_bos, max_tokens, .. } = self.compose(&SpeakRequest::new(role, trajectory))?;
        let tokens = self.backend.count_tokens(&prompt, add_bos).await?;
        Ok(PromptSize { tokens, limit: self.room(role).saturating_sub(max_tokens) })
    }

    /// What the prompts of all tasks with the same tools begin with: the prompt of a task that says
    /// nothing else.
    fn head(&self, role: Role, trajectory: &Trajectory) -> Result<Prompt, SpeakError> {
        self.prompt(role, &Trajectory { tools: trajectory.tools.clone(), ..Trajectory::default() })
    }

    fn prompt(&self, role: Role, trajectory: &Trajectory) -> Result<Prompt, SpeakError> {
        if self.template.is_none() && self.backend.takes_messages() {
            let mut prompt = Prompt::reply_to(messages(role, trajectory));
            prompt.push_text(cue(role));
            return Ok(prompt);
        }
        prompt(self.template.as_deref(), role, trajectory)
    }

    /// Starts a reply to a composed request of `role`. The prompt is tokenised here; dropping the
    /// stream stops the model.
    ///
    /// # Errors
    /// The model does not begin.
    pub fn begin(&self, role: Role, request: GenerateRequest) -> Result<ReplyStream, SpeakError> {
        ReplyStream::begin(Arc::clone(&self.backend), role, request)
    }

    /// Composes and begins in one go.
    ///
    /// # Errors
    /// The chat template fails, or the model does not begin.
    pub fn speak(&self, request: &SpeakRequest<'_>) -> Result<ReplyStream, SpeakError> {
        self.begin(request.role, self.compose(request)?)
    }

    /// The whole reply.
    ///
    /// # Errors
    /// The chat template fails, or the model does not complete.
    pub async fn reply(&self, request: &SpeakRequest<'_>) -> Result<Generated, SpeakError> {
        self.speak(request)?.finish().await
    }
}

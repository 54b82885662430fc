//! A reply as it is written.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use autoact_model::{Backend, FinishReason, GenerateError, GenerateEvent, GenerateRequest, GenerateStream, Generated};
use autoact_trajectory::Role;
use futures::Stream;

use crate::closing::{self, Cut};
use crate::error::SpeakError;

/// What a reply stream gives.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEvent {
    /// Text as the model writes it, labels included.
    Delta(String),
    /// The end: the whole reply.
    Done(Generated),
}

/// A reply being written: any number of [`ReplyEvent::Delta`], then [`ReplyEvent::Done`] or an
/// error. Dropping it stops the model.
pub struct ReplyStream {
    backend: Arc<dyn Backend>,
    role: Role,
    request: GenerateRequest,
    stream: GenerateStream,
    /// The thought that was cut, once it is being closed. A reply is closed once.
    cut: Option<Generated>,
}

impl ReplyStream {
    pub(crate) fn begin(backend: Arc<dyn Backend>, role: Role, request: GenerateRequest) -> Result<ReplyStream, SpeakError> {
        let stream = backend.generate(request.clone())?;
        Ok(ReplyStream { backend, role, request, stream, cut: None })
    }

    /// The next piece; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<ReplyEvent, SpeakError>> {
        std::future::poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Waits for the end: the whole reply.
    ///
    /// # Errors
    /// What the model cannot do.
    pub async fn finish(mut self) -> Result<Generated, SpeakError> {
        loop {
            match self.next().await {
                Some(Ok(ReplyEvent::Done(generated))) => return Ok(generated),
                Some(Ok(ReplyEvent::Delta(_))) => {}
                Some(Err(error)) => return Err(error),
                None => return Err(GenerateError::engine("the reply ended twice").into()),
            }
        }
    }

    /// The whole reply, or `None` while its cut thought is closed.
    fn done(&mut self, generated: Generated) -> Result<Option<Generated>, SpeakError> {
        if let Some(cut) = self.cut.take() {
            return Ok(Some(closing::joined(cut, generated)));
        }
        if generated.finish != FinishReason::Length {
            return Ok(Some(generated));
        }
        let context = self.backend.info().context_length;
        match closing::look(self.role, &self.request, context, generated)? {
            Cut::Whole(generated) => Ok(Some(generated)),
            Cut::Close { thought, request } => {
                let tokens = thought.completion_tokens;
                let repeated = thought.finish == FinishReason::Repetition;
                tracing::debug!(agent = self.role.as_str(), tokens, repeated, "a long thought was cut");
                self.stream = self.backend.generate(*request)?;
                self.cut = Some(thought);
                Ok(None)
            }
        }
    }
}

impl Stream for ReplyStream {
    type Item = Result<ReplyEvent, SpeakError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let Some(event) = ready!(Pin::new(&mut self.stream).poll_next(context)) else { return Poll::Ready(None) };
            return Poll::Ready(Some(match event {
                Ok(GenerateEvent::Token { text }) => Ok(ReplyEvent::Delta(text)),
                Ok(GenerateEvent::Done(generated)) => match self.done(generated) {
                    Ok(Some(whole)) => Ok(ReplyEvent::Done(whole)),
                    Ok(None) => continue,
                    Err(error) => Err(error),
                },
                Err(error) => Err(error.into()),
            }));
        }
    }
}

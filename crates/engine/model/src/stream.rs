//! The stream of a completion's events: reader and writer.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::Stream;
use tokio::sync::mpsc;

use crate::{GenerateError, GenerateEvent, Generated};

type Event = Result<GenerateEvent, GenerateError>;

/// Number of unread events after which further texts are joined.
const CAPACITY: usize = 64;

/// The reader: any number of [`GenerateEvent::Token`], then one [`GenerateEvent::Done`] or one
/// error. Dropping it cancels the completion.
#[derive(Debug)]
pub struct GenerateStream {
    receiver: mpsc::Receiver<Event>,
    ended: bool,
}

/// The writer, for implementations of [`Backend`](crate::Backend). It never blocks: if the reader
/// is slow, text is kept and sent with the next event.
#[derive(Debug)]
pub struct GenerateSender {
    sender: mpsc::Sender<Event>,
    /// Permits for the last text and the end, so that sending them never waits.
    reserved: Vec<mpsc::OwnedPermit<Event>>,
    unsent: String,
}

impl GenerateStream {
    /// Writer and reader of a new completion.
    pub fn channel() -> (GenerateSender, Self) {
        let (sender, receiver) = mpsc::channel(CAPACITY);
        let reserved = (0..2).filter_map(|_| sender.clone().try_reserve_owned().ok()).collect();
        (GenerateSender { sender, reserved, unsent: String::new() }, Self { receiver, ended: false })
    }

    /// The next event; `None` after the end.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The next event, for code outside an async runtime. Panics inside one.
    pub fn blocking_next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = self.receiver.blocking_recv();
        self.check(event)
    }

    /// Waits for the end.
    pub async fn finish(mut self) -> Result<Generated, GenerateError> {
        loop {
            match self.next().await {
                Some(Ok(GenerateEvent::Done(done))) => return Ok(done),
                Some(Ok(GenerateEvent::Token { .. })) => {}
                Some(Err(e)) => return Err(e),
                None => return Err(lost()),
            }
        }
    }

    /// Waits for the end. For code outside an async runtime; panics inside one.
    pub fn blocking_finish(mut self) -> Result<Generated, GenerateError> {
        loop {
            match self.blocking_next() {
                Some(Ok(GenerateEvent::Done(done))) => return Ok(done),
                Some(Ok(GenerateEvent::Token { .. })) => {}
                Some(Err(e)) => return Err(e),
                None => return Err(lost()),
            }
        }
    }

    /// A writer that is dropped without an end is an error.
    fn check(&mut self, event: Option<Event>) -> Option<Event> {
        let event = event.unwrap_or_else(|| Err(lost()));
        self.ended = !matches!(event, Ok(GenerateEvent::Token { .. }));
        Some(event)
    }
}

impl Stream for GenerateStream {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(event) => Poll::Ready(self.check(event)),
        }
    }
}

fn lost() -> GenerateError {
    GenerateError::engine("the model's thread went away before the completion was done")
}

impl GenerateSender {
    /// Whether the reader was dropped.
    pub fn is_cancelled(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends text, immediately or with the next event.
    pub fn text(&mut self, text: &str) {
        self.unsent.push_str(text);
        if self.unsent.is_empty() {
            return;
        }
        if let Ok(permit) = self.sender.try_reserve() {
            permit.send(Ok(GenerateEvent::Token { text: std::mem::take(&mut self.unsent) }));
        }
    }

    /// Sends the remaining text, then the end.
    pub fn end(mut self, end: Result<Generated, GenerateError>) {
        let unsent = std::mem::take(&mut self.unsent);
        if !unsent.is_empty()
            && let Some(permit) = self.reserved.pop()
        {
            permit.send(Ok(GenerateEvent::Token { text: unsent }));
        }
        if let Some(permit) = self.reserved.pop() {
            permit.send(end.map(GenerateEvent::Done));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_reader_loses_nothing() {
        let (mut sender, mut stream) = GenerateStream::channel();
        let sent: Vec<String> = (0..500).map(|i| format!("{i} ")).collect();
        sent.iter().for_each(|text| sender.text(text));
        sender.end(Err(GenerateError::Cancelled));
        let mut text = String::new();
        while let Some(Ok(GenerateEvent::Token { text: more })) = stream.blocking_next() {
            text.push_str(&more);
        }
        assert_eq!(text, sent.concat());
        assert_eq!(stream.blocking_next(), None);
    }

    #[test]
    fn a_writer_that_vanishes_is_an_error() {
        let (sender, mut stream) = GenerateStream::channel();
        drop(sender);
        assert!(matches!(stream.blocking_next(), Some(Err(GenerateError::Engine { .. }))));
        assert_eq!(stream.blocking_next(), None);
    }

    #[test]
    fn dropping_the_reader_is_seen() {
        let (sender, stream) = GenerateStream::channel();
        assert!(!sender.is_cancelled());
        drop(stream);
        assert!(sender.is_cancelled());
    }
}

//! A request as it arrives: no message larger than its method takes, no more of all requests at
//! once than the process may hold, and none that takes for ever.

use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use autoact_wire::sizes::RequestSize;
use autoact_wire::status::to_status;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Sleep;
use tonic::Status;
use tonic::body::Body;

use crate::refusal::Refusal;

/// What begins a message of gRPC: a flag and four bytes of length.
const PREFIX: usize = 5;

/// The bytes of all requests that are being received.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Arc<Budget> {
        Arc::new(Budget { held: AtomicUsize::new(0), most })
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.checked_add(bytes).is_some_and(|held| held <= self.most);
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Where a message begins and ends in the bytes of a request.
#[derive(Debug, Default)]
struct Messages {
    prefix: [u8; PREFIX],
    /// Bytes of the prefix that are there.
    read: usize,
    /// Bytes of the message that are to come, after a whole prefix.
    left: usize,
    /// Whole messages so far.
    ended: usize,
}

impl Messages {
    /// The next bytes.
    fn add(&mut self, mut bytes: &[u8], size: RequestSize) -> Result<(), Refusal> {
        while !bytes.is_empty() {
            if self.ended > 0 && !size.stream {
                return Err(Refusal::TooMuch);
            }
            if self.read < PREFIX {
                let some = bytes.len().min(PREFIX - self.read);
                self.prefix[self.read..self.read + some].copy_from_slice(&bytes[..some]);
                self.read += some;
                bytes = &bytes[some..];
                if self.read < PREFIX {
                    return Ok(());
                }
                let [_, length @ ..] = self.prefix;
                // a message of 4 GiB on a machine that cannot count to it is too large as well
                let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                if length > size.most {
                    return Err(Refusal::TooLarge { bytes: length, most: size.most });
                }
                self.left = length;
                if length > 0 {
                    continue;
                }
            }
            let some = bytes.len().min(self.left);
            self.left -= some;
            bytes = &bytes[some..];
            if self.left == 0 {
                self.ended += 1;
                self.read = 0;
            }
        }
        Ok(())
    }

    /// Whether all that came is whole messages.
    fn between(&self) -> bool {
        self.read == 0
    }
}

/// The body of a request, within its bounds.
pub(crate) struct RequestBody {
    body: Body,
    size: RequestSize,
    messages: Messages,
    budget: Arc<Budget>,
    held: usize,
    /// For requests of one message.
    timer: Option<(Duration, Pin<Box<Sleep>>)>,
    refused: bool,
}

impl RequestBody {
    pub(crate) fn new(body: Body, size: RequestSize, budget: Arc<Budget>, limit: Duration) -> RequestBody {
        // a stream may have pauses; its service says how long
        let timer = (!size.stream).then(|| (limit, Box::pin(tokio::time::sleep(limit))));
        RequestBody { body, size, messages: Messages::default(), budget, held: 0, timer, refused: false }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.messages.add(bytes, self.size)?;
        if !self.budget.take(bytes.len()) {
            return Err(Refusal::Receiving { most: self.budget.most });
        }
        self.held += bytes.len();
        if self.size.stream && self.messages.between() {
            self.release();
        }
        Ok(())
    }

    fn release(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.held));
    }

    fn refuse(&mut self, refusal: Refusal) -> Poll<Option<Result<Frame<<Body as HttpBody>::Data>, Status>>> {
        self.refused = true;
        self.release();
        // the rest is not read
        self.body = Body::empty();
        Poll::Ready(Some(Err(to_status(&refusal))))
    }
}

impl HttpBody for RequestBody {
    type Data = <Body as HttpBody>::Data;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, Status>>> {
        let this = &mut *self;
        if this.refused {
            return Poll::Ready(None);
        }
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(Err(refusal)) = frame.data_ref().map(|data| this.add(data)) {
                    return this.refuse(refusal);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(other) => {
                this.timer = None;
                Poll::Ready(other)
            }
            Poll::Pending => {
                if let Some((limit, timer)) = &mut this.timer
                    && timer.as_mut().poll(cx).is_ready()
                {
                    let limit = *limit;
                    return this.refuse(Refusal::SlowRequest { limit });
                }
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: RequestSize = RequestSize { most: 10, stream: false };
    const MANY: RequestSize = RequestSize { most: 10, stream: true };

    fn message(length: u32, bytes: usize) -> Vec<u8> {
        let mut message = vec![0];
        message.extend(length.to_be_bytes());
        message.resize(PREFIX + bytes, 7);
        message
    }

    /// Both ways of receiving the same bytes: at once and one by one.
    fn received(bytes: &[u8], size: RequestSize) -> Result<usize, Refusal> {
        let (mut at_once, mut singly) = (Messages::default(), Messages::default());
        let outcome = at_once.add(bytes, size);
        assert_eq!(outcome, bytes.chunks(1).try_for_each(|byte| singly.add(byte, size)));
        outcome.map(|()| at_once.ended)
    }

    #[test]
    fn messages_are_bounded_however_they_arrive() {
        assert_eq!(received(&[], ONE), Ok(0));
        assert_eq!(received(&message(10, 10), ONE), Ok(1));
        assert_eq!(received(&message(10, 9), ONE), Ok(0));
        // refused by what it says, before it is there
        assert_eq!(received(&message(11, 0), ONE), Err(Refusal::TooLarge { bytes: 11, most: 10 }));
        assert_eq!(received(&message(u32::MAX, 0), MANY), Err(Refusal::TooLarge { bytes: 0xffff_ffff, most: 10 }));
        let two = [message(10, 10), message(1, 1)].concat();
        assert_eq!(received(&two, ONE), Err(Refusal::TooMuch));
        assert_eq!(received(&two, MANY), Ok(2));
    }

    #[test]
    fn an_empty_message_is_a_message() {
        let empty = [message(0, 0), message(3, 3)].concat();
        assert_eq!(received(&message(0, 0), ONE), Ok(1));
        assert_eq!(received(&empty, MANY), Ok(2));
    }

    #[test]
    fn a_budget_is_given_back() {
        let budget = Budget::new(10);
        assert!(budget.take(10) && !budget.take(1));
        budget.give_back(10);
        assert!(budget.take(3) && !budget.take(8) && budget.take(7));
    }
}

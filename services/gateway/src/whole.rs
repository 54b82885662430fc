//! Sends a request in one piece.
//!
//! A client of tonic gives hyper the body as a stream, and hyper cannot know that the first message is the last: headers, message and end
//! leave in three writes, and the agent is woken three times before it can begin. A request of one message is all there when the call
//! is made, so it is handed over as a whole, and leaves in one write.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tonic::Status;
use tonic::body::Body;
use tower::Service;

/// More frames than this are a stream that is better left alone.
const MAX_FRAMES: usize = 4;

/// A channel whose requests leave in one piece.
#[derive(Debug, Clone)]
pub(crate) struct Whole<S>(pub(crate) S);

impl<S: Service<Request<Body>>> Service<Request<Body>> for Whole<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        self.0.call(request.map(|body| Body::new(Gathered::new(body))))
    }
}

/// What is ready of a body, and the rest of it if there is one.
struct Gathered {
    ready: VecDeque<Result<Frame<Bytes>, Status>>,
    rest: Option<Body>,
}

impl Gathered {
    fn new(mut body: Body) -> Gathered {
        // whoever reads the rest asks again, with a waker of its own
        let mut cx = Context::from_waker(Waker::noop());
        let mut ready = VecDeque::new();
        while ready.len() < MAX_FRAMES {
            match Pin::new(&mut body).poll_frame(&mut cx) {
                Poll::Ready(Some(frame)) => ready.push_back(frame),
                Poll::Ready(None) => return Gathered { ready, rest: None },
                Poll::Pending => break,
            }
        }
        Gathered { ready, rest: Some(body) }
    }
}

impl HttpBody for Gathered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Some(frame) = self.ready.pop_front() {
            return Poll::Ready(Some(frame));
        }
        match &mut self.rest {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.rest.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Gives its frames one by one; where there is none, the reader has to come back.
    struct Script(VecDeque<Option<&'static str>>);

    impl HttpBody for Script {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.pop_front() {
                Some(Some(text)) => Poll::Ready(Some(Ok(Frame::data(text.into())))),
                Some(None) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                None => Poll::Ready(None),
            }
        }
    }

    /// The frames of a body, and whether it said that the last one was the last.
    async fn read(frames: &[Option<&'static str>]) -> (Vec<Bytes>, bool) {
        let mut body = Gathered::new(Body::new(Script(frames.iter().copied().collect())));
        let (mut all, mut told) = (Vec::new(), false);
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            all.push(frame.unwrap().into_data().unwrap());
            told = body.is_end_stream();
        }
        (all, told)
    }

    #[tokio::test]
    async fn one_message_is_known_to_be_the_last() {
        assert_eq!(read(&[Some("a")]).await, (vec!["a".into()], true));
        assert_eq!(read(&[Some("a"), Some("b")]).await, (vec!["a".into(), "b".into()], true));
        assert_eq!(read(&[]).await, (vec![], false));
    }

    #[tokio::test]
    async fn a_stream_stays_one() {
        assert_eq!(read(&[None, Some("a"), None, Some("b")]).await.0, ["a", "b"]);
        let many = [Some("a"); 3 * MAX_FRAMES];
        assert_eq!(read(&many).await.0.len(), 3 * MAX_FRAMES);
    }
}

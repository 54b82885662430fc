//! Clients that do not take what there is for them. HTTP/2 holds a reply back until its client has
//! room for it, and asks nobody for more: what stands behind the reply would wait for ever. So a
//! reply from which nothing was asked for too long is dropped, and with it all that it held: places,
//! subscriptions, memory. If the client reads on, it gets what was sent, and then the status.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use autoact_wire::status::to_status;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame};
use tonic::Status;
use tonic::body::Body;

use crate::refusal::Refusal;

/// What a service says to a client that reads too slowly. In the extensions of its response:
/// everything that it gave before was sent, and nothing after it.
#[derive(Clone)]
pub struct OnSlowReader(pub Arc<dyn Fn() -> Status + Send + Sync>);

impl std::fmt::Debug for OnSlowReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnSlowReader")
    }
}

type FrameOf = Frame<<Body as HttpBody>::Data>;

/// A reply that can be dropped from outside.
#[derive(Debug)]
struct Slot {
    body: Option<Body>,
    /// When something was given that was not followed by the wish for more.
    given: Option<Instant>,
}

type Shared = Arc<Mutex<Slot>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The replies of a service that are being sent.
#[derive(Debug)]
pub(crate) struct SlowReaders {
    limit: Duration,
    replies: Mutex<Replies>,
}

#[derive(Debug, Default)]
struct Replies {
    next: u64,
    open: HashMap<u64, Weak<Mutex<Slot>>>,
}

impl SlowReaders {
    pub(crate) fn new(limit: Duration) -> Arc<SlowReaders> {
        Arc::new(SlowReaders { limit, replies: Mutex::default() })
    }

    /// Watches a reply. `told` is what its service says.
    pub(crate) fn watch(self: &Arc<Self>, body: Body, told: Option<OnSlowReader>) -> Reply {
        let slot = Arc::new(Mutex::new(Slot { body: Some(body), given: None }));
        let mut replies = lock(&self.replies);
        replies.next += 1;
        let id = replies.next;
        replies.open.insert(id, Arc::downgrade(&slot));
        drop(replies);
        Reply { slot, id, readers: Arc::clone(self), told }
    }

    /// Drops the replies that nobody has taken anything from since `limit` before `now`: how many.
    fn drop_slow(&self, now: Instant) -> usize {
        // bodies are dropped without any lock: what they do then is not ours
        let open: Vec<Shared> = lock(&self.replies).open.values().filter_map(Weak::upgrade).collect();
        let late = |slot: &Slot| slot.given.is_some_and(|given| now.saturating_duration_since(given) >= self.limit);
        let slow = open.iter().filter_map(|slot| {
            let mut slot = lock(slot);
            if late(&slot) { slot.body.take() } else { None }
        });
        let slow: Vec<Body> = slow.collect();
        slow.len()
    }

    /// Looks without end.
    pub(crate) async fn keep(self: Arc<Self>) {
        let mut ticks = tokio::time::interval((self.limit / 4).max(Duration::from_millis(10)));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let count = self.drop_slow(Instant::now());
            if count > 0 {
                tracing::info!(count, limit = ?self.limit, "replies were dropped: their clients did not read");
            }
        }
    }
}

/// A reply that is dropped when its client is too slow.
pub(crate) struct Reply {
    slot: Shared,
    id: u64,
    readers: Arc<SlowReaders>,
    told: Option<OnSlowReader>,
}

impl Reply {
    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<FrameOf, Status>>> {
        let mut slot = lock(&self.slot);
        slot.given = None;
        let Some(body) = &mut slot.body else {
            drop(slot);
            return Poll::Ready(Some(Ok(self.trailers())));
        };
        let frame = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &frame
            && frame.is_data()
        {
            slot.given = Some(Instant::now());
        }
        frame
    }

    pub(crate) fn is_end_stream(&self) -> bool {
        lock(&self.slot).body.as_ref().is_some_and(HttpBody::is_end_stream)
    }

    /// The end of a reply that was dropped.
    fn trailers(&self) -> FrameOf {
        let status = match &self.told {
            Some(OnSlowReader(told)) => told(),
            None => to_status(&Refusal::SlowReader { limit: self.readers.limit }),
        };
        let mut trailers = HeaderMap::new();
        // an error means that a status of ours is no header: then there are none, which is an error
        // for the client too
        let _ = status.add_header(&mut trailers);
        Frame::trailers(trailers)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        lock(&self.readers.replies).open.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use http_body::SizeHint;

    use super::*;

    /// Gives one frame and then waits; says when it was dropped.
    struct Endless {
        given: bool,
        _held: Arc<()>,
    }

    impl HttpBody for Endless {
        type Data = <Body as HttpBody>::Data;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<FrameOf, Status>>> {
            if std::mem::replace(&mut self.given, true) {
                return Poll::Pending;
            }
            Poll::Ready(Some(Ok(Frame::data(vec![1].into()))))
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::default()
        }
    }

    #[test]
    fn a_reply_is_dropped_only_while_something_waits_to_be_read() {
        let limit = Duration::from_secs(30);
        let readers = SlowReaders::new(limit);
        let (held, cx) = (Arc::new(()), &mut Context::from_waker(std::task::Waker::noop()));
        let told = OnSlowReader(Arc::new(|| Status::aborted("slow")));
        let mut reply = readers.watch(Body::new(Endless { given: false, _held: Arc::clone(&held) }), Some(told));
        let later = || Instant::now() + limit;
        // nobody has asked yet
        assert_eq!(readers.drop_slow(later()), 0);
        assert!(reply.poll_frame(cx).is_ready());
        assert_eq!(readers.drop_slow(Instant::now()), 0, "there is time left");
        // the client took it, and waits for more
        assert!(reply.poll_frame(cx).is_pending());
        assert_eq!(readers.drop_slow(later()), 0);
        drop(reply);
        let mut reply = readers.watch(Body::new(Endless { given: false, _held: Arc::clone(&held) }), None);
        assert!(reply.poll_frame(cx).is_ready());
        assert_eq!(readers.drop_slow(later()), 1);
        assert_eq!(Arc::strong_count(&held), 1, "what stood behind it is gone");
        let Poll::Ready(Some(Ok(end))) = reply.poll_frame(cx) else { panic!("no end") };
        let status = Status::from_header_map(end.trailers_ref().unwrap()).unwrap();
        assert_eq!(autoact_wire::status::reason(&status).as_deref(), Some("SLOW_READER"));
        drop(reply);
        assert!(lock(&readers.replies).open.is_empty());
    }
}

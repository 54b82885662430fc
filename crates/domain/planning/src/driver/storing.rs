//! Storing an event while the model is asked that comes next.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use autoact_trajectory::{Event, Task};

use crate::log::{Appended, EventLog};

/// An event that the task has, and the log does not.
pub(super) struct Unstored {
    pub(super) event: Event,
    /// The task without it.
    pub(super) before: Task,
}

/// What came of storing an event.
pub(super) struct Storing<E> {
    /// The task without the event.
    pub(super) before: Task,
    pub(super) result: Result<Appended, E>,
    /// How much longer it took than the call beside it.
    pub(super) longer: Duration,
}

/// Stores an event, and makes a call meanwhile. The call is dropped if the event cannot be stored;
/// its answer is `None` then.
pub(super) async fn beside<L: EventLog, T>(
    log: &mut L,
    unstored: Option<Unstored>,
    call: impl Future<Output = Option<T>>,
) -> (Option<T>, Option<Storing<L::Error>>) {
    let Some(Unstored { event, before }) = unstored else { return (call.await, None) };
    let (mut storing, mut call) = (pin!(log.append(&event, before.last_sequence())), pin!(call));
    let (mut stored, mut answer, mut answered) = (None, None, None);
    let result = poll_fn(|context| {
        if stored.is_none()
            && let Poll::Ready(result) = storing.as_mut().poll(context)
        {
            // nothing that a call says can follow an event that is not there
            stored = Some(result?);
        }
        if answered.is_none()
            && let Poll::Ready(reply) = call.as_mut().poll(context)
        {
            (answer, answered) = (reply, Some(Instant::now()));
        }
        match (stored, answered) {
            (Some(appended), Some(_)) => Poll::Ready(Ok(appended)),
            _ => Poll::Pending,
        }
    })
    .await;
    if result.is_err() {
        answer = None;
    }
    let longer = answered.map(|at| at.elapsed()).unwrap_or_default();
    (answer, Some(Storing { before, result, longer }))
}

//! A client's stream of a task's events: a read of its subject, and nothing else. A client that hangs up drops the read; the task goes
//! on, and `CancelTask` ends it.

use std::pin::Pin;
use std::time::Duration;

use autoact_proto::status::{ServiceError, to_status};
use autoact_proto::v1;
use autoact_trajectory::{Event, EventBody, TaskId};
use futures::{Stream, StreamExt, stream};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use crate::cancel::TaskError;
use crate::run::Shared;

pub(crate) type Events = Pin<Box<dyn Stream<Item = Result<v1::TrajectoryEvent, Status>> + Send>>;

/// Why a stream ends before its task.
#[derive(Debug, thiserror::Error)]
#[error("this gateway is shutting down; watch task `{task}` again after sequence {after}")]
struct Leaving {
    task: TaskId,
    after: u64,
}

impl ServiceError for Leaving {
    fn code(&self) -> Code {
        Code::Unavailable
    }
    fn reason(&self) -> &'static str {
        "SHUTTING_DOWN"
    }
    fn retry_after(&self) -> Option<Duration> {
        Some(Duration::from_millis(500))
    }
}

/// The events after a sequence, until the task ends or this gateway does (`leaving`).
pub(crate) async fn watch(shared: &Shared, task: TaskId, after: u64, leaving: CancellationToken) -> Result<Events, TaskError> {
    let last = shared.bus.last(&task).await?.ok_or_else(|| TaskError::NotFound(task.clone()))?;
    if matches!(last.body, EventBody::Finished(_)) && last.sequence <= after {
        return Ok(Box::pin(stream::empty()));
    }
    Ok(follow(shared, task, after, leaving))
}

/// The same for a task that is known to be there.
pub(crate) fn follow(shared: &Shared, task: TaskId, after: u64, leaving: CancellationToken) -> Events {
    let events = Box::pin(shared.bus.read(&task, after));
    let state = Some((events, task, after, leaving));
    Box::pin(stream::unfold(state, |state| async move {
        let (mut events, task, after, leaving) = state?;
        let next = tokio::select! {
            biased;
            next = events.next() => next?,
            () = leaving.cancelled() => return Some((Err(to_status(&Leaving { task, after })), None)),
        };
        match next {
            Ok(event) => {
                let after = event.sequence;
                Some((Ok(to_proto(&event)), Some((events, task, after, leaving))))
            }
            Err(error) => Some((Err(to_status(&TaskError::from(error))), None)),
        }
    }))
}

fn to_proto(event: &Event) -> v1::TrajectoryEvent {
    event.into()
}

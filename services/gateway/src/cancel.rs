//! Ending a task from outside. The end is appended to its trajectory like any other event: it holds whichever gateway runs the task, and
//! also when none does. Whoever runs it is told, and stopped by the conflict at its next append at the latest.

use std::time::SystemTime;

use autoact_bus::BusError;
use autoact_proto::status::ServiceError;
use autoact_trajectory::{Event, EventBody, FinishReason, FoldError, Task, TaskId};
use tonic::Code;

use crate::run::{Shared, append, count_end};
use crate::submit::{bus_code, bus_reason};

/// A running task appends a few events a second: one of the first attempts fits in between.
const MAX_ATTEMPTS: u32 = 20;

/// Why a task cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("there is no task `{0}`; it was never submitted, or it has expired")]
    NotFound(TaskId),
    #[error(transparent)]
    Id(#[from] autoact_trajectory::InvalidTaskId),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the trajectory of task `{task}` does not fold")]
    Fold { task: TaskId, source: FoldError },
    #[error("`page_token` is `{0}`; expected one from an earlier response")]
    PageToken(String),
}

impl ServiceError for TaskError {
    fn code(&self) -> Code {
        match self {
            TaskError::NotFound(_) => Code::NotFound,
            TaskError::Id(_) | TaskError::PageToken(_) => Code::InvalidArgument,
            TaskError::Bus(error) => bus_code(error),
            TaskError::Fold { .. } => Code::DataLoss,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            TaskError::NotFound(_) => "TASK_NOT_FOUND",
            TaskError::Id(_) => "BAD_TASK_ID",
            TaskError::PageToken(_) => "BAD_PAGE_TOKEN",
            TaskError::Bus(error) => bus_reason(error),
            TaskError::Fold { .. } => "TRAJECTORY_BROKEN",
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            TaskError::Id(_) => Some("task_id"),
            TaskError::PageToken(_) => Some("page_token"),
            _ => None,
        }
    }

    fn retry_after(&self) -> Option<std::time::Duration> {
        matches!(self.code(), Code::Unavailable | Code::Aborted).then_some(std::time::Duration::from_secs(1))
    }
}

/// The task as its events say it is.
pub(crate) async fn load(shared: &Shared, id: &TaskId) -> Result<Task, TaskError> {
    let events = shared.bus.load(id).await?;
    if events.is_empty() {
        return Err(TaskError::NotFound(id.clone()));
    }
    Task::fold(&events).map_err(|source| match source {
        // its beginning has expired
        FoldError::NotSubmitted { .. } => TaskError::NotFound(id.clone()),
        source => TaskError::Fold { task: id.clone(), source },
    })
}

/// Ends a task with its best answer so far; one that has ended stays as it is.
pub(crate) async fn cancel(shared: &Shared, id: &TaskId) -> Result<Task, TaskError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let mut task = load(shared, id).await?;
        if task.finished().is_some() {
            return Ok(task);
        }
        let mut event = Event {
            task_id: id.clone(),
            index: task.next_index(),
            time: SystemTime::now(),
            writer: shared.writer.clone(),
            usage: None,
            timing: None,
            sequence: 0,
            body: EventBody::Finished(task.finish(FinishReason::Cancelled, "cancelled by a client")),
        };
        match append(&shared.bus, &event, task.last_sequence()).await {
            Ok(sequence) => event.sequence = sequence,
            // the task went on in the meantime
            Err(BusError::Conflict { .. }) if attempt < MAX_ATTEMPTS => continue,
            Err(error) => return Err(error.into()),
        }
        task.apply(&event).map_err(|source| TaskError::Fold { task: id.clone(), source })?;
        count_end(&task);
        shared.bus.announce_end(id).await;
        return Ok(task);
    }
}

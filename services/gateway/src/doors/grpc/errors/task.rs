//! Why a task cannot be read or changed.

use std::time::Duration;

use tonic::Code;

use super::{Row, stored};
use crate::tasks::TaskError;

/// Another gateway answers at once.
const LEAVING_DELAY: Duration = Duration::from_millis(500);

impl TaskError {
    pub(super) fn row(&self) -> Row {
        match self {
            TaskError::NotFound(id) => Row::new(Code::NotFound, "TASK_NOT_FOUND").task(id),
            TaskError::NoArtifact { task, name } => Row::new(Code::NotFound, "ARTIFACT_NOT_FOUND").task(task).with("artifact", name),
            TaskError::Bus(error) => stored::bus(error),
            TaskError::NoPlace(error) => error.row(),
            TaskError::Fold { task, source } => stored::fold(task, source),
            TaskError::ManyWatchers { most } => Row::new(Code::ResourceExhausted, "TOO_MANY_WATCHERS").with("limit", most),
            TaskError::WatcherQuota { most } => Row::new(Code::ResourceExhausted, "WATCHER_QUOTA").with("limit", most),
            TaskError::SlowReader { task, after } => {
                Row::new(Code::ResourceExhausted, "SLOW_READER").task(task).with("after_sequence", after)
            }
            TaskError::Leaving { task, after } => {
                Row::new(Code::Unavailable, "SHUTTING_DOWN").task(task).with("after_sequence", after).after(LEAVING_DELAY)
            }
            TaskError::Access(error) => Row::of(error),
            TaskError::Ended(id) => Row::new(Code::FailedPrecondition, "TASK_ENDED").task(id),
            TaskError::NotEnded(id) => Row::new(Code::FailedPrecondition, "TASK_NOT_ENDED").task(id),
            TaskError::NotAsked { task, step, asked } => {
                let row = Row::new(Code::FailedPrecondition, "NOT_ASKED").task(task).with("step", step);
                match asked {
                    Some((step, kind)) => row.with("asked_step", step).with("asked", kind.as_str()),
                    None => row,
                }
            }
            TaskError::EmptyAnswer => Row::invalid("BAD_INPUT", "answer"),
            TaskError::LongInput { field, .. } => Row::invalid("BAD_INPUT", field),
            TaskError::Memory { task, failure } => {
                Row::new(Code::Unavailable, "MEMORY_UNAVAILABLE").task(task).with("failure", failure.class.as_str())
            }
        }
    }
}

//! Ending a task from outside. The end is appended to its trajectory like any other event: it holds
//! whichever gateway runs the task, and also when none does. Whoever runs it is told, and stopped
//! by the conflict at its next append at the latest. An effect that they have begun is named in the
//! end; they begin no other.

use std::time::SystemTime;

use autoact_access::Principal;
use autoact_bus::BusError;
use autoact_trajectory::{EventBody, FinishReason, Task, TaskId};

use crate::run::log::append;
use crate::run::runner::{count_end, fence};
use crate::tasks::{Application, TaskError};

/// A running task appends a few events a second: one of the first attempts fits in between.
const MAX_ATTEMPTS: u32 = 20;

impl Application {
    /// Ends a task with its best answer so far; one that has ended stays as it is.
    pub(crate) async fn cancel(&self, who: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut task = self.get(who, id).await?;
            if task.finished().is_some() {
                return Ok(task);
            }
            // whoever runs the task starts nothing any more, stopped or slow as they may be
            let receipts = fence(&self.bus, &task).await?;
            let mut finished = task.finish(FinishReason::Cancelled, "cancelled by a client");
            finished.open_effect = task.side_effect().filter(|step| receipts.is_none_or(|receipts| receipts.was_begun(*step)));
            let finished = EventBody::Finished(finished);
            // whoever cancels holds no lease
            let mut event = autoact_trajectory::Event { epoch: 0, ..task.next_event(SystemTime::now(), &self.writer, finished) };
            match append(&self.bus, &event, task.last_sequence()).await {
                Ok(stored) => (event.sequence, event.digest) = (stored.sequence, stored.digest),
                // the task went on in the meantime
                Err(BusError::Conflict { .. }) if attempt < MAX_ATTEMPTS => continue,
                Err(error) => return Err(error.into()),
            }
            task.apply(&event).map_err(|source| TaskError::Fold { task: id.clone(), source: Box::new(source) })?;
            count_end(&task);
            self.bus.announce_end(task.key()).await;
            return Ok(task);
        }
    }
}

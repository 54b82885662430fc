//! Ending a task from outside. The end is appended to its trajectory like any other event: it holds
//! whichever gateway runs the task, and also when none does. Whoever runs it is told, and stopped
//! by the conflict at its next append at the latest. An effect that they have begun is named in the
//! end; they begin no other.

use autoact_access::Principal;
use autoact_trajectory::{Task, TaskId};

use crate::run::runner::count_end;
use crate::tasks::change::Wanted;
use crate::tasks::{Application, TaskError};

impl Application {
    /// Ends a task with its best answer so far; one that has ended stays as it is.
    pub(crate) async fn cancel(&self, who: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        let ended = self.change(who, id, |task| Ok(task.finished().is_none().then_some(Wanted::End))).await?;
        if ended.changed {
            count_end(&ended.task);
            self.bus.announce_change(ended.task.key()).await;
        }
        Ok(ended.task)
    }
}

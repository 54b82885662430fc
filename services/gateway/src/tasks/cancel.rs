//! Ending a task from outside. The end is appended to its trajectory like any other event: it holds
//! whichever gateway runs the task, and also when none does. Whoever runs it is told, and stopped
//! by the conflict at its next append at the latest. An effect that they have begun is named in the
//! end; they begin no other.

use autoact_access::Principal;
use autoact_trajectory::{Task, TaskId, TaskKey};

use crate::run::runner::count_end;
use crate::tasks::change::Wanted;
use crate::tasks::{Application, TaskError};

/// Why a task ended.
const BY_CLIENT: &str = "cancelled by a client";
const FORGOTTEN: &str = "it was held back for longer than `bus.max_age`";
/// Who ends a task that was forgotten.
const GATEWAY: &str = "gateway";

impl Application {
    /// Ends a task with its best answer so far; one that has ended stays as it is.
    pub(crate) async fn cancel(&self, who: &Principal, id: &TaskId) -> Result<Task, TaskError> {
        let ended = self.change(who, id, |task| Ok(task.finished().is_none().then_some(Wanted::End(BY_CLIENT)))).await?;
        if ended.changed {
            self.ended(&ended.task).await;
        }
        Ok(ended.task)
    }

    /// Ends a task that has been held back for so long that nobody will let it go on. Whether it was
    /// held back.
    pub(crate) async fn cancel_forgotten(&self, task: &TaskKey) -> Result<bool, TaskError> {
        let nobody = Principal { name: GATEWAY.to_owned(), ..Principal::anonymous(task.tenant.clone()) };
        let forgotten = |task: &Task| task.is_held() && task.finished().is_none();
        let ended = self.change(&nobody, &task.id, |task| Ok(forgotten(task).then_some(Wanted::End(FORGOTTEN)))).await?;
        if ended.changed {
            metrics::counter!("autoact_tasks_forgotten_total").increment(1);
            self.ended(&ended.task).await;
        }
        Ok(ended.changed)
    }

    /// Tells whom it concerns that a task was ended.
    async fn ended(&self, task: &Task) {
        count_end(task);
        self.bus.announce_change(task.key()).await;
        // whoever runs a task records its end; a task that is held back is run by nobody
        if let Err(error) = self.bus.record_ended(task.key()).await {
            tracing::debug!(task = %task.key(), %error, "the end is recorded later");
        }
    }
}

//! Removing a task for good.

use autoact_access::{Principal, Role};
use autoact_bus::Purged;
use autoact_trajectory::TaskId;
use autoact_wire::store::PurgeReason;

use crate::tasks::{Application, TaskError, key};

impl Application {
    /// Removes an ended task: what memory knows of it, then its events, artifacts and receipts.
    /// Where memory does not answer, nothing is removed from the bus, and the same call goes on. The
    /// record of the removal says who asked for it.
    pub(crate) async fn delete(&self, who: &Principal, id: &TaskId) -> Result<(), TaskError> {
        who.require(Role::Operate)?;
        let task = self.get(who, id).await?;
        if task.finished().is_none() {
            return Err(TaskError::NotEnded(id.clone()));
        }
        if let Some(memory) = &self.memory {
            memory.forget(task.key()).await.map_err(|failure| TaskError::Memory { task: id.clone(), failure })?;
        }
        match self.bus.purge_task(&key(who, id), PurgeReason::Request { by: who.name.clone() }).await? {
            Purged::Done => {
                metrics::counter!("autoact_tasks_deleted_total").increment(1);
                tracing::info!(task = %task.key(), by = who.name, "the task was deleted");
                Ok(())
            }
            Purged::NotEnded => Err(TaskError::NotEnded(id.clone())),
            Purged::NotThere => Err(TaskError::NotFound(id.clone())),
        }
    }
}

//! Looking up what is remembered of the conversation, once, before the first plan.

use autoact_trajectory::{EventBody, Recalled};

use super::{Driver, Progress, Stop, unless};
use crate::contexts::{bytes_beside, check_fixed_parts};
use crate::log::EventLog;

impl<L: EventLog> Driver<L> {
    /// Recalls, and stores what was recalled, be it nothing: whoever goes on with the task reads the
    /// event, and nobody recalls again.
    pub(super) async fn recall(&mut self, interrupt: impl Future<Output = ()>) -> Result<Progress, Stop<L::Error>> {
        let (agents, task) = (&self.agents, &self.task);
        let recalling = async {
            let recalled = agents.memories.recall(task, self.time_left()).await;
            let mut recalled = match EventBody::Recalled(recalled.clone()).check_bounds() {
                Ok(()) => recalled,
                Err(error) => Recalled::failed(error.to_string()),
            };
            // the box gives way: nothing else that is never left out of a prompt can
            while !recalled.items.is_empty() && !self.fits(&recalled).await {
                recalled.drop_last();
            }
            recalled
        };
        let Some(recalled) = unless(interrupt, recalling).await else { return Ok(Progress::Interrupted) };
        let progress = self.store(EventBody::Recalled(recalled)).await?;
        self.beside = bytes_beside(self.task.trajectory());
        Ok(progress)
    }

    /// Whether what is never left out of the task's prompts fits the models with this box.
    async fn fits(&self, recalled: &Recalled) -> bool {
        let mut trajectory = self.task.trajectory().clone();
        trajectory.recalled.clone_from(&recalled.items);
        check_fixed_parts(self.agents.contexts.as_ref(), self.task.key(), &trajectory, self.time_left()).await.is_ok()
    }
}

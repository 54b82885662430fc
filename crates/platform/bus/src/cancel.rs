//! The hint that a task was ended or paused from outside.
//!
//! The end or the pause itself is an event in the trajectory, appended by whoever asks for it: it is
//! durable, it holds whether or not a gateway runs the task, and the gateway that does is stopped by
//! the conflict at its next append at the latest. The hint makes it stop at once, in the middle of a
//! call.

use autoact_trajectory::TaskKey;
use futures::{Stream, StreamExt, future};

use crate::connect::Bus;
use crate::error::BusError;
use crate::subjects::{ALL_CANCELS, cancel_subject, task_of};

impl Bus {
    /// Tells whoever runs the task that somebody else has written to its trajectory.
    pub async fn announce_change(&self, task: &TaskKey) {
        if let Err(error) = self.client.publish(cancel_subject(task), bytes::Bytes::new()).await {
            tracing::debug!(%task, %error, "nobody was told that a task was changed from outside; it stops at its next event");
        }
    }

    /// The tasks that were ended or paused from outside, as they are announced.
    pub async fn announced_changes(&self) -> Result<impl Stream<Item = TaskKey> + Send + Unpin + 'static, BusError> {
        let subscriber =
            self.client.subscribe(ALL_CANCELS).await.map_err(|error| BusError::unavailable("listen for cancelled tasks", error))?;
        Ok(subscriber.filter_map(|message| future::ready(task_of(&message.subject))))
    }
}

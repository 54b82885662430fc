//! The agents' words as they are written. Hints for people who watch: not stored, and nothing
//! depends on their delivery.

use autoact_trajectory::TaskKey;
use bytes::Bytes;
use futures::{Stream, StreamExt};

use crate::connect::Bus;
use crate::error::BusError;
use crate::subjects::words_subject;

impl Bus {
    /// Tells whoever watches the task. Never waits for anybody.
    pub async fn tell_words(&self, task: &TaskKey, words: Bytes) {
        if let Err(error) = self.client.publish(words_subject(task), words).await {
            tracing::debug!(%task, %error, "words were not told");
        }
    }

    /// The words of a task's agents from now on.
    pub async fn words(&self, task: &TaskKey) -> Result<impl Stream<Item = Bytes> + Send + Unpin + 'static, BusError> {
        let subscriber =
            self.client.subscribe(words_subject(task)).await.map_err(|error| BusError::unavailable("listen to a task's agents", error))?;
        Ok(subscriber.map(|message| message.payload))
    }
}

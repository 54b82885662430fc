//! The history that a task shares with another: copies of the other's events, made before the task
//! is first taken up. Whoever finds them incomplete goes on where the last one stopped.

use autoact_bus::{Bus, BusError};
use autoact_trajectory::{Artifact, Event, FoldError, NewArtifact, Origin, Task, TaskKey, shared, words_alone};

use crate::run::log::append;

/// Why a task ends whose origin is not there any more.
pub(super) const GONE: &str = "the task whose history it shares was removed before it was copied; submit the question anew";

/// Why a task's history was not copied.
pub(super) enum CopyError {
    /// The origin's events are not what they were when the task was submitted.
    Gone(Box<Task>),
    Bus(BusError),
    Fold(FoldError),
}

impl From<BusError> for CopyError {
    fn from(error: BusError) -> Self {
        CopyError::Bus(error)
    }
}

/// The task with all the history that it shares.
pub(super) async fn history(bus: &Bus, writer: &str, mut task: Task) -> Result<Task, CopyError> {
    if task.to_copy() == 0 {
        return Ok(task);
    }
    let Some(origin) = task.origin().cloned() else { return Ok(task) };
    let source = TaskKey::new(task.key().tenant.clone(), origin.task.clone());
    let events = bus.load(&source).await?;
    let Some(history) = same(&events, &origin) else { return Err(CopyError::Gone(Box::new(task))) };
    let copied = history.len().saturating_sub(task.to_copy() as usize);
    for original in history.into_iter().skip(copied) {
        let mut event = Event {
            // no holder of the new task's lease wrote it
            epoch: 0,
            call: original.call,
            usage: original.usage.as_ref().map(words_alone),
            artifacts: artifacts(bus, &source, task.key(), &original.artifacts).await?,
            ..task.next_event(bus.now(), writer, original.body.clone())
        };
        let stored = append(bus, &event, task.last_sequence()).await?;
        (event.sequence, event.digest) = (stored.sequence, stored.digest);
        task.apply(&event).map_err(CopyError::Fold)?;
    }
    Ok(task)
}

/// The events that are shared, if they are those that the task was submitted with.
fn same<'a>(events: &'a [Event], origin: &Origin) -> Option<Vec<&'a Event>> {
    let found = shared(events, origin.steps + 1).ok()?;
    (found.origin == *origin).then_some(found.events)
}

/// The artifacts of a copied observation, stored once more as the new task's own: each task's go
/// with it. One that has expired is left out.
async fn artifacts(bus: &Bus, source: &TaskKey, task: &TaskKey, originals: &[Artifact]) -> Result<Vec<Artifact>, BusError> {
    let mut copies = Vec::with_capacity(originals.len());
    for original in originals {
        let data = match bus.artifact(source, original).await {
            Ok(data) => data,
            Err(error) if error.retryable() => return Err(error),
            Err(error) => {
                tracing::debug!(%task, artifact = original.name, %error, "an artifact of a shared history is not copied");
                continue;
            }
        };
        let Artifact { kind, media_type, name, text, .. } = original.clone();
        copies.push(bus.keep_artifact(task, &NewArtifact { kind, media_type, name, text, data }).await?);
    }
    Ok(copies)
}

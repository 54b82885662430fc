//! Moves the trajectories of schema version 1 to the streams of this one. Done once, while no
//! gateway runs. The events stay the bytes they were; the index is written anew; tasks that have
//! not ended are queued. Stopped half-way, it goes on where it stopped.

use async_nats::jetstream::ContextBuilder;
use async_nats::jetstream::stream::{DirectGetErrorKind, Stream};
use autoact_trajectory::{EventBody, TaskId, TaskKey, Tenant};
use tokio::time::Instant;

use crate::append::{After, Publish};
use crate::config::BusConfig;
use crate::connect::{Bus, REQUEST_TIMEOUT, connect_client};
use crate::error::BusError;
use crate::streams::Streams;
use crate::subjects::trajectory_subject;
use crate::version_1;

/// What was moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Migrated {
    /// Tasks.
    pub tasks: u64,
    /// Their events.
    pub events: u64,
    /// Tasks that have not ended, and are queued now.
    pub queued: u64,
}

/// Moves everything to `tenant`, then removes the old streams. `progress` is called after each
/// task.
///
/// # Errors
/// The bus does not answer, or holds something that is no event. Nothing is lost then: what was
/// moved is still in the old streams.
pub async fn migrate(config: BusConfig, tenant: &Tenant, mut progress: impl FnMut(&Migrated)) -> Result<Migrated, BusError> {
    let unavailable = |error: async_nats::Error| BusError::unavailable("move the trajectories of schema version 1", error);
    let deadline = Instant::now() + config.connect_limit;
    let (client, refusals) = connect_client(&config, deadline).await?;
    let context = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
    let mut moved = Migrated::default();
    let old = refusals.guard(async { Ok(context.get_stream(version_1::TRAJECTORY).await.ok()) }).await?;
    let Some(old) = old else { return Ok(moved) };
    if old.cached_info().config.subjects != [version_1::TRAJECTORY_SUBJECTS] {
        return Ok(moved);
    }
    Streams::make(&context, &config, deadline).await?;
    let streams = Box::pin(Streams::open(&context, &config, deadline)).await?;
    let bus = Bus::over(client, context.clone(), streams, config.clone(), refusals);
    if let Ok(index) = context.get_stream(version_1::INDEX).await {
        let state = &index.cached_info().state;
        for position in state.first_sequence.max(1)..=state.last_sequence {
            let entry = match index.direct_get(position).await {
                Ok(entry) => entry,
                Err(error) if error.kind() == DirectGetErrorKind::NotFound => continue,
                Err(error) => return Err(unavailable(error.into())),
            };
            let Some(id) = entry.subject.rsplit('.').next().and_then(|id| id.parse::<TaskId>().ok()) else { continue };
            move_task(&bus, &old, &TaskKey::new(tenant.clone(), id), &mut moved).await?;
            progress(&moved);
        }
    }
    for name in [version_1::TRAJECTORY, version_1::TASKS, version_1::INDEX] {
        if let Err(error) = context.delete_stream(name).await {
            tracing::warn!(stream = name, %error, "an old stream was not removed");
        }
    }
    // what this release needs to start, the mark that keeps the one before away included
    Box::pin(Streams::ensure(&context, &config, deadline)).await?;
    bus.close().await;
    Ok(moved)
}

async fn move_task(bus: &Bus, old: &Stream, task: &TaskKey, moved: &mut Migrated) -> Result<(), BusError> {
    let subject = version_1::trajectory_subject(task.id.as_str());
    let (mut read, mut after) = (0, 0);
    let mut last = None;
    let mut known = bus.load(task).await?.into_iter();
    let mut first = true;
    loop {
        let message = match old.direct_get_next_for_subject(&subject, Some(read + 1)).await {
            Ok(message) => message,
            Err(error) if error.kind() == DirectGetErrorKind::NotFound => break,
            Err(error) => return Err(BusError::unavailable("move the trajectories of schema version 1", error)),
        };
        read = message.sequence;
        let event = crate::read::head(task, &message)?;
        if std::mem::take(&mut first) {
            // a trajectory whose beginning has expired is no task any more
            if event.index != 1 {
                return Ok(());
            }
            bus.record_submission(task).await?;
        }
        after = match known.next() {
            Some(there) => there.sequence,
            None => {
                let publish = Publish {
                    what: "store an event",
                    subject: trajectory_subject(task),
                    id: format!("{task}-{}-moved", event.index),
                    payload: message.payload,
                    after: After::OnSubject(after),
                    task,
                };
                bus.publish(publish).await?
            }
        };
        moved.events += 1;
        last = Some(event);
    }
    let Some(last) = last else { return Ok(()) };
    moved.tasks += 1;
    if matches!(last.body, EventBody::Finished(_)) {
        bus.record_end(task, last.index, last.digest).await
    } else {
        moved.queued += 1;
        bus.enqueue(task).await.map(|_| ())
    }
}

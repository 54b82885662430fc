//! Finds tasks that were accepted, or let go on, and never queued: whoever did so died in between.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use autoact_trajectory::{EventBody, TaskKey};
use autoact_wire::store::{IndexEntry, IndexRecord};

use crate::connect::Bus;
use crate::error::BusError;

/// Whoever accepted a task or let it go on has queued it by then, if it lives.
const AGE: Duration = Duration::from_secs(10);
/// Records looked at in one round; after a start, the newest ones.
const MAX_RECORDS: u64 = 2_000;

/// A walk along the index of tasks. One per process, stepped every few seconds.
#[derive(Debug, Default)]
pub struct Unqueued {
    /// The last position of the index that was read.
    position: Option<u64>,
    /// Submissions and resumptions that are too young to judge.
    young: BTreeMap<u64, Young>,
}

/// A task that may still be on its way into the queue.
#[derive(Debug)]
struct Young {
    task: TaskKey,
    /// By the clock of whoever recorded it.
    recorded: SystemTime,
    /// It is not older than since then, whatever the clocks say.
    read: Instant,
}

impl Unqueued {
    /// Reads what the index has new, and queues the tasks that are old enough and have not been
    /// taken up. Queueing one that is queued changes nothing. Returns those for which it did change
    /// something, as far as can be told.
    pub async fn step(&mut self, bus: &Bus, now: SystemTime) -> Result<Vec<TaskKey>, BusError> {
        self.read(bus).await?;
        let old = |young: &Young| now.duration_since(young.recorded).is_ok_and(|age| age >= AGE) || young.read.elapsed() >= AGE;
        let due: Vec<(u64, TaskKey)> =
            self.young.iter().filter(|(_, young)| old(young)).map(|(position, young)| (*position, young.task.clone())).collect();
        let mut queued = Vec::new();
        for (position, task) in due {
            let last = bus.last(&task).await?.map(|last| last.body);
            let waits = matches!(last, Some(EventBody::Submitted(_) | EventBody::Resumed(_) | EventBody::InputGiven(_)));
            if waits && bus.enqueue(&task).await? {
                queued.push(task);
            }
            self.young.remove(&position);
        }
        Ok(queued)
    }

    async fn read(&mut self, bus: &Bus) -> Result<(), BusError> {
        let mut index = bus.streams.index.clone();
        let unavailable = |error| BusError::unavailable("read the index of tasks", error);
        let state = index.info().await.map_err(|error| unavailable(async_nats::Error::from(error)))?.state.clone();
        let from = self.position.map_or(state.last_sequence.saturating_sub(MAX_RECORDS), |position| position) + 1;
        let from = from.max(state.first_sequence);
        for position in from..=state.last_sequence.min(from.saturating_add(MAX_RECORDS)) {
            self.position = Some(position);
            let Ok(message) = bus.streams.index.direct_get(position).await else { continue };
            if let Ok(record) = IndexRecord::decode(&message.payload)
                && matches!(record.entry, IndexEntry::Submitted | IndexEntry::Resumed)
            {
                let young = Young { task: record.task, recorded: record.time, read: Instant::now() };
                self.young.insert(position, young);
            }
        }
        Ok(())
    }
}

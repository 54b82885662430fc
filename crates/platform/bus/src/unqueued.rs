//! Finds tasks that were accepted, or let go on, and never queued: whoever did so died in between.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use autoact_trajectory::{EventBody, TaskKey};
use autoact_wire::store::IndexEntry;

use crate::connect::Bus;
use crate::error::BusError;
use crate::walk::Walk;

/// Whoever accepted a task or let it go on has queued it by then, if it lives.
const AGE: Duration = Duration::from_secs(10);

/// A walk along the index of tasks, after a start along its newest records. One per process,
/// stepped every few seconds.
#[derive(Debug, Default)]
pub struct Unqueued {
    walk: Walk,
    /// Submissions and resumptions that are too young to judge, by position.
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
        for (position, record) in self.walk.step(bus, true).await?.records {
            if matches!(record.entry, IndexEntry::Submitted | IndexEntry::Resumed) {
                let young = Young { task: record.task, recorded: record.time, read: Instant::now() };
                self.young.insert(position, young);
            }
        }
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
}

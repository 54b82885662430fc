//! Makes room: removes the tasks that ended first, whole and recorded, before a stream is full. A
//! task that is queued or runs is never removed; a stream that only has such tasks is full, and
//! refuses.

use std::time::SystemTime;

use autoact_trajectory::TaskKey;
use autoact_wire::store::{About, IndexEntry, IndexRecord, Mark, PurgeReason};

use crate::connect::Bus;
use crate::error::BusError;
use crate::purge::Purged;

/// Records that one step looks at, and tasks that it removes.
const MAX_RECORDS: u64 = 2_000;
const MAX_PURGES: usize = 200;
/// After so many removals the stream is asked for its size again.
const LOOK_AGAIN: usize = 20;

/// A walk along the index of tasks. One per process, stepped every few seconds.
#[derive(Debug, Default)]
pub struct Retention {
    /// The last position of the index whose task needs no more looking at.
    position: u64,
    /// Room is being made.
    making_room: bool,
}

/// What one step did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// The tasks that were removed, and why.
    pub purged: Vec<(TaskKey, PurgeReason)>,
    /// Records of the index that were removed.
    pub trimmed: u64,
    /// There is more to do at once.
    pub more: bool,
}

impl Retention {
    /// Removes what ended longer ago than `bus.max_age`, and, when the trajectories take nine
    /// tenths of their bound, what ended first until they take eight. An index that is three
    /// quarters full loses its older half.
    ///
    /// # Errors
    /// The bus did not answer; the next step goes on.
    pub async fn step(&mut self, bus: &Bus, now: SystemTime) -> Result<Swept, BusError> {
        let mut swept = Swept::default();
        self.trim(bus, &mut swept).await?;
        let index = bus.state(&bus.streams.index).await?;
        self.position = self.position.max(index.first_sequence.saturating_sub(1));
        let mut bytes = bus.state(&bus.streams.trajectories).await?.bytes;
        let end = index.last_sequence.min(self.position.saturating_add(MAX_RECORDS));
        let most = bound(bus.streams.trajectories.cached_info().config.max_bytes);
        while self.position < end {
            self.making_room = most.is_some_and(|most| bytes > most / 10 * if self.making_room { 8 } else { 9 });
            let Some((_, About::Task(record))) = bus.record_at(self.position + 1).await? else {
                self.position += 1;
                continue;
            };
            if matches!(record.entry, IndexEntry::Ended { .. }) {
                let old = now.duration_since(record.time).is_ok_and(|age| age > bus.config.max_age);
                let reason = match (old, self.making_room) {
                    (true, _) => PurgeReason::Age,
                    (false, true) => PurgeReason::Room,
                    // the others ended later
                    (false, false) => return Ok(swept),
                };
                purge(bus, &record.task, reason, &mut swept).await?;
                if swept.purged.len() % LOOK_AGAIN == 0 {
                    bytes = bus.state(&bus.streams.trajectories).await?.bytes;
                }
                if swept.purged.len() >= MAX_PURGES {
                    swept.more = true;
                    return Ok(swept);
                }
            }
            self.position += 1;
        }
        swept.more = end < index.last_sequence;
        Ok(swept)
    }

    /// Removes the older half of an index that is nearly full. Tasks that it alone knows go with it,
    /// or, if they have not ended, are recorded once more.
    async fn trim(&mut self, bus: &Bus, swept: &mut Swept) -> Result<(), BusError> {
        let Some(most) = bound(bus.streams.index.cached_info().config.max_bytes) else { return Ok(()) };
        let state = bus.state(&bus.streams.index).await?;
        if state.bytes < most / 4 * 3 {
            return Ok(());
        }
        let first = state.first_sequence.max(1);
        let cut = first + (state.last_sequence - first) / 2;
        for position in first..cut {
            let Some((_, About::Task(IndexRecord { task, time, entry: IndexEntry::Submitted, .. }))) = bus.record_at(position).await?
            else {
                continue;
            };
            match bus.last_record_at(&task).await? {
                Some((_, IndexRecord { entry: IndexEntry::Ended { .. }, .. })) => purge(bus, &task, PurgeReason::Room, swept).await?,
                Some((last, IndexRecord { entry: IndexEntry::Submitted | IndexEntry::Resumed, .. }))
                    if last < cut && bus.last_stored(&task).await?.is_some() =>
                {
                    bus.carry(&task, time).await?;
                }
                _ => {}
            }
        }
        let Some((_, first)) = bus.record_at(cut).await? else { return Ok(()) };
        bus.record_mark(Mark::Trimmed { previous: first.previous() }).await?;
        let purged = bus.streams.index.purge().sequence(cut).await;
        let purged = purged.map_err(|error| BusError::unavailable("shorten the index of tasks", error))?;
        swept.trimmed = purged.purged;
        Ok(())
    }
}

async fn purge(bus: &Bus, task: &TaskKey, reason: PurgeReason, swept: &mut Swept) -> Result<(), BusError> {
    match bus.purge_task(task, reason.clone()).await? {
        Purged::Done => swept.purged.push((task.clone(), reason)),
        // used again after it was removed, and runs; or removed before
        Purged::NotEnded | Purged::NotThere => {}
    }
    Ok(())
}

/// A bound of a stream; `None`: it has none.
fn bound(bytes: i64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

//! The open tasks: those that have not ended, be they queued, running or held back. The queue knows
//! the first two alone; the index of tasks knows all, and this is what it says. A tenant that could
//! hold back as many tasks as it likes could fill the bus, from which only ended tasks are removed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use autoact_trajectory::{Event, EventBody, TaskId, TaskKey, Tenant};
use autoact_wire::store::{IndexEntry, IndexRecord};
use futures::{StreamExt, stream};

use crate::connect::Bus;
use crate::error::BusError;
use crate::walk::Walk;

/// The first event of a submitted task is stored by then, or never.
const AGE: Duration = Duration::from_secs(10);
/// An open task is looked at no more often.
const LOOK_AGAIN: Duration = Duration::from_secs(60 * 60);
/// Tasks of one look, and requests at a time.
const MAX_LOOKS: usize = 1_000;
const PARALLEL: usize = 16;

/// The open tasks of all tenants, as far as the index was read. One per process.
#[derive(Debug, Default)]
pub struct OpenTasks {
    walk: tokio::sync::Mutex<Walk>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// When each is to be looked at.
    tenants: HashMap<Tenant, BTreeMap<TaskId, SystemTime>>,
    /// Of all tenants.
    count: u64,
}

/// There are as many open tasks as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// Of the tenant; how many it has.
    Tenant(u64),
    /// Of all; how many there are.
    All(u64),
}

impl Known {
    fn of(&self, tenant: &Tenant) -> u64 {
        self.tenants.get(tenant).map_or(0, |tasks| tasks.len() as u64)
    }

    fn add(&mut self, task: TaskKey, due: SystemTime) {
        if self.tenants.entry(task.tenant).or_default().insert(task.id, due).is_none() {
            self.count += 1;
        }
    }

    /// Puts off the next look at a task; one that has ended meanwhile does not come back.
    fn put_off(&mut self, task: &TaskKey, until: SystemTime) {
        if let Some(due) = self.tenants.get_mut(&task.tenant).and_then(|tasks| tasks.get_mut(&task.id)) {
            *due = until;
        }
    }

    fn remove(&mut self, task: &TaskKey) {
        let Some(tasks) = self.tenants.get_mut(&task.tenant) else { return };
        if tasks.remove(&task.id).is_some() {
            self.count -= 1;
        }
        if tasks.is_empty() {
            self.tenants.remove(&task.tenant);
        }
    }

    fn due(&self, now: SystemTime) -> Vec<TaskKey> {
        let all = self.tenants.iter().flat_map(|(tenant, tasks)| tasks.iter().map(move |(id, due)| (tenant, id, due)));
        let due = all.filter(|(_, _, due)| **due <= now).take(MAX_LOOKS);
        due.map(|(tenant, id, _)| TaskKey::new(tenant.clone(), id.clone())).collect()
    }
}

impl OpenTasks {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.known().count
    }

    /// How many a tenant has.
    pub fn count_of(&self, tenant: &Tenant) -> u64 {
        self.known().of(tenant)
    }

    /// Counts a task that is about to be submitted, if its tenant and all tenants have fewer than
    /// these. One that is not stored after all is counted for some seconds.
    ///
    /// # Errors
    /// There are as many already.
    pub fn enter(&self, task: &TaskKey, now: SystemTime, of_tenant: Option<u64>, of_all: u64) -> Result<(), Full> {
        let mut known = self.known();
        if let Some(most) = of_tenant
            && known.of(&task.tenant) >= most
        {
            return Err(Full::Tenant(known.of(&task.tenant)));
        }
        if known.count >= of_all {
            return Err(Full::All(known.count));
        }
        known.add(task.clone(), now + AGE);
        Ok(())
    }

    /// Reads what the index has new; the first time, all of it.
    ///
    /// # Errors
    /// The bus did not answer; the next call goes on.
    pub async fn catch_up(&self, bus: &Bus) -> Result<(), BusError> {
        let mut walk = self.walk.lock().await;
        loop {
            let step = walk.step(bus, false).await?;
            let mut known = self.known();
            for (_, IndexRecord { task, time, entry, .. }) in step.records {
                match entry {
                    IndexEntry::Submitted | IndexEntry::Resumed => known.add(task, time + AGE),
                    IndexEntry::Ended { .. } | IndexEntry::Purged(_) | IndexEntry::Lost => known.remove(&task),
                    IndexEntry::Unknown => {}
                }
            }
            if !step.more {
                return Ok(());
            }
        }
    }

    /// Looks at tasks that have been open for a while. Those that were never stored are forgotten,
    /// and an end that nobody recorded is recorded. Returns tasks of which nothing was heard for
    /// longer than `bus.max_age`: if they are held back, nobody will let them go on.
    ///
    /// # Errors
    /// The bus did not answer; the next look goes on.
    pub async fn look(&self, bus: &Bus, now: SystemTime) -> Result<Vec<TaskKey>, BusError> {
        let due = self.known().due(now);
        let mut looks = stream::iter(due)
            .map(|task| async move {
                let last = bus.last(&task).await;
                (task, last)
            })
            .buffered(PARALLEL);
        let mut silent = Vec::new();
        while let Some((task, last)) = looks.next().await {
            let again = match last {
                Ok(None) => None,
                Ok(Some(Event { body: EventBody::Finished(_), index, digest, .. })) => {
                    bus.record_end(&task, index, digest).await?;
                    None
                }
                Ok(Some(last)) => {
                    let old = last.time + bus.config.max_age;
                    if old <= now {
                        silent.push(task.clone());
                    }
                    Some(old.max(now + LOOK_AGAIN))
                }
                // it is open for those who can read it
                Err(BusError::Unreadable { .. }) => Some(now + LOOK_AGAIN),
                Err(error) => return Err(error),
            };
            let mut known = self.known();
            match again {
                Some(again) => known.put_off(&task, again),
                None => known.remove(&task),
            }
        }
        Ok(silent)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(tenant: &str, id: &str) -> TaskKey {
        TaskKey::new(tenant.parse().expect("a tenant"), id.parse().expect("an id"))
    }

    /// A look takes a while, and other tasks come and end meanwhile.
    #[test]
    fn a_task_that_ends_while_it_is_looked_at_does_not_come_back() {
        let open = OpenTasks::default();
        let (ended, goes_on, start) = (task("ops", "a"), task("ops", "b"), SystemTime::UNIX_EPOCH);
        open.enter(&ended, start, Some(2), 9).expect("a place");
        open.enter(&goes_on, start, Some(2), 9).expect("a place");
        assert_eq!(open.enter(&task("ops", "c"), start, Some(2), 9), Err(Full::Tenant(2)));
        assert_eq!(open.enter(&task("dev", "a"), start, None, 2), Err(Full::All(2)));
        assert_eq!(open.known().due(start), [], "not yet");
        assert_eq!(open.known().due(start + AGE), [ended.clone(), goes_on.clone()]);

        open.known().remove(&ended);
        let later = start + LOOK_AGAIN;
        for task in [&ended, &goes_on] {
            open.known().put_off(task, later);
        }
        assert_eq!((open.count(), open.count_of(&ended.tenant)), (1, 1));
        assert_eq!(open.known().due(start + AGE), []);
        assert_eq!(open.known().due(later), [goes_on]);
        // twice is once
        open.known().remove(&ended);
        assert_eq!(open.count(), 1);
    }
}

//! Removing tasks on purpose: recorded first, so that it is no loss.

use std::time::SystemTime;

use async_nats::jetstream::stream::Stream;
use autoact_trajectory::{EventBody, TaskKey, Tenant};
use autoact_wire::store::{IndexEntry, IndexRecord, PurgeReason};

use crate::connect::Bus;
use crate::error::BusError;
use crate::scan::Scan;
use crate::subjects::{index_of, receipt_subject, trajectory_subject};

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purged {
    /// Its events are gone.
    Done,
    /// It has not ended: it stays.
    NotEnded,
    /// There is no such task, or it was removed before.
    NotThere,
}

impl Bus {
    /// Removes all events of a task that has ended, and the artifacts that they name, and records
    /// that first. A task that has not ended stays.
    ///
    /// # Errors
    /// The bus did not answer. A removal that was recorded goes on when it is asked for again.
    pub async fn purge_task(&self, task: &TaskKey, reason: PurgeReason) -> Result<Purged, BusError> {
        let Some(last) = self.last(task).await? else { return Ok(Purged::NotThere) };
        if !matches!(last.body, EventBody::Finished(_)) {
            return Ok(Purged::NotEnded);
        }
        match self.last_record(task).await?.map(|record| record.entry) {
            // recorded, and cut off
            Some(IndexEntry::Purged(_)) => {}
            Some(IndexEntry::Ended { .. }) => self.record_purge(task, reason).await?,
            // whoever ended it has yet to say so
            _ => {
                self.record_end(task, last.index, last.digest).await?;
                self.record_purge(task, reason).await?;
            }
        }
        self.remove(task).await?;
        Ok(Purged::Done)
    }

    /// Removes the tasks of a tenant that ended before a time; those that have not ended stay.
    /// `told` is called with each that was removed. How many there were. Records say `by` as who
    /// asked for it.
    ///
    /// # Errors
    /// The bus did not answer. The same call goes on.
    pub async fn purge_ended(
        &self,
        tenant: &Tenant,
        before: SystemTime,
        by: &str,
        mut told: impl FnMut(&TaskKey),
    ) -> Result<u64, BusError> {
        let last = self.state(&self.streams.index).await?.last_sequence;
        let mut records = Scan::new(self, &self.streams.index, index_of(tenant), 0, last, "remove tasks");
        let mut purged = 0;
        while let Some(read) = records.next().await? {
            let Ok(IndexRecord { task, time, entry: IndexEntry::Ended { .. }, .. }) = IndexRecord::decode(&read.payload) else { continue };
            let reason = PurgeReason::Request { by: by.to_owned() };
            if task.tenant == *tenant && time < before && self.purge_task(&task, reason).await? == Purged::Done {
                told(&task);
                purged += 1;
            }
        }
        Ok(purged)
    }

    /// Removes what was recorded as removed.
    async fn remove(&self, task: &TaskKey) -> Result<(), BusError> {
        self.remove_artifacts(task).await?;
        // a task that is called so later has receipts of its own
        self.remove_messages(&self.streams.receipts, receipt_subject(task)).await?;
        self.remove_messages(&self.streams.trajectories, trajectory_subject(task)).await
    }

    async fn remove_messages(&self, stream: &Stream, subject: String) -> Result<(), BusError> {
        let mut patience = self.patience("remove a task");
        loop {
            match stream.purge().filter(subject.as_str()).await {
                Ok(_) => return Ok(()),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// Removes the artifacts that a task's events name.
    async fn remove_artifacts(&self, task: &TaskKey) -> Result<(), BusError> {
        let mut after = 0;
        let mut store = None;
        while let Some(message) = self.next_stored(task, after).await? {
            after = message.sequence;
            // what cannot be read names nothing
            let Ok(event) = crate::read::head(task, &message) else { continue };
            for artifact in event.artifacts {
                let store = match &store {
                    Some(store) => store,
                    None => match self.existing_store(&task.tenant).await? {
                        Some(found) => store.insert(found),
                        None => return Ok(()),
                    },
                };
                if let Err(error) = store.delete(&artifact.object).await {
                    // it expires by itself
                    tracing::debug!(%task, artifact = artifact.name, %error, "an artifact of a removed task was not deleted");
                }
            }
        }
        Ok(())
    }
}

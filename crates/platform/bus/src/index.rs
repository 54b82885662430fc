//! The index of tasks: a record of every submission, of every end and of every removal, in one
//! chain. Each record names the hash of the one before, and is stored only after it, so that a
//! record that is lost or changed shows.

use std::time::SystemTime;

use async_nats::jetstream::stream::LastRawMessageErrorKind;
use autoact_trajectory::{Digest, TaskId, TaskKey, Tenant};
use autoact_wire::store::{self, About, IndexEntry, IndexMark, IndexRecord, Mark, PurgeReason};
use bytes::Bytes;

use crate::append::{After, Publish};
use crate::connect::{Bus, Tail};
use crate::error::BusError;
use crate::subjects::{INDEX_MARKS, index_subject};

/// Gateways that write at the same moment: each round one of them gets through.
const MAX_ROUNDS: u32 = 64;

impl Bus {
    /// Records that a task is about to be accepted. Doing it again changes nothing.
    pub async fn record_submission(&self, task: &TaskKey) -> Result<(), BusError> {
        self.record(task, IndexEntry::Submitted, self.now()).await
    }

    /// Records that a task which was held back is about to go on, so that somebody queues it if
    /// whoever lets it go on dies first.
    pub async fn record_resumption(&self, task: &TaskKey) -> Result<(), BusError> {
        let now = self.now();
        let encode = |previous| IndexRecord { task: task.clone(), time: now, previous, entry: IndexEntry::Resumed }.encode();
        self.link(task, index_subject(task), unique(task), encode).await.map(|_| ())
    }

    /// Records a task's end: the index and the hash of its last event. Doing it again changes
    /// nothing.
    pub async fn record_end(&self, task: &TaskKey, index: u64, hash: Option<Digest>) -> Result<(), BusError> {
        if let Some(last) = self.last_record(task).await?
            && matches!(last.entry, IndexEntry::Ended { .. })
        {
            return Ok(());
        }
        self.record(task, IndexEntry::Ended { index, hash }, self.now()).await
    }

    /// Records the end of a task that has ended, once, whoever ended it.
    pub async fn record_ended(&self, task: &TaskKey) -> Result<(), BusError> {
        match self.last(task).await? {
            Some(last) => self.record_end(task, last.index, last.digest).await,
            None => Ok(()),
        }
    }

    /// Records that a task was in the queue and has no events, unless they were removed on purpose.
    /// Whether they were lost.
    pub async fn record_loss(&self, task: &TaskKey) -> Result<bool, BusError> {
        match self.last_record(task).await?.map(|last| last.entry) {
            Some(IndexEntry::Submitted | IndexEntry::Resumed | IndexEntry::Ended { .. }) => {
                self.record(task, IndexEntry::Lost, self.now()).await?;
                Ok(true)
            }
            Some(IndexEntry::Lost) => Ok(true),
            Some(IndexEntry::Purged(_) | IndexEntry::Unknown) | None => Ok(false),
        }
    }

    /// Records that a task's events are about to be removed.
    pub(crate) async fn record_purge(&self, task: &TaskKey, reason: PurgeReason) -> Result<(), BusError> {
        self.record(task, IndexEntry::Purged(reason), self.now()).await
    }

    /// Records something of a task, with the time that it says.
    pub(crate) async fn record(&self, task: &TaskKey, entry: IndexEntry, time: SystemTime) -> Result<(), BusError> {
        let kind = match &entry {
            IndexEntry::Submitted => "submitted",
            IndexEntry::Resumed => "resumed",
            IndexEntry::Ended { .. } => "ended",
            IndexEntry::Purged(_) => "purged",
            IndexEntry::Lost => "lost",
            IndexEntry::Unknown => "unknown",
        };
        let encode = |previous| IndexRecord { task: task.clone(), time, previous, entry: entry.clone() }.encode();
        let stored = self.link(task, index_subject(task), format!("{task}-{kind}"), encode).await?;
        if stored {
            return Ok(());
        }
        // an id that is still remembered: the record is there, or it is the one of an earlier task
        // of that name, which was removed meanwhile
        let last = self.last_record(task).await?.map(|last| last.entry);
        let again = match &entry {
            IndexEntry::Submitted => matches!(last, Some(IndexEntry::Purged(_))),
            IndexEntry::Ended { .. } => matches!(last, Some(IndexEntry::Submitted | IndexEntry::Resumed)),
            _ => last.is_some_and(|last| std::mem::discriminant(&last) != std::mem::discriminant(&entry)),
        };
        if again {
            self.link(task, index_subject(task), unique(task), encode).await?;
        }
        Ok(())
    }

    /// Records once more that a task was submitted: the record before is about to be removed.
    pub(crate) async fn carry(&self, task: &TaskKey, time: SystemTime) -> Result<(), BusError> {
        let encode = |previous| IndexRecord { task: task.clone(), time, previous, entry: IndexEntry::Submitted }.encode();
        self.link(task, index_subject(task), unique(task), encode).await.map(|_| ())
    }

    /// Records something of the index itself.
    pub(crate) async fn record_mark(&self, mark: Mark) -> Result<(), BusError> {
        let nobody = nobody()?;
        let encode = |previous| IndexMark { time: self.now(), previous, mark }.encode();
        self.link(&nobody, INDEX_MARKS.to_owned(), unique(&nobody), encode).await.map(|_| ())
    }

    /// Adds a record to the chain, unless one with this id is remembered. Whether it was added.
    pub(crate) async fn link(
        &self,
        task: &TaskKey,
        subject: String,
        id: String,
        encode: impl Fn(Option<Digest>) -> Vec<u8>,
    ) -> Result<bool, BusError> {
        // one at a time here: this process does not compete with itself
        let mut known = self.tail.lock().await;
        for _ in 0..MAX_ROUNDS {
            let tail = match *known {
                Some(tail) => tail,
                None => self.read_tail().await?,
            };
            let payload = Bytes::from(encode(tail.digest));
            let digest = store::digest(&payload);
            let after = After::InStream(tail.sequence);
            let publish = Publish { what: "record a task", subject: subject.clone(), id: id.clone(), payload, after, task };
            match self.publish(publish).await {
                // a repetition within the time in which ids are remembered: the record is there,
                // and the tail is not ours
                Ok(sequence) if sequence <= tail.sequence => {
                    *known = Some(tail);
                    return Ok(false);
                }
                Ok(sequence) => {
                    *known = Some(Tail { sequence, digest: Some(digest) });
                    return Ok(true);
                }
                Err(BusError::Conflict { .. }) => *known = None,
                Err(error) => {
                    *known = None;
                    return Err(error);
                }
            }
        }
        Err(BusError::unavailable("record a task", "other gateways were always faster"))
    }

    async fn read_tail(&self) -> Result<Tail, BusError> {
        let sequence = self.state(&self.streams.index).await?.last_sequence;
        if sequence == 0 {
            return Ok(Tail { sequence, digest: None });
        }
        let mut patience = self.patience("read the index of tasks");
        loop {
            match self.streams.index.get_raw_message(sequence).await {
                Ok(message) => return Ok(Tail { sequence, digest: Some(store::digest(&message.payload)) }),
                // it was deleted: the chain begins anew, which an audit finds
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(Tail { sequence, digest: None }),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The record at a position of the index; `None` where none can be read.
    pub(crate) async fn record_at(&self, position: u64) -> Result<Option<(u64, About)>, BusError> {
        let mut patience = self.patience("read the index of tasks");
        loop {
            match self.streams.index.get_raw_message(position).await {
                Ok(message) => return Ok(About::decode(&message.payload).ok().map(|about| (message.sequence, about))),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The last record of a task.
    pub(crate) async fn last_record(&self, task: &TaskKey) -> Result<Option<IndexRecord>, BusError> {
        Ok(self.last_record_at(task).await?.map(|(_, record)| record))
    }

    /// The last record of a task, and where it is.
    pub(crate) async fn last_record_at(&self, task: &TaskKey) -> Result<Option<(u64, IndexRecord)>, BusError> {
        let mut patience = self.patience("read the index of tasks");
        loop {
            match self.streams.index.get_last_raw_message_by_subject(&index_subject(task)).await {
                Ok(message) => return Ok(IndexRecord::decode(&message.payload).ok().map(|record| (message.sequence, record))),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                Err(error) => patience.after(error).await?,
            }
        }
    }
}

/// An id that nothing was stored with before.
fn unique(task: &TaskKey) -> String {
    format!("{task}-{}", uuid::Uuid::new_v4().simple())
}

/// Stands in errors where a record is about no task.
fn nobody() -> Result<TaskKey, BusError> {
    let id: TaskId = "index".parse().map_err(|error| BusError::unavailable("record a task", error))?;
    Ok(TaskKey::new(Tenant::default(), id))
}

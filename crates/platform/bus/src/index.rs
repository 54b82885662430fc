//! The index of tasks: a record of every submission and of every end, in one chain. Each record
//! names the hash of the one before, and is stored only after it, so that a record that is lost or
//! changed shows.

use std::time::SystemTime;

use async_nats::jetstream::stream::LastRawMessageErrorKind;
use autoact_trajectory::{Digest, TaskKey};
use autoact_wire::store::{self, IndexEntry, IndexRecord};
use bytes::Bytes;

use crate::append::{After, Publish};
use crate::connect::{Bus, Tail};
use crate::error::BusError;
use crate::streams::index_subject;

/// Gateways that write at the same moment: each round one of them gets through.
const MAX_ROUNDS: u32 = 64;

impl Bus {
    /// Records that a task is about to be accepted. Doing it again changes nothing.
    pub async fn record_submission(&self, task: &TaskKey) -> Result<(), BusError> {
        self.record(task, IndexEntry::Submitted, "submitted").await
    }

    /// Records a task's end: the index and the hash of its last event. Doing it again changes
    /// nothing.
    pub async fn record_end(&self, task: &TaskKey, index: u64, hash: Option<Digest>) -> Result<(), BusError> {
        if let Some(last) = self.last_record(task).await?
            && matches!(last.entry, IndexEntry::Ended { .. })
        {
            return Ok(());
        }
        self.record(task, IndexEntry::Ended { index, hash }, "ended").await
    }

    async fn record(&self, task: &TaskKey, entry: IndexEntry, kind: &str) -> Result<(), BusError> {
        // one at a time here: this process does not compete with itself
        let mut known = self.tail.lock().await;
        for _ in 0..MAX_ROUNDS {
            let tail = match *known {
                Some(tail) => tail,
                None => self.read_tail().await?,
            };
            let record = IndexRecord { task: task.clone(), time: SystemTime::now(), previous: tail.digest, entry };
            let payload = Bytes::from(record.encode());
            let digest = store::digest(&payload);
            let publish = Publish {
                what: "record a task",
                subject: index_subject(task),
                id: format!("{task}-{kind}"),
                payload,
                after: After::InStream(tail.sequence),
                task,
            };
            match self.publish(publish).await {
                // a repetition within the time in which ids are remembered: the record is there,
                // and the tail is not ours
                Ok(sequence) if sequence <= tail.sequence => {
                    *known = Some(tail);
                    return Ok(());
                }
                Ok(sequence) => {
                    *known = Some(Tail { sequence, digest: Some(digest) });
                    return Ok(());
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
        let mut patience = self.patience("read the index of tasks");
        let sequence = loop {
            match self.streams.index.get_info().await {
                Ok(info) => break info.state.last_sequence,
                Err(error) => patience.after(error).await?,
            }
        };
        if sequence == 0 {
            return Ok(Tail { sequence, digest: None });
        }
        loop {
            match self.streams.index.get_raw_message(sequence).await {
                Ok(message) => return Ok(Tail { sequence, digest: Some(store::digest(&message.payload)) }),
                // it was deleted: the chain begins anew
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(Tail { sequence, digest: None }),
                Err(error) => patience.after(error).await?,
            }
        }
    }

    /// The last record of a task.
    async fn last_record(&self, task: &TaskKey) -> Result<Option<IndexRecord>, BusError> {
        let mut patience = self.patience("read the index of tasks");
        loop {
            match self.streams.index.get_last_raw_message_by_subject(&index_subject(task)).await {
                Ok(message) => return Ok(IndexRecord::decode(&message.payload).ok()),
                Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => return Ok(None),
                Err(error) => patience.after(error).await?,
            }
        }
    }
}

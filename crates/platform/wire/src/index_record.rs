//! The records of the index of tasks: about one task each, or about the index itself.

use std::time::SystemTime;

use autoact_trajectory::{Digest, TaskId, TaskKey};
use prost::Message;

use crate::event::{EVENT_VERSION, time_from_proto};
use crate::event_error::EventError;
use crate::store_v2::{self as v2, index_record::Body};

/// A record about a task.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRecord {
    /// The task it is about.
    pub task: TaskKey,
    /// When it was written.
    pub time: SystemTime,
    /// SHA-256 of the record before in the index; `None` in the first.
    pub previous: Option<Digest>,
    /// What it says.
    pub entry: IndexEntry,
}

/// What a record says of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IndexEntry {
    /// The task was accepted.
    Submitted,
    /// It was held back and is about to go on: it will be queued again.
    Resumed,
    /// The task ended.
    Ended {
        /// The index of its last event.
        index: u64,
        /// SHA-256 of the stored bytes of that event.
        hash: Option<Digest>,
    },
    /// Its events are removed on purpose, all of them. Written before they are.
    Purged(PurgeReason),
    /// It was in the queue and had no events: somebody removed them and did not say so.
    Lost,
    /// Something that this program does not know.
    Unknown,
}

/// Why a task's events are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PurgeReason {
    /// It ended longer ago than events are kept.
    Age,
    /// The bus had no room for it any more.
    Room,
    /// Somebody asked for it.
    Request {
        /// The caller's name; empty: not known.
        by: String,
    },
    /// A reason that this program does not know.
    Other,
}

/// A record about the index itself.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexMark {
    /// When it was written.
    pub time: SystemTime,
    /// SHA-256 of the record before in the index; `None` in the first.
    pub previous: Option<Digest>,
    /// What it says.
    pub mark: Mark,
}

/// What a record says of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The oldest records are removed on purpose. Written before they are.
    Trimmed {
        /// What the first record that stays names as the one before it.
        previous: Option<Digest>,
    },
    /// From here on every removal is recorded; before, the server dropped the oldest by itself.
    RetentionRecorded,
}

/// What a stored record is about.
#[derive(Debug, Clone, PartialEq)]
pub enum About {
    /// A task.
    Task(IndexRecord),
    /// The index itself.
    Index(IndexMark),
}

impl IndexRecord {
    /// The bytes that are stored.
    pub fn encode(&self) -> Vec<u8> {
        let body = match &self.entry {
            IndexEntry::Submitted => Some(Body::Submitted(v2::TaskSubmitted {})),
            IndexEntry::Resumed => Some(Body::Resumed(v2::TaskResumed {})),
            IndexEntry::Ended { index, hash } => Some(Body::Ended(v2::TaskEnded { index: *index, hash: bytes(*hash) })),
            IndexEntry::Purged(reason) => Some(Body::Purged(reason.into())),
            IndexEntry::Lost => Some(Body::Lost(v2::TaskLost {})),
            IndexEntry::Unknown => None,
        };
        message(self.task.tenant.to_string(), self.task.id.to_string(), self.time, self.previous, body)
    }

    /// The record about a task that is stored as `bytes`.
    ///
    /// # Errors
    /// The bytes are no such record, or a field is out of range.
    pub fn decode(bytes: &[u8]) -> Result<IndexRecord, EventError> {
        IndexRecord::from_message(v2::IndexRecord::decode(bytes).map_err(EventError::Malformed)?)
    }

    fn from_message(record: v2::IndexRecord) -> Result<IndexRecord, EventError> {
        let entry = match record.body {
            Some(Body::Submitted(_)) => IndexEntry::Submitted,
            Some(Body::Resumed(_)) => IndexEntry::Resumed,
            Some(Body::Ended(ended)) => IndexEntry::Ended { index: ended.index, hash: Digest::from_slice(&ended.hash) },
            Some(Body::Purged(purged)) => IndexEntry::Purged(purged.into()),
            Some(Body::Lost(_)) => IndexEntry::Lost,
            Some(Body::Trimmed(_) | Body::RetentionRecorded(_)) | None => IndexEntry::Unknown,
        };
        let id: TaskId = record.task_id.try_into()?;
        Ok(IndexRecord {
            task: TaskKey::new(record.tenant.parse()?, id),
            time: time_from_proto(record.time)?,
            previous: Digest::from_slice(&record.previous),
            entry,
        })
    }
}

impl IndexMark {
    /// The bytes that are stored.
    pub fn encode(&self) -> Vec<u8> {
        let body = match self.mark {
            Mark::Trimmed { previous } => Body::Trimmed(v2::IndexTrimmed { previous: bytes(previous) }),
            Mark::RetentionRecorded => Body::RetentionRecorded(v2::RetentionRecorded {}),
        };
        message(String::new(), String::new(), self.time, self.previous, Some(body))
    }
}

impl About {
    /// The record that is stored as `bytes`.
    ///
    /// # Errors
    /// The bytes are no record, or a field is out of range.
    pub fn decode(bytes: &[u8]) -> Result<About, EventError> {
        let record = v2::IndexRecord::decode(bytes).map_err(EventError::Malformed)?;
        let mark = match &record.body {
            Some(Body::Trimmed(trimmed)) => Mark::Trimmed { previous: Digest::from_slice(&trimmed.previous) },
            Some(Body::RetentionRecorded(_)) => Mark::RetentionRecorded,
            _ => return IndexRecord::from_message(record).map(About::Task),
        };
        Ok(About::Index(IndexMark { time: time_from_proto(record.time)?, previous: Digest::from_slice(&record.previous), mark }))
    }

    /// SHA-256 of the record before in the index.
    pub fn previous(&self) -> Option<Digest> {
        match self {
            About::Task(record) => record.previous,
            About::Index(mark) => mark.previous,
        }
    }
}

fn message(tenant: String, task_id: String, time: SystemTime, previous: Option<Digest>, body: Option<Body>) -> Vec<u8> {
    v2::IndexRecord { version: EVENT_VERSION, tenant, task_id, time: Some(time.into()), previous: bytes(previous), body }.encode_to_vec()
}

fn bytes(digest: Option<Digest>) -> Vec<u8> {
    digest.map(|digest| digest.as_bytes().to_vec()).unwrap_or_default()
}

impl From<&PurgeReason> for v2::TaskPurged {
    fn from(reason: &PurgeReason) -> v2::TaskPurged {
        let (reason, by) = match reason {
            PurgeReason::Age => (v2::PurgeReason::Age, ""),
            PurgeReason::Room => (v2::PurgeReason::Room, ""),
            PurgeReason::Request { by } => (v2::PurgeReason::Request, by.as_str()),
            PurgeReason::Other => (v2::PurgeReason::Unspecified, ""),
        };
        v2::TaskPurged { reason: reason.into(), by: by.to_owned() }
    }
}

impl From<v2::TaskPurged> for PurgeReason {
    fn from(purged: v2::TaskPurged) -> PurgeReason {
        match purged.reason() {
            v2::PurgeReason::Age => PurgeReason::Age,
            v2::PurgeReason::Room => PurgeReason::Room,
            v2::PurgeReason::Request => PurgeReason::Request { by: purged.by },
            v2::PurgeReason::Unspecified => PurgeReason::Other,
        }
    }
}

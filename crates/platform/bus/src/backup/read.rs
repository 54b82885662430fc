//! Reading a backup: every file is compared with its digest before anything is done with it.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use autoact_trajectory::{Digest, EventBody, TaskKey};
use autoact_wire::store::{self, About, IndexEntry};
use autoact_wire::store_v2::StoredMessage;

use crate::audit::hexadecimal;
use crate::backup::error::BackupError;
use crate::backup::manifest::Manifest;
use crate::backup::segment::{Reader, Segment};
use crate::subjects::task_of;

/// What a backup knows, for an audit.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    /// The last event of each task that was copied: its index and SHA-256.
    pub tasks: Vec<(TaskKey, u64, Digest)>,
    /// SHA-256 of the last record of the index.
    pub last_record: Option<Digest>,
}

impl Summary {
    /// Reads all of a backup.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    pub fn read(dir: &Path) -> Result<Summary, BackupError> {
        let (manifest, history) = History::read(dir)?;
        let last_record = manifest.last_record.as_deref().and_then(hexadecimal);
        let known = |(task, copied): (TaskKey, Copied)| (!copied.purged).then_some((task, copied.index, copied.hash?));
        Ok(Summary { tasks: history.tasks.into_iter().filter_map(known).collect(), last_record })
    }
}

/// A task in a backup.
#[derive(Debug, Clone, Default)]
pub(super) struct Copied {
    /// The index knows it: it was submitted before the backup's point in time.
    pub(super) submitted: bool,
    /// The index says so.
    pub(super) ended: bool,
    pub(super) purged: bool,
    /// Where its first event was: a name that is used again after a removal begins anew.
    pub(super) start: u64,
    /// Its last event.
    pub(super) index: u64,
    pub(super) hash: Option<Digest>,
    pub(super) finished: bool,
}

impl Copied {
    /// Belongs to what is restored.
    pub(super) fn wanted(&self) -> bool {
        self.submitted && !self.purged && self.index > 0
    }
}

/// Everything that a backup says, without the events.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) tasks: HashMap<TaskKey, Copied>,
}

impl History {
    /// Reads every file once, and compares its digest.
    pub(super) fn read(dir: &Path) -> Result<(Manifest, History), BackupError> {
        let manifest = Manifest::load(dir)?.ok_or_else(|| BackupError::None { dir: dir.to_owned() })?;
        let mut history = History::default();
        each(dir, &manifest.index, |message| {
            if let Ok(About::Task(record)) = About::decode(&message.payload) {
                let task = history.tasks.entry(record.task).or_default();
                match record.entry {
                    IndexEntry::Submitted if task.purged => *task = Copied { submitted: true, ..Copied::default() },
                    IndexEntry::Submitted => task.submitted = true,
                    IndexEntry::Ended { .. } => (task.submitted, task.ended) = (true, true),
                    IndexEntry::Purged(_) => task.purged = true,
                    IndexEntry::Resumed | IndexEntry::Lost | IndexEntry::Unknown => {}
                }
            }
            Ok(())
        })?;
        each(dir, &manifest.trajectories, |message| {
            let Some(key) = task_of(&message.subject) else { return Ok(()) };
            let Ok(event) = store::decode_without_tools(&key.tenant, &message.payload, message.sequence) else { return Ok(()) };
            let task = history.tasks.entry(key).or_default();
            if event.index == 1 {
                task.start = message.sequence;
            }
            (task.index, task.hash) = (event.index, event.digest);
            task.finished = matches!(event.body, EventBody::Finished(_));
            Ok(())
        })?;
        let meanwhile: HashSet<&str> = manifest.purged_meanwhile.iter().map(String::as_str).collect();
        for (key, task) in &mut history.tasks {
            task.purged |= meanwhile.contains(key.to_string().as_str());
        }
        for segments in [&manifest.receipts, &manifest.tools, &manifest.artifacts, &manifest.outbox] {
            each(dir, segments, |_| Ok(()))?;
        }
        Ok((manifest, history))
    }
}

/// Every message of some files, in order.
pub(super) fn each(
    dir: &Path,
    segments: &[Segment],
    mut take: impl FnMut(StoredMessage) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    for segment in segments {
        let mut reader = Reader::open(dir, segment)?;
        while let Some(message) = reader.next()? {
            take(message)?;
        }
    }
    Ok(())
}

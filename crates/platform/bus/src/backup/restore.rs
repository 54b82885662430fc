//! Bringing a backup back: into an empty bus, or one tenant's tasks into a bus without them.

use std::collections::VecDeque;
use std::path::Path;

use async_nats::jetstream::context::PublishAckFuture;
use async_nats::jetstream::message::PublishMessage;
use autoact_trajectory::{TaskKey, Tenant};
use autoact_wire::store::{About, IndexEntry, PurgeReason, digest};
use autoact_wire::store_v2::StoredMessage;
use bytes::Bytes;
use futures::TryStreamExt;

use crate::audit::{Progress, SHA256_HEADER};
use crate::backup::error::BackupError;
use crate::backup::manifest::Manifest;
use crate::backup::read::{Copied, History};
use crate::backup::segment::{Reader, Segment};
use crate::connect::Bus;
use crate::error::BusError;
use crate::subjects::{index_of, outbox_task, task_of, trajectories_of};

/// For [`BusError::Unavailable`].
const STORE: &str = "be restored";
/// Messages that are on their way at a time.
const PIPELINE: usize = 64;

/// What was brought back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Restored {
    /// Tasks with their events.
    pub tasks: u64,
    /// Events.
    pub events: u64,
    /// Of the tasks, those that have not ended: they are queued.
    pub queued: u64,
    /// Artifacts.
    pub artifacts: u64,
    /// Entries of the outbox.
    pub outbox: u64,
}

/// Brings back a backup, all of it or one tenant's part. Everything is checked before anything is
/// stored. Tasks that have not ended are queued at last, so nothing runs before all is there.
///
/// # Errors
/// The backup is damaged, the bus is not empty, or does not answer. In the last case the bus holds a
/// part of it, and has to be emptied before the next attempt.
pub async fn restore(bus: &Bus, dir: &Path, tenant: Option<&Tenant>, mut progress: impl FnMut(Progress)) -> Result<Restored, BackupError> {
    let (manifest, history) = History::read(dir)?;
    check_empty(bus, tenant).await?;
    let of = manifest.segments().map(|segment| segment.messages).sum();
    let mut run = Run { bus, dir, tenant, told: Progress { read: 0, of }, progress: &mut progress, waiting: VecDeque::new() };
    let mut restored = Restored::default();
    run.tools(&manifest).await?;
    run.artifacts(&manifest, &history, &mut restored).await?;
    run.index(&manifest, &history).await?;
    run.receipts(&manifest, &history).await?;
    run.events(&manifest, &history, &mut restored).await?;
    run.outbox(&manifest, &history, &mut restored).await?;
    let mut tasks: Vec<(&TaskKey, &Copied)> =
        history.tasks.iter().filter(|(task, copied)| copied.wanted() && run.is_wanted(task)).collect();
    // in the order of their submission
    tasks.sort_by_key(|(_, copied)| copied.start);
    restored.tasks = tasks.len() as u64;
    for (task, _) in tasks.into_iter().filter(|(_, copied)| !copied.ended) {
        bus.enqueue(task).await?;
        restored.queued += 1;
    }
    Ok(restored)
}

/// Nothing of what is restored may be there.
async fn check_empty(bus: &Bus, tenant: Option<&Tenant>) -> Result<(), BackupError> {
    let (events, records, whose) = match tenant {
        None => {
            let events = bus.state(&bus.streams.trajectories).await?.messages;
            (events, bus.state(&bus.streams.index).await?.messages, "some tenants".to_owned())
        }
        Some(tenant) => {
            let count = async |stream: &async_nats::jetstream::stream::Stream, filter: String| {
                let subjects = stream.info_with_subjects(filter).await.map_err(|error| BusError::unavailable(STORE, error))?;
                let subjects: Vec<(String, usize)> = subjects.try_collect().await.map_err(|error| BusError::unavailable(STORE, error))?;
                Ok::<u64, BusError>(subjects.iter().map(|(_, count)| *count as u64).sum())
            };
            let events = count(&bus.streams.trajectories, trajectories_of(tenant)).await?;
            (events, count(&bus.streams.index, index_of(tenant)).await?, format!("tenant `{tenant}`"))
        }
    };
    if events + records > 0 {
        return Err(BackupError::NotEmpty { whose, events, records });
    }
    Ok(())
}

struct Run<'a> {
    bus: &'a Bus,
    dir: &'a Path,
    tenant: Option<&'a Tenant>,
    told: Progress,
    progress: &'a mut dyn FnMut(Progress),
    waiting: VecDeque<PublishAckFuture>,
}

impl Run<'_> {
    fn is_wanted(&self, task: &TaskKey) -> bool {
        self.tenant.is_none_or(|tenant| *tenant == task.tenant)
    }

    fn tell(&mut self) {
        self.told.read += 1;
        (self.progress)(self.told);
    }

    /// Sends a message; its acknowledgement is waited for later.
    async fn send(&mut self, message: StoredMessage, sha256: bool) -> Result<(), BackupError> {
        let payload = Bytes::from(message.payload);
        let mut publish = PublishMessage::build().payload(payload.clone());
        if !message.id.is_empty() {
            publish = publish.message_id(&message.id);
        }
        if sha256 {
            publish = publish.header(SHA256_HEADER, digest(&payload).to_string().as_str());
        }
        let sent = self.bus.context.send_publish(message.subject, publish).await;
        self.waiting.push_back(sent.map_err(|error| BusError::unavailable(STORE, error))?);
        if self.waiting.len() >= PIPELINE {
            self.settle_one().await?;
        }
        Ok(())
    }

    async fn settle_one(&mut self) -> Result<(), BackupError> {
        if let Some(sent) = self.waiting.pop_front() {
            sent.await.map_err(|error| BusError::unavailable(STORE, error))?;
        }
        Ok(())
    }

    async fn settle(&mut self) -> Result<(), BackupError> {
        while !self.waiting.is_empty() {
            self.settle_one().await?;
        }
        Ok(())
    }

    async fn tools(&mut self, manifest: &Manifest) -> Result<(), BackupError> {
        let mut messages = Messages::new(self.dir, &manifest.tools);
        while let Some(message) = messages.next()? {
            let key = message.subject.strip_prefix(&self.bus.streams.tools.prefix);
            let tenant = key.and_then(|key| key.split_once('.')).map(|(tenant, _)| tenant.to_owned());
            // a mark of something that was deleted has no content
            let wanted = self.tenant.is_none_or(|wanted| tenant.as_deref() == Some(wanted.as_str()));
            if wanted && !message.payload.is_empty() {
                self.send(StoredMessage { id: String::new(), ..message }, false).await?;
            }
            self.tell();
        }
        self.settle().await
    }

    async fn artifacts(&mut self, manifest: &Manifest, history: &History, restored: &mut Restored) -> Result<(), BackupError> {
        let mut messages = Messages::new(self.dir, &manifest.artifacts);
        while let Some(message) = messages.next()? {
            self.tell();
            // `<tenant>/<task>/<sha256>`
            let Some((tenant, object)) = message.subject.split_once('/') else { continue };
            let Some((task, _)) = object.split_once('/') else { continue };
            let (Ok(tenant), Ok(id)) = (tenant.parse(), task.parse()) else { continue };
            let task = TaskKey::new(tenant, id);
            if self.is_wanted(&task) && history.tasks.get(&task).is_some_and(Copied::wanted) {
                self.bus.put_artifact(&task.tenant, object, &message.payload).await?;
                restored.artifacts += 1;
            }
        }
        Ok(())
    }

    /// The whole index as it was, byte for byte; of one tenant, its records in a new chain, because
    /// the one chain has the records of all tenants.
    async fn index(&mut self, manifest: &Manifest, history: &History) -> Result<(), BackupError> {
        let mut messages = Messages::new(self.dir, &manifest.index);
        while let Some(message) = messages.next()? {
            self.tell();
            match self.tenant {
                None => self.send(message, true).await?,
                Some(_) => {
                    let Ok(About::Task(record)) = About::decode(&message.payload) else { continue };
                    let copied = history.tasks.get(&record.task).is_some_and(Copied::wanted);
                    if self.is_wanted(&record.task) && copied && matches!(record.entry, IndexEntry::Submitted | IndexEntry::Ended { .. }) {
                        self.bus.record(&record.task, record.entry, record.time).await?;
                    }
                }
            }
        }
        self.settle().await?;
        *self.bus.tail.lock().await = None;
        if self.tenant.is_none() {
            for task in &manifest.purged_meanwhile {
                if let Some(task) = key(task) {
                    let purged = IndexEntry::Purged(PurgeReason::Request { by: String::new() });
                    self.bus.record(&task, purged, self.bus.now()).await?;
                }
            }
        }
        Ok(())
    }

    async fn events(&mut self, manifest: &Manifest, history: &History, restored: &mut Restored) -> Result<(), BackupError> {
        let mut messages = Messages::new(self.dir, &manifest.trajectories);
        while let Some(message) = messages.next()? {
            self.tell();
            let Some(task) = task_of(&message.subject) else { continue };
            let copied = history.tasks.get(&task).filter(|copied| copied.wanted() && message.sequence >= copied.start);
            if copied.is_some() && self.is_wanted(&task) {
                self.send(message, false).await?;
                restored.events += 1;
            }
        }
        self.settle().await
    }

    async fn receipts(&mut self, manifest: &Manifest, history: &History) -> Result<(), BackupError> {
        let mut messages = Messages::new(self.dir, &manifest.receipts);
        while let Some(message) = messages.next()? {
            self.tell();
            let Some(task) = task_of(&message.subject) else { continue };
            if self.is_wanted(&task) && history.tasks.get(&task).is_some_and(Copied::wanted) {
                self.send(message, false).await?;
            }
        }
        self.settle().await
    }

    async fn outbox(&mut self, manifest: &Manifest, history: &History, restored: &mut Restored) -> Result<(), BackupError> {
        let mut messages = Messages::new(self.dir, &manifest.outbox);
        while let Some(message) = messages.next()? {
            self.tell();
            let Some(task) = outbox_task(&message.subject) else { continue };
            if self.is_wanted(&task) && history.tasks.get(&task).is_some_and(Copied::wanted) {
                self.send(StoredMessage { id: String::new(), ..message }, false).await?;
                restored.outbox += 1;
            }
        }
        self.settle().await
    }
}

/// `<tenant>/<task>`
fn key(text: &str) -> Option<TaskKey> {
    let (tenant, id) = text.split_once('/')?;
    Some(TaskKey::new(tenant.parse().ok()?, id.parse().ok()?))
}

/// The messages of some files, one after the other.
struct Messages<'a> {
    dir: &'a Path,
    segments: std::slice::Iter<'a, Segment>,
    open: Option<Reader>,
}

impl<'a> Messages<'a> {
    fn new(dir: &'a Path, segments: &'a [Segment]) -> Messages<'a> {
        Messages { dir, segments: segments.iter(), open: None }
    }

    fn next(&mut self) -> Result<Option<StoredMessage>, BackupError> {
        loop {
            if let Some(reader) = &mut self.open
                && let Some(message) = reader.next()?
            {
                return Ok(Some(message));
            }
            match self.segments.next() {
                Some(segment) => self.open = Some(Reader::open(self.dir, segment)?),
                None => return Ok(None),
            }
        }
    }
}

//! Writing a backup: what the bus has got since the last run.
//!
//! The order makes it one point in time. First the index as it is, then the events up to a position
//! that was read after that: so every end that the copied index tells has its events in the copy.
//! Tasks that were submitted later are not part of it, although their events may be. What the index
//! has got meanwhile is looked through for removals, whose events may be missing.

use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use async_nats::jetstream::stream::{RetentionPolicy, Stream};
use autoact_trajectory::Tenant;
use autoact_wire::store::{About, IndexEntry, digest};
use autoact_wire::store_v2::StoredMessage;
use futures::TryStreamExt;
use tokio::io::AsyncReadExt;

use crate::artifacts::tenant_of_stream;
use crate::audit::Progress;
use crate::backup::error::BackupError;
use crate::backup::manifest::Manifest;
use crate::backup::segment::{Segment, Writer};
use crate::connect::Bus;
use crate::error::BusError;
use crate::scan::{Read, Scan};
use crate::streams::identity;
use crate::subjects::{ALL_INDEX, ALL_OUTBOX, ALL_RECEIPTS, ALL_TRAJECTORIES};

/// For [`BusError::Unavailable`].
const READ: &str = "be copied";

/// What a run has copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// Records of the index.
    pub records: u64,
    /// Events.
    pub events: u64,
    /// Receipts of effects.
    pub receipts: u64,
    /// Specifications of tools.
    pub tools: u64,
    /// Artifacts.
    pub artifacts: u64,
    /// Entries that wait in the outbox.
    pub outbox: u64,
    /// Bytes of files that were written.
    pub bytes: u64,
    /// It is the first run into this directory.
    pub first: bool,
}

/// Copies what is new into a directory.
///
/// # Errors
/// The bus does not answer, a file cannot be written, or the directory holds the backup of another
/// bus. What was there before stays as it was.
pub async fn backup(bus: &Bus, dir: &Path, mut progress: impl FnMut(Progress)) -> Result<BackedUp, BackupError> {
    std::fs::create_dir_all(dir).map_err(BackupError::io(dir))?;
    let _lock = lock(dir)?;
    let found = Manifest::load(dir)?;
    let first = found.is_none();
    let mut manifest = found.unwrap_or_default();
    check_bus(bus, dir, &mut manifest)?;
    remove_strays(dir, &manifest)?;
    manifest.runs += 1;
    let mut run = Run { bus, dir, number: manifest.runs, told: Progress::default(), progress: &mut progress };
    let mut copied = BackedUp { first, ..BackedUp::default() };

    // the index, then the events
    let state = bus.state(&bus.streams.index).await?;
    let from = manifest.positions.get("index").copied().unwrap_or(0);
    if !first && (state.first_sequence > from + 1 || state.last_sequence < from) {
        let why = "its index does not go on where the backup ends".to_owned();
        return Err(BackupError::OtherBus { dir: dir.to_owned(), why });
    }
    run.told.of = state.last_sequence.saturating_sub(from);
    run.told.of += bus.state(&bus.streams.trajectories).await?.last_sequence.saturating_sub(position(&manifest, "trajectories"));
    let mut last_record = manifest.last_record.clone();
    let mut joined = from == 0;
    let segments = run
        .copy("index", &bus.streams.index, ALL_INDEX, from, state.last_sequence, |read| {
            if !joined {
                joined = true;
                let previous = About::decode(&read.payload).ok().and_then(|about| about.previous());
                if previous.map(|digest| digest.to_string()) != last_record {
                    let why = "its index does not follow the backup's last record".to_owned();
                    return Err(BackupError::OtherBus { dir: dir.to_owned(), why });
                }
            }
            last_record = Some(digest(&read.payload).to_string());
            Ok(())
        })
        .await?;
    copied.records = add(&mut manifest.index, segments, &mut copied.bytes);
    manifest.last_record = last_record;
    manifest.positions.insert("index".to_owned(), state.last_sequence);

    let last = bus.state(&bus.streams.trajectories).await?.last_sequence;
    let from = position(&manifest, "trajectories");
    let segments = run.copy("trajectories", &bus.streams.trajectories, ALL_TRAJECTORIES, from, last, |_| Ok(())).await?;
    copied.events = add(&mut manifest.trajectories, segments, &mut copied.bytes);
    manifest.positions.insert("trajectories".to_owned(), last);

    // after the events: what was claimed for an action that is in the copy is in it, too
    let last = bus.state(&bus.streams.receipts).await?.last_sequence;
    let from = position(&manifest, "receipts");
    let segments = run.copy("receipts", &bus.streams.receipts, ALL_RECEIPTS, from, last, |_| Ok(())).await?;
    copied.receipts = add(&mut manifest.receipts, segments, &mut copied.bytes);
    manifest.positions.insert("receipts".to_owned(), last);

    manifest.purged_meanwhile = purged_since(bus, state.last_sequence).await?;

    let last = bus.state(&bus.streams.tools.stream).await?.last_sequence;
    let from = position(&manifest, "tools");
    let filter = format!("{}>", bus.streams.tools.prefix);
    let segments = run.copy("tools", &bus.streams.tools.stream, &filter, from, last, |_| Ok(())).await?;
    copied.tools = add(&mut manifest.tools, segments, &mut copied.bytes);
    manifest.positions.insert("tools".to_owned(), last);

    let segments = run.artifacts(&mut manifest).await?;
    copied.artifacts = add(&mut manifest.artifacts, segments, &mut copied.bytes);

    let state = bus.state(&bus.streams.outbox).await?;
    let segments = run.copy("outbox", &bus.streams.outbox, ALL_OUTBOX, 0, state.last_sequence, |_| Ok(())).await?;
    manifest.outbox.clear();
    copied.outbox = add(&mut manifest.outbox, segments, &mut copied.bytes);

    manifest.time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    manifest.clone().store(dir)?;
    remove_strays(dir, &manifest)?;
    Ok(copied)
}

struct Run<'a> {
    bus: &'a Bus,
    dir: &'a Path,
    number: u64,
    told: Progress,
    progress: &'a mut dyn FnMut(Progress),
}

impl Run<'_> {
    /// Copies the messages of a stream after one position, up to another.
    async fn copy(
        &mut self,
        kind: &'static str,
        stream: &Stream,
        filter: &str,
        from: u64,
        last: u64,
        mut look: impl FnMut(&Read) -> Result<(), BackupError>,
    ) -> Result<Vec<Segment>, BackupError> {
        let mut writer = Writer::new(self.dir, kind, self.number);
        let mut scan = Scan::new(self.bus, stream, filter, from, last, READ);
        if stream.cached_info().config.retention == RetentionPolicy::WorkQueue {
            scan = scan.one_by_one();
        }
        while let Some(read) = scan.next().await? {
            look(&read)?;
            let id = read.message().id.unwrap_or_default().to_owned();
            writer.add(&StoredMessage { subject: read.subject, sequence: read.sequence, payload: read.payload.to_vec(), id })?;
            self.told.read += 1;
            (self.progress)(self.told);
        }
        writer.finish()
    }

    /// Copies the artifacts of all tenants that are new.
    async fn artifacts(&mut self, manifest: &mut Manifest) -> Result<Vec<Segment>, BackupError> {
        let mut writer = Writer::new(self.dir, "artifacts", self.number);
        let names: Vec<String> = self.bus.context.stream_names().try_collect().await.map_err(|error| BusError::unavailable(READ, error))?;
        for (name, tenant) in names.iter().filter_map(|name| Some((name, tenant_of_stream(name)?))) {
            let stream = self.bus.context.get_stream(name).await.map_err(|error| BusError::unavailable(READ, error))?;
            let from = position(manifest, name);
            let last = self.bus.state(&stream).await?.last_sequence;
            // an object that is removed or replaced leaves its description at a higher position
            let filter = format!("$O.{}.M.>", name.trim_start_matches("OBJ_"));
            let mut descriptions = Scan::new(self.bus, &stream, filter, from, last, READ);
            while let Some(description) = descriptions.next().await? {
                let Some(object) = described(&description.payload) else { continue };
                // it may have been removed since
                let Some(payload) = self.object(&tenant, &object).await? else { continue };
                let (subject, sequence) = (format!("{tenant}/{object}"), description.sequence);
                writer.add(&StoredMessage { subject, sequence, payload, id: String::new() })?;
            }
            manifest.positions.insert(name.clone(), last);
        }
        writer.finish()
    }

    async fn object(&self, tenant: &Tenant, object: &str) -> Result<Option<Vec<u8>>, BackupError> {
        let Some(store) = self.bus.existing_store(tenant).await? else { return Ok(None) };
        let Ok(mut found) = store.get(object).await else { return Ok(None) };
        let mut data = Vec::with_capacity(found.info().size);
        let read = found.read_to_end(&mut data).await;
        read.map_err(|error| BusError::unavailable(READ, error))?;
        Ok(Some(data))
    }
}

/// The name in an object's description; `None` if it was removed.
fn described(payload: &[u8]) -> Option<String> {
    let description: serde_json::Value = serde_json::from_slice(payload).ok()?;
    if description["deleted"].as_bool().unwrap_or(false) {
        return None;
    }
    description["name"].as_str().map(ToOwned::to_owned)
}

/// The tasks that were removed after a position of the index.
async fn purged_since(bus: &Bus, position: u64) -> Result<Vec<String>, BusError> {
    let last = bus.state(&bus.streams.index).await?.last_sequence;
    let mut scan = Scan::new(bus, &bus.streams.index, ALL_INDEX, position, last, READ);
    let mut purged = Vec::new();
    while let Some(read) = scan.next().await? {
        if let Ok(About::Task(record)) = About::decode(&read.payload)
            && matches!(record.entry, IndexEntry::Purged(_))
        {
            purged.push(record.task.to_string());
        }
    }
    Ok(purged)
}

fn position(manifest: &Manifest, stream: &str) -> u64 {
    manifest.positions.get(stream).copied().unwrap_or(0)
}

fn add(to: &mut Vec<Segment>, segments: Vec<Segment>, bytes: &mut u64) -> u64 {
    *bytes += segments.iter().map(|segment| segment.bytes).sum::<u64>();
    let messages = segments.iter().map(|segment| segment.messages).sum();
    to.extend(segments);
    messages
}

/// Held until the run ends, however it ends.
fn lock(dir: &Path) -> Result<File, BackupError> {
    let path = dir.join("lock");
    let file = File::create(&path).map_err(BackupError::io(&path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(BackupError::Busy { dir: dir.to_owned() }),
        Err(std::fs::TryLockError::Error(error)) => Err(BackupError::io(&path)(error)),
    }
}

/// The streams of another bus are others.
fn check_bus(bus: &Bus, dir: &Path, manifest: &mut Manifest) -> Result<(), BackupError> {
    for stream in [&bus.streams.index, &bus.streams.trajectories] {
        let info = stream.cached_info();
        let (name, found) = (info.config.name.clone(), identity(info));
        match manifest.bus.get(&name) {
            Some(known) if *known != found => {
                let why = format!("stream `{name}` is {found}, and the one of the backup is {known}");
                return Err(BackupError::OtherBus { dir: dir.to_owned(), why });
            }
            Some(_) => {}
            None => {
                manifest.bus.insert(name, found);
            }
        }
    }
    Ok(())
}

/// Removes files of ours that the manifest does not name: an interrupted run left them.
fn remove_strays(dir: &Path, manifest: &Manifest) -> Result<(), BackupError> {
    for entry in std::fs::read_dir(dir).map_err(BackupError::io(dir))? {
        let entry = entry.map_err(BackupError::io(dir))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".seg") && !manifest.segments().any(|segment| segment.file == name) {
            std::fs::remove_file(entry.path()).map_err(BackupError::io(&entry.path()))?;
        }
    }
    Ok(())
}

//! Feeds an audit with what the bus holds.

use std::time::SystemTime;

use autoact_trajectory::{TaskKey, Tenant};
use futures::TryStreamExt;

use crate::audit::artifacts::Artifacts;
use crate::audit::{Audit, Report, hexadecimal};
use crate::backup::Summary;
use crate::connect::Bus;
use crate::error::BusError;
use crate::scan::Scan;
use crate::subjects::{ALL_INDEX, ALL_QUEUES, ALL_TRAJECTORIES, queue_of, task_of, trajectories_of};

/// For [`BusError::Unavailable`].
pub(super) const READ: &str = "be audited";

/// What is audited.
#[derive(Debug, Default)]
pub struct AuditOptions {
    /// One tenant's tasks; `None`: everybody's.
    pub tenant: Option<Tenant>,
    /// A backup that knows tasks which have not ended.
    pub backup: Option<Summary>,
}

/// How far an audit is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Messages that were read.
    pub read: u64,
    /// Messages that there are, about.
    pub of: u64,
}

/// Audits a bus while it is in use.
///
/// # Errors
/// The bus does not answer, or lacks a stream ([`BusError::Vanished`]).
pub async fn audit(bus: &Bus, options: AuditOptions, mut progress: impl FnMut(Progress)) -> Result<Report, BusError> {
    let mut audit = Audit::new(options.tenant.clone());
    if let Some(backup) = &options.backup {
        for (task, index, hash) in &backup.tasks {
            audit.known(task, *index, Some(*hash));
        }
        backup.last_record.into_iter().for_each(|hash| audit.known_record(hash));
    }
    let index = bus.state(&bus.streams.index).await?;
    let trajectories = bus.state(&bus.streams.trajectories).await?;
    let mut told = Progress { read: 0, of: index.messages + trajectories.messages };
    let mut tell = |count: u64| {
        told.read += count;
        progress(told);
    };

    let mut records = Scan::new(bus, &bus.streams.index, ALL_INDEX, 0, index.last_sequence, READ);
    while let Some(record) = records.next().await? {
        audit.record(&record.message());
        tell(1);
    }
    let filter = options.tenant.as_ref().map_or(ALL_TRAJECTORIES.to_owned(), trajectories_of);
    let last = bus.state(&bus.streams.trajectories).await?.last_sequence;
    let mut events = Scan::new(bus, &bus.streams.trajectories, filter, 0, last, READ);
    let mut artifacts = Artifacts::new(bus);
    while let Some(event) = events.next().await? {
        for artifact in audit.event(&event.message()) {
            let Some(task) = task_of(&event.subject) else { continue };
            let wrong = artifacts.look(&task, &artifact).await?;
            audit.artifact(&task, event.sequence, wrong);
        }
        tell(1);
    }
    audit.events_read();

    let last = bus.state(&bus.streams.tools.stream).await?.last_sequence;
    let prefix = bus.streams.tools.prefix.clone();
    let mut tools = Scan::new(bus, &bus.streams.tools.stream, format!("{prefix}>"), 0, last, READ);
    while let Some(tool) = tools.next().await? {
        let key = tool.subject.strip_prefix(&prefix).and_then(|key| key.split_once('.'));
        if let Some((tenant, digest)) = key
            && let (Ok(tenant), Some(digest)) = (tenant.parse(), hexadecimal(digest))
        {
            audit.tool(&tenant, &digest, &tool.payload);
        }
    }
    for task in queued(bus, options.tenant.as_ref()).await? {
        audit.queued(&task);
    }
    let now = bus.state(&bus.streams.index).await?.last_sequence;
    let mut records = Scan::new(bus, &bus.streams.index, ALL_INDEX, index.last_sequence, now, READ);
    while let Some(record) = records.next().await? {
        audit.record(&record.message());
    }
    for task in audit.unsure() {
        if bus.last_stored(&task).await?.is_some() {
            audit.sure(&task);
        }
    }
    Ok(audit.finish(SystemTime::now()))
}

/// The tasks in the queue.
async fn queued(bus: &Bus, tenant: Option<&Tenant>) -> Result<Vec<TaskKey>, BusError> {
    let filter = tenant.map_or(ALL_QUEUES.to_owned(), queue_of);
    let mut patience = bus.patience(READ);
    loop {
        let listed = async { bus.streams.queue.info_with_subjects(&filter).await?.try_collect::<Vec<_>>().await };
        match listed.await {
            Ok(subjects) => return Ok(subjects.iter().filter_map(|(subject, _)| task_of(subject)).collect()),
            Err(error) => patience.after(error).await?,
        }
    }
}

//! The decisions of an audit: plain code that is fed with messages in a fixed order.
//!
//! First what a backup knows, then the index as it is at the beginning, then the events up to a
//! position that was read after that, then the specifications of tools and the queue, and at last
//! what the index has got meanwhile. In this order nothing that happens during an audit looks like
//! a loss: an event is stored before the record of its task's end, and a record that a task is
//! removed before its events are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, SystemTime};

use autoact_trajectory::{Artifact, Digest, TaskKey, Tenant};
use autoact_wire::store::{self, About, IndexEntry, Mark};

use crate::audit::Message;
use crate::audit::chain::{Chain, Place};
use crate::audit::finding::{Finding, Kind, MAX_FINDINGS, Report};
use crate::subjects::task_of;

/// Whoever stored an event has queued its task by then, or recorded its end, if it lives.
const SETTLED: Duration = Duration::from_secs(60);

/// An audit that is under way. Its memory grows with the number of tasks (some 300 bytes each), not
/// with what they hold.
#[derive(Debug, Default)]
pub struct Audit {
    tenant: Option<Tenant>,
    tasks: HashMap<TaskKey, Known>,
    index: IndexChain,
    tools: HashMap<(Tenant, Digest), Tool>,
    report: Report,
    /// The events have been read; records that come now are younger than that.
    late: bool,
}

/// What is known of a task beside its events.
#[derive(Debug, Default)]
struct Known {
    chain: Option<Chain>,
    /// The index has a record of it.
    told: bool,
    /// The index said so before its events were read.
    submitted: bool,
    ended: Option<Place>,
    ended_late: bool,
    purged: bool,
    lost: bool,
    /// Submitted before removals were recorded: its oldest events may have been dropped.
    headless: bool,
    backup: Option<Place>,
    queued: bool,
    findings: Vec<Finding>,
}

#[derive(Debug)]
struct Tool {
    name: String,
    task: TaskKey,
    there: bool,
}

/// The index so far.
#[derive(Debug, Default)]
struct IndexChain {
    position: u64,
    last: Option<(Digest, Digest)>,
    /// What the first record names as the one before it.
    first: Option<(u64, Option<Digest>)>,
    /// What records of removals say of the head.
    trimmed: HashSet<Digest>,
    /// Since when removals are recorded, if the server dropped some before.
    retention: Option<SystemTime>,
    /// The backup's last record.
    backup: Option<Digest>,
    backup_seen: bool,
    findings: Vec<Finding>,
}

impl Audit {
    /// An audit of one tenant's tasks, or of all. The index is one chain over all tenants, and is
    /// always checked as a whole.
    pub fn new(tenant: Option<Tenant>) -> Audit {
        Audit { tenant, ..Audit::default() }
    }

    /// What a backup knows of a task: an event of it, the last one that was copied.
    pub fn known(&mut self, task: &TaskKey, index: u64, hash: Option<Digest>) {
        if self.wanted(task) {
            self.tasks.entry(task.clone()).or_default().backup = Some(Place { index, hash });
        }
    }

    /// The last record of the index that a backup has.
    pub fn known_record(&mut self, hash: Digest) {
        self.index.backup = Some(hash);
    }

    /// A message of the index, in order.
    pub fn record(&mut self, message: &Message<'_>) {
        self.report.records += 1;
        let task = task_of(message.subject);
        let hash = store::digest(message.payload);
        let stored = message.stored_digest();
        let mut find = |kind, detail: String| {
            let finding = Finding { task: task.clone(), kind, index: None, sequence: Some(message.sequence), detail };
            self.index.findings.push(finding);
        };
        let changed = stored.is_some_and(|stored| stored != hash);
        if changed {
            find(Kind::Changed, "a record of the index has another SHA-256 than it was stored with".to_owned());
        }
        let about = match About::decode(message.payload) {
            Ok(about) => Some(about),
            Err(_) if changed => None,
            Err(error) => {
                find(Kind::Unreadable, format!("a record of the index: {error}"));
                None
            }
        };
        if let Some(about) = &about {
            let follows = match (self.index.position, self.index.last) {
                (0, _) => {
                    self.index.first = Some((message.sequence, about.previous()));
                    true
                }
                (_, None) => true,
                (_, Some((hash, stored))) => about.previous().is_some_and(|previous| previous == hash || previous == stored),
            };
            let gap = self.index.position != 0 && message.sequence != self.index.position + 1;
            if gap {
                find(Kind::IndexBroken, format!("the records at {} to {} are not there", self.index.position + 1, message.sequence - 1));
            } else if !follows && !changed {
                find(Kind::IndexBroken, format!("it does not name the record at {} as the one before it", self.index.position));
            }
        }
        self.index.position = message.sequence;
        let accepted = stored.unwrap_or(hash);
        self.index.last = about.is_some().then_some((hash, accepted)).or(stored.map(|stored| (stored, stored)));
        if self.index.backup.is_some_and(|backup| backup == hash) {
            self.index.backup_seen = true;
        }
        match about {
            Some(About::Index(mark)) => match mark.mark {
                Mark::Trimmed { previous } => self.index.trimmed.extend(previous),
                Mark::RetentionRecorded => {
                    self.index.retention = Some(mark.time);
                    for known in self.tasks.values_mut() {
                        known.headless = true;
                    }
                }
            },
            Some(About::Task(record)) => {
                if task.as_ref() != Some(&record.task) {
                    if !changed {
                        find(Kind::Foreign, format!("a record of the index says task `{}`", record.task));
                    }
                } else if self.wanted(&record.task) {
                    self.told(record.task, record.entry);
                }
            }
            None => {}
        }
    }

    fn told(&mut self, task: TaskKey, entry: IndexEntry) {
        let known = self.tasks.entry(task).or_default();
        known.told = true;
        match entry {
            IndexEntry::Submitted => {
                known.submitted |= !self.late;
                // the same name, used again after it was removed
                if known.purged {
                    (known.purged, known.ended, known.headless) = (false, None, false);
                    self.report.purged = self.report.purged.saturating_sub(1);
                }
            }
            IndexEntry::Ended { index, hash } => {
                known.ended = Some(Place { index, hash });
                known.ended_late = self.late;
            }
            IndexEntry::Purged(_) => {
                self.report.purged += u64::from(!known.purged);
                known.purged = true;
            }
            IndexEntry::Lost => known.lost = true,
            IndexEntry::Resumed | IndexEntry::Unknown => {}
        }
    }

    /// A message of the trajectories, in order. Returns the artifacts that it names, which are to be
    /// looked at ([`artifact`](Self::artifact)).
    pub fn event(&mut self, message: &Message<'_>) -> Vec<Artifact> {
        self.report.events += 1;
        let Some(task) = task_of(message.subject) else {
            let detail = format!("`{}` is the subject of no task", message.subject);
            self.index.findings.push(Finding { task: None, kind: Kind::Foreign, index: None, sequence: Some(message.sequence), detail });
            return Vec::new();
        };
        let early = self.index.retention;
        let known = self.tasks.entry(task.clone()).or_default();
        let first = known.chain.is_none();
        let headless = known.headless || (!known.told && early.is_some());
        let (found, artifacts) = known.chain.get_or_insert_default().add(&task, message, headless, [known.ended, known.backup]);
        known.findings.extend(found);
        if first {
            self.report.tasks += 1;
            for tool in store::named_tools(message.payload).unwrap_or_default() {
                let (named, task) = ((task.tenant.clone(), tool.digest), &task);
                self.tools.entry(named).or_insert_with(|| Tool { name: tool.name, task: task.clone(), there: false });
            }
        }
        artifacts
    }

    /// An artifact that the event at `sequence` names was looked at; `wrong`: what is wrong with it.
    pub fn artifact(&mut self, task: &TaskKey, sequence: u64, wrong: Option<(Kind, String)>) {
        self.report.artifacts += 1;
        if let (Some((kind, detail)), Some(known)) = (wrong, self.tasks.get_mut(task)) {
            known.findings.push(Finding { task: Some(task.clone()), kind, index: None, sequence: Some(sequence), detail });
        }
    }

    /// A specification that is stored under this digest.
    pub fn tool(&mut self, tenant: &Tenant, digest: &Digest, payload: &[u8]) {
        if let Some(tool) = self.tools.get_mut(&(tenant.clone(), *digest)) {
            tool.there |= store::digest(payload) == *digest;
        }
    }

    /// A task that stands in the queue.
    pub fn queued(&mut self, task: &TaskKey) {
        if self.wanted(task) {
            self.tasks.entry(task.clone()).or_default().queued = true;
        }
    }

    /// Queued tasks without events: they may have been stored after the events were read, and have
    /// to be looked up one by one.
    pub fn unsure(&self) -> Vec<TaskKey> {
        let unsure = |known: &&Known| known.chain.is_none() && known.queued && known.ended.is_none() && known.backup.is_none();
        self.tasks.iter().filter(|(_, known)| unsure(known)).map(|(task, _)| task.clone()).collect()
    }

    /// A task that [`Audit::unsure`] named has events, or is queued no more.
    pub fn sure(&mut self, task: &TaskKey) {
        if let Some(known) = self.tasks.get_mut(task) {
            known.queued = false;
        }
    }

    /// The events have been read: records that come now are younger.
    pub fn events_read(&mut self) {
        self.late = true;
    }

    fn wanted(&self, task: &TaskKey) -> bool {
        self.tenant.as_ref().is_none_or(|tenant| *tenant == task.tenant)
    }

    /// What was found, at the time `now`.
    pub fn finish(mut self, now: SystemTime) -> Report {
        let retention = self.index.retention;
        let mut findings = std::mem::take(&mut self.index.findings);
        findings.extend(self.index.judge());
        let tasks: BTreeMap<TaskKey, Known> = std::mem::take(&mut self.tasks).into_iter().collect();
        for (task, known) in &tasks {
            // what is removed on purpose may be half-way
            if known.purged {
                continue;
            }
            self.report.ended += u64::from(known.chain.as_ref().is_some_and(|chain| chain.finished));
            self.report.cut_off += u64::from(known.submitted && known.is_cut_off());
            findings.extend(known.findings.iter().cloned());
            findings.extend(known.judge(task, now, retention, !self.index.trimmed.is_empty()));
        }
        for ((tenant, digest), tool) in &self.tools {
            if !tool.there && tasks.get(&tool.task).is_none_or(|known| !known.purged) {
                let detail = format!("the specification `{tenant}.{digest}` of its tool `{}` is not there", tool.name);
                findings.push(Finding { task: Some(tool.task.clone()), kind: Kind::ToolMissing, index: None, sequence: None, detail });
            }
        }
        self.report.more = findings.len().saturating_sub(MAX_FINDINGS) as u64;
        findings.truncate(MAX_FINDINGS);
        self.report.findings = findings;
        self.report
    }
}

impl Known {
    /// Recorded as submitted, and nothing else is known of it: whoever submitted it was not told
    /// that it was accepted, because that comes after its first event is stored.
    fn is_cut_off(&self) -> bool {
        self.chain.is_none() && self.told && self.ended.is_none() && self.backup.is_none() && !self.queued && !self.lost
    }

    /// What is wrong with a task as a whole. `trimmed`: the index has lost its oldest records on
    /// purpose, and with them those of tasks that were removed before.
    fn judge(&self, task: &TaskKey, now: SystemTime, retention: Option<SystemTime>, trimmed: bool) -> Option<Finding> {
        let find = |kind, index: Option<u64>, detail: String| {
            let sequence = self.chain.as_ref().map(|chain| chain.sequence);
            Some(Finding { task: Some(task.clone()), kind, index, sequence, detail })
        };
        let known = [self.ended.filter(|_| !self.ended_late), self.backup].into_iter().flatten().max_by_key(|place| place.index);
        let Some(chain) = &self.chain else {
            if self.headless || self.is_cut_off() || (trimmed && !self.told && !self.queued) {
                return None;
            }
            let index = known.map(|place| place.index);
            return match (known, self.queued, self.lost) {
                (Some(place), _, _) => find(Kind::TaskMissing, index, format!("it had {} events, and has none", place.index)),
                (None, true, _) => find(Kind::TaskMissing, None, "it is queued, and has no events".to_owned()),
                (None, _, true) => find(Kind::TaskMissing, None, "a gateway found it in the queue, without events".to_owned()),
                // it ended while the events were read: they came after those that were read
                (None, false, false) => None,
            };
        };
        if let Some(place) = known
            && chain.index < place.index
        {
            return find(Kind::TailMissing, Some(chain.index + 1), format!("events {} to {} are not there", chain.index + 1, place.index));
        }
        if let Some(place) = self.ended
            && chain.index > place.index
        {
            return find(Kind::AfterEnd, Some(place.index + 1), format!("the index says that it ended with event {}", place.index));
        }
        if let Some(place) = self.ended.filter(|_| self.ended_late)
            && chain.index == place.index
            && place.hash.is_some()
            && chain.hash().is_some_and(|hash| place.hash != Some(hash))
        {
            return find(Kind::Changed, Some(place.index), "its last event has another SHA-256 than the index knows".to_owned());
        }
        if !self.told {
            // the index of a bus that dropped records by itself does not know all
            return if retention.is_some_and(|since| chain.time < since) {
                None
            } else {
                find(Kind::NotInIndex, None, "the index has no record of it".to_owned())
            };
        }
        let settled = now.duration_since(chain.time).is_ok_and(|age| age > SETTLED);
        if !settled || self.queued || self.ended.is_some() {
            return None;
        }
        match chain.finished {
            true if self.headless => None,
            true => find(Kind::EndNotRecorded, Some(chain.index), "it has ended, and the index does not say so".to_owned()),
            false => find(Kind::NotQueued, Some(chain.index), "it has not ended, and does not stand in the queue".to_owned()),
        }
    }
}

impl IndexChain {
    /// What is wrong with the index as a whole.
    fn judge(&self) -> Vec<Finding> {
        let finding = |kind, sequence, detail: &str| Finding { task: None, kind, index: None, sequence, detail: detail.to_owned() };
        let mut findings = Vec::new();
        if let Some((sequence, Some(previous))) = self.first
            && !self.trimmed.contains(&previous)
            && self.retention.is_none()
        {
            findings.push(finding(
                Kind::IndexHeadMissing,
                Some(sequence),
                "the oldest records are not there, and no record says that they were removed",
            ));
        }
        // where the head was removed, the backup's last record may have been among it
        if self.backup.is_some() && !self.backup_seen && self.trimmed.is_empty() && self.retention.is_none() {
            findings.push(finding(Kind::IndexTailMissing, None, "the last record of the backup is not there"));
        }
        findings
    }
}

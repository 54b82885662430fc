//! What an audit finds.

use std::fmt;

use autoact_trajectory::TaskKey;

/// Something that was lost or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The task; `None` where the message names none, and for the index itself.
    pub task: Option<TaskKey>,
    /// What is wrong.
    pub kind: Kind,
    /// The event's index within the task, from 1.
    pub index: Option<u64>,
    /// The position in the stream, for `nats stream get`.
    pub sequence: Option<u64>,
    /// What was expected and what is there, for people.
    pub detail: String,
}

/// What is wrong with a message, a task, or the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The bytes are no event, or no record of the index.
    Unreadable,
    /// The bytes are others than were stored.
    Changed,
    /// Events between two others are not there, or the first ones.
    Missing,
    /// An event stands where it does not belong: inserted, repeated, or in another order.
    Misplaced,
    /// A message says another task or tenant than its subject.
    Foreign,
    /// An event's epoch is below that of an event before.
    Epoch,
    /// There are events after the task's end.
    AfterEnd,
    /// Written by a later release, whose events this one cannot read.
    Newer,
    /// The last events are not there: the index or the backup knows more.
    TailMissing,
    /// A task that was there has no events.
    TaskMissing,
    /// A task has events, and the index does not know it.
    NotInIndex,
    /// A task has ended, and the index does not say so.
    EndNotRecorded,
    /// A task has not ended, and is not in the queue: nobody goes on with it.
    NotQueued,
    /// A record of the index does not follow the one before it.
    IndexBroken,
    /// The oldest records of the index are not there, and nothing says why.
    IndexHeadMissing,
    /// The index ends before the record that the backup ends with.
    IndexTailMissing,
    /// The specification of one of the task's tools is not there.
    ToolMissing,
    /// An artifact that an event names is not there.
    ArtifactMissing,
    /// An artifact that an event names has other bytes than were stored.
    ArtifactChanged,
}

impl Kind {
    /// Its name for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Unreadable => "unreadable",
            Kind::Changed => "changed",
            Kind::Missing => "missing",
            Kind::Misplaced => "misplaced",
            Kind::Foreign => "foreign",
            Kind::Epoch => "epoch",
            Kind::AfterEnd => "after_end",
            Kind::Newer => "newer",
            Kind::TailMissing => "tail_missing",
            Kind::TaskMissing => "task_missing",
            Kind::NotInIndex => "not_in_index",
            Kind::EndNotRecorded => "end_not_recorded",
            Kind::NotQueued => "not_queued",
            Kind::IndexBroken => "index_broken",
            Kind::IndexHeadMissing => "index_head_missing",
            Kind::IndexTailMissing => "index_tail_missing",
            Kind::ToolMissing => "tool_missing",
            Kind::ArtifactMissing => "artifact_missing",
            Kind::ArtifactChanged => "artifact_changed",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Findings that are kept; those beyond are counted.
pub(crate) const MAX_FINDINGS: usize = 10_000;

/// What an audit has seen and found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Tasks with events.
    pub tasks: u64,
    /// Of them, those that have ended.
    pub ended: u64,
    /// Events.
    pub events: u64,
    /// Records of the index.
    pub records: u64,
    /// Artifacts that events name, with all their bytes.
    pub artifacts: u64,
    /// Tasks that were removed, with a record that says so.
    pub purged: u64,
    /// Submissions that were recorded and never stored: cut off before they were accepted.
    pub cut_off: u64,
    /// What is wrong, by task; at most ten thousand.
    pub findings: Vec<Finding>,
    /// How many findings there were beyond.
    pub more: u64,
}

//! Run control: what a person does to a task while it runs, and what the task asks of a person.

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::id::TaskId;

/// What a person may write to a task at once, in bytes.
pub const MAX_INPUT_BYTES: usize = 4096;
/// Of a caller's name in an event, in bytes.
pub const MAX_BY_BYTES: usize = 128;

/// A client stopped the task for a while. Nothing is begun until it is resumed, and the time does
/// not count.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paused {
    /// The caller's name.
    pub by: String,
    /// Why, in the caller's words; may be empty.
    pub reason: String,
}

/// A client lets a paused task go on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resumed {
    /// The caller's name.
    pub by: String,
}

/// What a person is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InputKind {
    /// The answer to a question of the group: it becomes the step's observation.
    Answer,
    /// Whether the step's action may be run.
    Approval,
    /// Something that this program does not know.
    Other,
}

impl InputKind {
    /// The kind's name for metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            InputKind::Answer => "answer",
            InputKind::Approval => "approval",
            InputKind::Other => "other",
        }
    }
}

/// The task waits for a person. It is not run meanwhile, and the time does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequested {
    /// The planning loop, from 1: whoever answers names it.
    pub step: u32,
    /// What is asked for.
    pub kind: InputKind,
    /// The tool that the step chose.
    pub tool: String,
    /// The group's question, or the parameters of the action that may be run.
    pub prompt: String,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputGiven {
    /// The step that asked.
    pub step: u32,
    /// What was asked for.
    pub kind: InputKind,
    /// The answer; of a refusal, why. At most [`MAX_INPUT_BYTES`].
    pub text: String,
    /// The action may be run.
    pub approved: bool,
    /// So may all later calls of its tool in this task.
    pub for_task: bool,
    /// The caller's name.
    pub by: String,
}

/// Which actions wait for a person's approval, from the least to the most. A tool that says so
/// itself always waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalPolicy {
    /// Those of tools that say so.
    #[default]
    Tools,
    /// Also those with an effect, once the group has read what a tool returned: such text may have
    /// been written by anybody, and chooses no effect by itself.
    Untrusted,
    /// All that are not read-only.
    Effects,
}

impl ApprovalPolicy {
    /// All of them, from the least to the most.
    pub const ALL: [ApprovalPolicy; 3] = [ApprovalPolicy::Tools, ApprovalPolicy::Untrusted, ApprovalPolicy::Effects];

    /// The policy's name in settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ApprovalPolicy::Tools => "tools",
            ApprovalPolicy::Untrusted => "untrusted",
            ApprovalPolicy::Effects => "effects",
        }
    }
}

/// Another task, whose history up to a step is the beginning of this one's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The other task, of the same tenant.
    pub task: TaskId,
    /// Its steps that are shared; the first step of this task's own is the next.
    pub steps: u32,
    /// Its events that are shared: the same number of this task's events, after the first, are
    /// copies.
    pub events: u32,
    /// SHA-256 of the stored bytes of the last of them; `None`: none is shared, or it has none.
    pub last: Option<Digest>,
}

//! Why an event does not continue its task.

use crate::tenant::TaskKey;

/// An event that does not continue its task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FoldError {
    /// There is no event at all.
    #[error("the trajectory is empty")]
    Empty,
    /// The first event is something else.
    #[error("a trajectory begins with `submitted`, this one with `{found}`")]
    NotSubmitted {
        /// The event's name.
        found: &'static str,
    },
    /// The event belongs to another task.
    #[error("the event belongs to task `{found}`, expected `{expected}`")]
    WrongTask {
        /// The folded task.
        expected: TaskKey,
        /// The event's.
        found: TaskKey,
    },
    /// The event was written after another one than the one that is stored before it.
    #[error("the event at index `{index}` does not follow the bytes stored before it")]
    Chain {
        /// The event's index.
        index: u64,
    },
    /// The event was written by a later program, and the task cannot go on without understanding
    /// it.
    #[error("the event at index `{index}` needs a program that reads schema version `{version}`; update this one")]
    Newer {
        /// The event's index.
        index: u64,
        /// The schema version it was written in.
        version: u32,
    },
    /// An event is missing or came twice.
    #[error("the event has index `{found}`, expected `{expected}`")]
    Gap {
        /// The next index.
        expected: u64,
        /// The event's.
        found: u64,
    },
    /// The bus gives sequences in rising order.
    #[error("the event has sequence `{found}`, expected one after `{last}`")]
    Sequence {
        /// Of the last event.
        last: u64,
        /// The event's.
        found: u64,
    },
    /// The event makes no sense now.
    #[error("`{event}` cannot follow while the task is {phase}")]
    Unexpected {
        /// The event's name.
        event: &'static str,
        /// Where the task stands.
        phase: &'static str,
    },
    /// A thought chose a tool that the task does not have.
    #[error("tool `{tool}` is not one of the task's tools")]
    UnknownTool {
        /// The tool's name.
        tool: String,
    },
    /// An action fills in another tool than the one chosen.
    #[error("the action is of tool `{found}`, Plan-Agent chose `{expected}`")]
    OtherTool {
        /// The chosen tool.
        expected: String,
        /// The action's.
        found: String,
    },
    /// A shortening that gives the agents nothing less, or cuts what is not there.
    #[error("the shortening does not fit the history: {0}")]
    Shortening(String),
    /// Approved without approval, or the other way round; or without an answer where nobody said so.
    #[error("`finished` says approved = `{approved}` with reason `{reason}`")]
    Approval {
        /// What it says.
        approved: bool,
        /// Its reason.
        reason: &'static str,
    },
}

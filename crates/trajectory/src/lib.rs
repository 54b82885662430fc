//! The domain of autoact: what a tool, a step and a trajectory are, the events a task is folded from, and what comes next. Plain data
//! and plain synchronous decisions; no I/O and no clock here.
//!
//! The names follow AutoAct section 2; `docs/architecture.md` has the table of the paper's symbols and ours.

mod convert;
mod convert_event;
mod decide;
mod event;
mod history;
mod id;
mod limits;
mod task;
mod tool;
mod usage;

pub use decide::{Decision, UNKNOWN_OUTCOME, decide};
pub use event::{EVENT_VERSION, Event, EventBody, EventError, FinishReason, Finished, Observation, Started, Submitted, Thought};
pub use history::{Action, Reflection, Step, Trajectory, Turn, Verdict};
pub use id::{InvalidTaskId, TaskId};
pub use limits::{InvalidSampling, Limits, Sampling};
pub use task::{FoldError, Phase, REPEATED_NOTE, Task};
pub use tool::{Effect, FINISH, ToolSpec};
pub use usage::{Timing, Usage};

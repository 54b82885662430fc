//! The domain of autoact: what a tool, a step and a trajectory are. Plain data and plain synchronous decisions; no I/O here.
//!
//! The names follow AutoAct section 2; `docs/architecture.md` has the table of the paper's symbols and ours.

mod convert;
mod history;
mod tool;

pub use history::{Action, Reflection, Step, Trajectory, Turn, Verdict};
pub use tool::{Effect, FINISH, ToolSpec};

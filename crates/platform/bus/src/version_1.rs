//! The streams of schema version 1, before tasks had tenants.

/// Every event of every task.
pub(crate) const TRAJECTORY: &str = "AUTOACT_TRAJECTORY";
/// Its subjects.
pub(crate) const TRAJECTORY_SUBJECTS: &str = "autoact.trajectory.*";
/// The work queue.
pub(crate) const TASKS: &str = "AUTOACT_TASKS";
/// One empty message per task, in order of submission.
pub(crate) const INDEX: &str = "AUTOACT_INDEX";

/// The subject of a task's events.
pub(crate) fn trajectory_subject(task: &str) -> String {
    format!("autoact.trajectory.{task}")
}

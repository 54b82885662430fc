//! The subjects of the bus: who writes them, and what is read out of them.

use autoact_trajectory::{TaskKey, Tenant};

/// Every event.
pub(crate) const ALL_TRAJECTORIES: &str = "autoact.*.traj.*";
/// Every record of the index.
pub(crate) const ALL_INDEX: &str = "autoact.*.index.*";
/// Every task in the queue.
pub(crate) const ALL_QUEUES: &str = "autoact.*.queue.*";
/// Every receipt.
pub(crate) const ALL_RECEIPTS: &str = "autoact.*.receipt.*";
/// Every entry of the outbox.
pub(crate) const ALL_OUTBOX: &str = "autoact.*.outbox.*.*";
/// Records about the index itself: no tenant and no task can be called so.
pub(crate) const INDEX_MARKS: &str = "autoact.=.index.=";

/// The records of a tenant.
pub(crate) fn index_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.index.*")
}

/// The events of a tenant.
pub(crate) fn trajectories_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.traj.*")
}

pub(crate) fn trajectory_subject(task: &TaskKey) -> String {
    format!("autoact.{}.traj.{}", task.tenant, task.id)
}

/// Where an event is repeated once it is stored.
pub(crate) fn events_subject(task: &TaskKey) -> String {
    format!("autoact.{}.events.{}", task.tenant, task.id)
}

pub(crate) fn queue_subject(task: &TaskKey) -> String {
    format!("autoact.{}.queue.{}", task.tenant, task.id)
}

/// What the queue's consumer of a tenant takes.
pub(crate) fn queue_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.queue.*")
}

pub(crate) fn index_subject(task: &TaskKey) -> String {
    format!("autoact.{}.index.{}", task.tenant, task.id)
}

/// All receipts of a task, in order.
pub(crate) fn receipt_subject(task: &TaskKey) -> String {
    format!("autoact.{}.receipt.{}", task.tenant, task.id)
}

/// Stands for the conversation of a task that has none: no conversation can be called so.
const NO_CONVERSATION: &str = "=";

pub(crate) fn outbox_subject(task: &TaskKey, conversation: &str) -> String {
    let conversation = if conversation.is_empty() { NO_CONVERSATION } else { conversation };
    format!("autoact.{}.outbox.{conversation}.{}", task.tenant, task.id)
}

/// What the outbox's consumer of a tenant takes.
pub(crate) fn outbox_of(tenant: &Tenant) -> String {
    format!("autoact.{tenant}.outbox.*.*")
}

/// What waits there of a conversation.
pub(crate) fn outbox_of_conversation(tenant: &Tenant, conversation: &str) -> String {
    format!("autoact.{tenant}.outbox.{conversation}.*")
}

/// The task of an entry with this subject.
pub(crate) fn outbox_task(subject: &str) -> Option<TaskKey> {
    let mut tokens = subject.split('.').skip(1);
    let tenant = tokens.next()?.parse().ok()?;
    let id = tokens.nth(2)?.parse().ok()?;
    tokens.next().is_none().then_some(TaskKey::new(tenant, id))
}

/// Where a task is told that it was ended from outside.
pub(crate) fn cancel_subject(task: &TaskKey) -> String {
    format!("autoact.{}.cancel.{}", task.tenant, task.id)
}

/// Every task's.
pub(crate) const ALL_CANCELS: &str = "autoact.*.cancel.*";

/// Where the words of a task's agents are told as they are written.
pub(crate) fn words_subject(task: &TaskKey) -> String {
    format!("autoact.{}.words.{}", task.tenant, task.id)
}

/// The task whose subject this is.
pub(crate) fn task_of(subject: &str) -> Option<TaskKey> {
    let mut tokens = subject.split('.').skip(1);
    let tenant = tokens.next()?.parse().ok()?;
    let id = tokens.nth(1)?.parse().ok()?;
    tokens.next().is_none().then_some(TaskKey::new(tenant, id))
}

//! Tells the memory service about ended tasks, from the outbox on the bus: what it has not
//! acknowledged is told again, by this gateway or another.

use std::sync::Arc;
use std::time::Duration;

use autoact_bus::{Bus, BusError, Entry, Outbox};
use autoact_planning::{Failure, FailureClass};
use autoact_telemetry::propagate;
use autoact_trajectory::{Task, TaskKey};
use autoact_wire::memory_v1::remember_request::Memory;
use autoact_wire::memory_v1::{ConversationTurn, ForgetRequest, TaskMemory};
use futures::StreamExt;
use prost::Message;
use tracing::Instrument;

use crate::agents::remote::MemoryService;

/// Entries on their way to memory at a time.
const PARALLEL: usize = 16;
/// How long one call may take. Two of them are well below the time after which an entry is delivered
/// again.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// The first pause before an entry is delivered again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest one: how late memory hears of a task after it is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Puts ended tasks into the outbox; cheap to clone.
#[derive(Clone)]
pub(crate) struct Rememberer {
    /// `None`: there is no memory.
    bus: Option<Bus>,
}

impl Rememberer {
    pub(crate) fn new(bus: Option<Bus>) -> Rememberer {
        Rememberer { bus }
    }

    /// Returns once the bus has it. A task without an answer leaves no memory; the same task twice
    /// is one. A full outbox drops it: the task's end must not wait for a memory that is away for
    /// days.
    ///
    /// # Errors
    /// The bus cannot be reached.
    pub(crate) async fn remember(&self, task: &Task) -> Result<(), BusError> {
        let (Some(bus), Some(memory)) = (&self.bus, memory(task)) else { return Ok(()) };
        // boxed: it happens once, and its state would be part of every step
        match Box::pin(bus.put_into_outbox(task.key(), task.conversation(), memory.encode_to_vec())).await {
            Err(error @ (BusError::Full { .. } | BusError::MessageTooLarge { .. })) => {
                tracing::error!(task = %task.key(), %error, "not remembered");
                metrics::counter!("autoact_memories_total", "outcome" => "dropped").increment(1);
                Ok(())
            }
            put => put,
        }
    }
}

/// Makes memory forget tasks; cheap to clone.
#[derive(Clone)]
pub(crate) struct Forgetter {
    service: Arc<dyn MemoryService>,
}

impl Forgetter {
    pub(crate) fn new(service: Arc<dyn MemoryService>) -> Forgetter {
        Forgetter { service }
    }

    /// Returns once memory knows nothing of the task. What has yet to be told of it stays forgotten
    /// when it comes.
    ///
    /// # Errors
    /// Memory did not answer.
    pub(crate) async fn forget(&self, task: &TaskKey) -> Result<(), Failure> {
        let request = ForgetRequest { id: task.id.to_string(), tenant: task.tenant.to_string(), ..ForgetRequest::default() };
        self.service.forget(request, CALL_LIMIT).await
    }
}

/// Tells memory what is in an outbox, for as long as the service runs.
pub(crate) async fn deliver(outbox: Outbox, service: Arc<dyn MemoryService>) {
    let entries = futures::stream::unfold(outbox, |mut outbox| async { Some((outbox.next().await, outbox)) });
    entries
        .for_each_concurrent(PARALLEL, |entry| {
            let span = tracing::info_span!("remember", otel.kind = "client", autoact.deliveries = entry.deliveries());
            propagate::adopt(&span, |name| entry.header(name));
            tell(entry, service.as_ref()).instrument(span)
        })
        .await;
}

async fn tell(entry: Entry, service: &dyn MemoryService) {
    let told = match TaskMemory::decode(entry.payload()) {
        Ok(memory) => tell_both(memory, service).await,
        Err(error) => Err(Failure::new(FailureClass::Refused, "the outbox", error)),
    };
    let outcome = match &told {
        Ok(()) => Some("stored"),
        // whatever is sent: memory will not have it
        Err(failure) if failure.class == FailureClass::Refused => Some("failed"),
        Err(_) => None,
    };
    let task = entry.task().map(ToString::to_string).unwrap_or_default();
    if let Err(failure) = &told {
        let deliveries = entry.deliveries();
        tracing::warn!(task, deliveries, failure = failure.chain(), "not remembered{}", if outcome.is_none() { " yet" } else { "" });
    }
    let settled = match outcome {
        Some(outcome) => {
            metrics::counter!("autoact_memories_total", "outcome" => outcome).increment(1);
            entry.done().await
        }
        None => {
            let pause = pause(entry.deliveries());
            entry.later(pause).await
        }
    };
    if let Err(error) = settled {
        tracing::debug!(task, %error, "the outbox was not told; memory hears of the task again");
    }
}

/// As a task and, in a conversation, as a turn. Memory knows both by the task's id: being told twice
/// changes nothing. The task first: a memory of an earlier release has no turns.
async fn tell_both(memory: TaskMemory, service: &dyn MemoryService) -> Result<(), Failure> {
    let TaskMemory { tenant, conversation_id, task_id, question, answer, approved, finished_at, steps: _ } = memory.clone();
    service.remember(Memory::Task(memory), CALL_LIMIT).await?;
    if conversation_id.is_empty() {
        return Ok(());
    }
    let turn = ConversationTurn { tenant, conversation_id, task_id, question, answer, approved, finished_at };
    service.remember(Memory::Turn(turn), CALL_LIMIT).await
}

fn pause(deliveries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << deliveries.clamp(1, 10).saturating_sub(1)).min(LONGEST_PAUSE)
}

fn memory(task: &Task) -> Option<TaskMemory> {
    let finished = task.finished().filter(|finished| !finished.answer.trim().is_empty())?;
    Some(TaskMemory {
        tenant: task.key().tenant.to_string(),
        task_id: task.id().to_string(),
        question: task.trajectory().question.clone(),
        answer: finished.answer.clone(),
        approved: finished.approved,
        steps: task.steps(),
        finished_at: task.finished_at().map(Into::into),
        conversation_id: task.conversation().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        assert_eq!([1, 2, 3, 9].map(|deliveries| pause(deliveries).as_secs()), [1, 2, 4, 15]);
    }
}

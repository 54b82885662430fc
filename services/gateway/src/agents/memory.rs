//! Tells the memory service about ended tasks: in the background, bounded, as well as it can.

use std::sync::Arc;
use std::time::Duration;

use autoact_service::Tasks;
use autoact_trajectory::Task;
use autoact_wire::memory_v1;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::Instrument;

use crate::agents::patience::Patience;
use crate::agents::remote::MemoryService;

/// Memories on their way at a time; beyond that the memory service is gone or far behind.
const MAX_PENDING: usize = 64;
/// How long one memory is tried for.
const LIMIT: Duration = Duration::from_secs(30);
/// How long one attempt may take.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// What is still on its way when the service stops.
const LAST_LIMIT: Duration = Duration::from_secs(1);

/// Remembers ended tasks; cheap to clone.
#[derive(Clone)]
pub(crate) struct Rememberer {
    service: Option<Arc<dyn MemoryService>>,
    tasks: Tasks,
    slots: Arc<Semaphore>,
}

impl Rememberer {
    pub(crate) fn new(service: Option<Arc<dyn MemoryService>>, tasks: Tasks) -> Rememberer {
        Rememberer { service, tasks, slots: Arc::new(Semaphore::new(MAX_PENDING)) }
    }

    /// Returns at once. A task without an answer leaves no memory; the same task twice is one.
    pub(crate) fn remember(&self, task: &Task) {
        let (Some(service), Some(memory)) = (self.service.clone(), memory(task)) else { return };
        let Ok(slot) = self.slots.clone().try_acquire_owned() else {
            tracing::warn!(task = %task.id(), "not remembered: the memory service is behind");
            metrics::counter!("autoact_memories_total", "outcome" => "dropped").increment(1);
            return;
        };
        let work = async move {
            let task = memory.task_id.clone();
            let patience = Patience { deadline: Instant::now() + LIMIT, away: LIMIT, call: CALL_LIMIT, repeatable: true };
            let outcome = match patience.call(|attempt| service.remember(memory.clone(), attempt.limit)).await {
                Ok(()) => "stored",
                Err(failure) => {
                    tracing::warn!(task, failure = failure.chain(), "not remembered");
                    "failed"
                }
            };
            metrics::counter!("autoact_memories_total", "outcome" => outcome).increment(1);
            drop(slot);
        };
        let work = work.instrument(tracing::info_span!("remember", otel.kind = "client"));
        self.tasks.spawn_until_stopped("remember", |stopping| async move {
            tokio::select! {
                () = work => {}
                () = async { stopping.cancelled().await; tokio::time::sleep(LAST_LIMIT).await } => {}
            }
        });
    }
}

fn memory(task: &Task) -> Option<memory_v1::TaskMemory> {
    let finished = task.finished().filter(|finished| !finished.answer.trim().is_empty())?;
    Some(memory_v1::TaskMemory {
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

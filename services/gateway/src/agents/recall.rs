//! Recalls what is remembered of a conversation, within a bound on time.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use autoact_bus::Bus;
use autoact_planning::{Failure, FailureClass, Memories};
use autoact_trajectory::{Recalled, RecalledItem, RecalledKind, Task};
use autoact_wire::memory_v1::{ConversationTurn, MemoryKind, RecallRequest, RecalledMemory, TaskMemory, recalled_memory};
use tokio::time::Instant;
use tracing::Instrument;

use crate::agents::patience::Patience;
use crate::agents::remote::MemoryService;
use crate::config::RecallConfig;

/// How often the outbox is looked into while something of the conversation waits in it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What memory knows of conversations.
pub(crate) struct Conversations {
    pub(crate) service: Arc<dyn MemoryService>,
    pub(crate) bus: Bus,
    pub(crate) config: RecallConfig,
}

#[async_trait]
impl Memories for Conversations {
    async fn recall(&self, task: &Task, time_left: Duration) -> Recalled {
        let limit = self.config.timeout.min(time_left);
        let span = tracing::info_span!(
            "recall",
            otel.kind = "client",
            gen_ai.conversation.id = task.id().as_str(),
            autoact.recalled = tracing::field::Empty,
            autoact.left_out = tracing::field::Empty,
            "error.type" = tracing::field::Empty,
        );
        let began = Instant::now();
        let found = tokio::time::timeout(limit, self.ranked(task, began + limit)).instrument(span.clone()).await;
        let (recalled, outcome) = match found {
            Ok(Ok(ranked)) => (Recalled::boxed(ranked, self.config.max_bytes), "ok"),
            Ok(Err(failure)) => {
                span.record("error.type", failure.class.as_str());
                let failure = match failure.class {
                    FailureClass::TimedOut => format!("{} did not answer within {limit:?}", failure.who),
                    _ => failure.chain(),
                };
                (Recalled::failed(failure), "failed")
            }
            Err(_) => {
                span.record("error.type", "timed_out");
                (Recalled::failed(format!("memory did not answer within {limit:?}")), "failed")
            }
        };
        metrics::histogram!("autoact_recall_seconds", "outcome" => outcome).record(began.elapsed().as_secs_f64());
        for kind in [RecalledKind::Turn, RecalledKind::Task] {
            let count = recalled.items.iter().filter(|item| item.kind == kind).count() as u64;
            metrics::counter!("autoact_recalled_items_total", "kind" => kind.as_str()).increment(count);
        }
        metrics::counter!("autoact_recalled_left_out_total").increment(u64::from(recalled.left_out));
        span.record("autoact.recalled", recalled.items.len());
        span.record("autoact.left_out", recalled.left_out);
        if !recalled.failure.is_empty() {
            let _entered = span.enter();
            tracing::warn!(task = %task.key(), failure = recalled.failure, "nothing was recalled; the task goes on without");
        }
        recalled
    }
}

impl Conversations {
    /// What memory finds, in order of rank: the last turn, the turns that fit the question, the turns
    /// next to these, the tasks.
    async fn ranked(&self, task: &Task, deadline: Instant) -> Result<Vec<RecalledItem>, Failure> {
        self.wait_for_the_turn_before(task, deadline).await;
        let limit = deadline.saturating_duration_since(Instant::now());
        // memory that restarts is back within the limit
        let patience = Patience { deadline, away: limit, call: limit };
        let RecallConfig { turns, neighbours, tasks, half_life, .. } = self.config;
        let request = |kind: MemoryKind, limit| RecallRequest {
            kind: kind as i32,
            query: task.trajectory().question.clone(),
            limit,
            tenant: task.key().tenant.to_string(),
            conversation_id: task.conversation().to_owned(),
            ..RecallRequest::default()
        };
        let ask = async |wanted: u32, request: RecallRequest| match wanted {
            0 => Ok(Vec::new()),
            _ => patience.call(|attempt| self.service.recall(request.clone(), attempt.limit)).await,
        };
        let of_turns = RecallRequest { neighbours, latest: true, ..request(MemoryKind::Conversation, turns) };
        let of_tasks = RecallRequest { half_life, approved_only: true, ..request(MemoryKind::Task, tasks) };
        let (turns, tasks) = tokio::try_join!(ask(turns, of_turns), ask(tasks, of_tasks))?;
        let items = turns.into_iter().chain(tasks).filter_map(item);
        // it was taken up before, or another task had its id
        Ok(items.filter(|item| item.task_id != task.id().as_str()).collect())
    }

    /// Memory may have yet to hear of the turn that was answered a moment ago: that is waited for,
    /// for half the time there is.
    async fn wait_for_the_turn_before(&self, task: &Task, deadline: Instant) {
        let until = Instant::now() + deadline.saturating_duration_since(Instant::now()) / 2;
        while Instant::now() < until {
            match self.bus.waits_in_outbox(&task.key().tenant, task.conversation()).await {
                Ok(true) => tokio::time::sleep(LOOK_EVERY).await,
                Ok(false) => return,
                Err(error) => {
                    tracing::debug!(%error, "the outbox was not looked into");
                    return;
                }
            }
        }
    }
}

fn item(recalled: RecalledMemory) -> Option<RecalledItem> {
    let score = f64::from(recalled.score);
    let (kind, task_id, question, answer, approved, finished_at) = match recalled.memory? {
        recalled_memory::Memory::Turn(ConversationTurn { task_id, question, answer, approved, finished_at, .. }) => {
            (RecalledKind::Turn, task_id, question, answer, approved, finished_at)
        }
        recalled_memory::Memory::Task(TaskMemory { task_id, question, answer, approved, finished_at, .. }) => {
            (RecalledKind::Task, task_id, question, answer, approved, finished_at)
        }
    };
    let finished_at = finished_at.and_then(|time| SystemTime::try_from(time).ok());
    Some(RecalledItem { kind, task_id, question, answer, approved, finished_at, score })
}

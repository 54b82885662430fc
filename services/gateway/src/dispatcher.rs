//! The supervisor of all task actors: holds their leases, and settles each when its actor has ended, however it ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use autoact_bus::Lease;
use autoact_telemetry::propagate;
use autoact_trajectory::TaskId;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::task::TaskTracker;

use crate::actor::{TaskActor, TaskState};
use crate::run::{GiveBack, Outcome, Run, Shared, Signal};

/// The first pause before a task is delivered again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest one.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// For a task that is only moving to another gateway.
const MOVE_PAUSE: Duration = Duration::from_millis(50);

/// Starts and supervises task actors.
pub(crate) struct Dispatcher {
    pub(crate) shared: Arc<Shared>,
    /// How many tasks run here, their settling included.
    pub(crate) running: watch::Sender<usize>,
    /// Acknowledgements on their way.
    pub(crate) settling: TaskTracker,
}

pub(crate) enum Message {
    /// Run the task of this lease; the permit is its place among the running ones.
    Run(Lease, OwnedSemaphorePermit),
    /// A task may have been ended from outside.
    Look(TaskId),
    /// Give back what still runs.
    GiveBack,
}

/// What a running task holds.
pub(crate) struct Running {
    lease: Lease,
    permit: OwnedSemaphorePermit,
    signals: watch::Sender<Signal>,
}

pub(crate) type State = HashMap<ActorId, Running>;

impl Actor for Dispatcher {
    type Msg = Message;
    type State = State;
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Message>, (): ()) -> Result<State, ActorProcessingErr> {
        Ok(HashMap::new())
    }

    async fn handle(&self, myself: ActorRef<Message>, message: Message, state: &mut State) -> Result<(), ActorProcessingErr> {
        match message {
            Message::Run(lease, permit) => self.start(myself, lease, permit, state).await,
            Message::Look(task) => {
                for running in state.values().filter(|running| *running.lease.task_id() == task) {
                    running.signals.send_replace(Signal::Look);
                }
            }
            Message::GiveBack => {
                for running in state.values() {
                    running.signals.send_replace(Signal::GiveBack);
                }
            }
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<Message>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let (actor, outcome) = match event {
            SupervisionEvent::ActorTerminated(actor, ended, _) => {
                let outcome = ended.and_then(|mut ended| ended.take::<TaskState>().ok()).and_then(|ended| ended.outcome);
                (actor, outcome.unwrap_or(Outcome::GiveBack(GiveBack::Died("it was stopped".to_owned()))))
            }
            SupervisionEvent::ActorFailed(actor, error) => {
                metrics::counter!("autoact_task_actor_failures_total").increment(1);
                (actor, Outcome::GiveBack(GiveBack::Died(error.to_string())))
            }
            _ => return Ok(()),
        };
        if let Some(running) = state.remove(&actor.get_id()) {
            self.settle(running, outcome);
        }
        Ok(())
    }
}

impl Dispatcher {
    async fn start(&self, myself: ActorRef<Message>, lease: Lease, permit: OwnedSemaphorePermit, state: &mut State) {
        let task = lease.task_id().clone();
        let span = tracing::info_span!(
            "invoke_workflow",
            otel.name = "invoke_workflow autoact",
            gen_ai.operation.name = "invoke_workflow",
            gen_ai.workflow.name = "autoact",
            gen_ai.conversation.id = task.as_str(),
            autoact.attempt = lease.attempt(),
        );
        // the trace of whoever submitted the task goes on here
        propagate::adopt(&span, |name| lease.header(name));
        let (signals, told) = watch::channel(Signal::GoOn);
        let run = Run::new(self.shared.clone(), task, lease.attempt(), told);
        let running = Running { lease, permit, signals };
        self.running.send_modify(|running| *running += 1);
        metrics::gauge!("autoact_tasks_running").increment(1.0);
        match TaskActor::spawn_linked(None, TaskActor, (run, span), myself.get_cell()).await {
            Ok((actor, _)) => {
                state.insert(actor.get_id(), running);
            }
            Err(error) => self.settle(running, Outcome::GiveBack(GiveBack::Died(error.to_string()))),
        }
    }

    /// Does with the lease what the outcome says, beside the other work.
    fn settle(&self, running: Running, outcome: Outcome) {
        let counter = self.running.clone();
        self.settling.spawn(async move {
            let Running { lease, permit, .. } = running;
            let task = lease.task_id().clone();
            let attempt = lease.attempt();
            let settled = match outcome {
                Outcome::Ended => lease.ack().await,
                Outcome::Lost => {
                    tracing::info!(%task, "another gateway goes on with the task");
                    Ok(())
                }
                Outcome::GiveBack(reason) => {
                    let pause = pause(attempt, &reason);
                    tracing::warn!(%task, attempt, ?pause, reason = crate::run::chain(&reason), "the task is given back");
                    lease.nak(pause).await
                }
                Outcome::Abandon(reason) => {
                    tracing::error!(%task, reason, "the task cannot be run; it leaves the queue");
                    lease.ack().await
                }
            };
            if let Err(error) = settled {
                tracing::warn!(%task, %error, "the queue was not told; the task is delivered again when its lease has run out");
            }
            drop(permit);
            counter.send_modify(|running| *running = running.saturating_sub(1));
            metrics::gauge!("autoact_tasks_running").decrement(1.0);
        });
    }
}

fn pause(attempt: u32, reason: &GiveBack) -> Duration {
    match reason {
        GiveBack::Draining => MOVE_PAUSE,
        _ => FIRST_PAUSE.saturating_mul(1 << attempt.clamp(1, 10).saturating_sub(1)).min(MAX_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let died = GiveBack::Died("x".to_owned());
        let pauses: Vec<u128> = [1, 2, 3, 20].into_iter().map(|attempt| pause(attempt, &died).as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 30_000]);
        assert_eq!(pause(3, &GiveBack::Draining), MOVE_PAUSE);
    }
}

//! The supervisor of all task actors: holds their leases, and settles each when its actor has
//! ended, however it ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use autoact_base::error::chain;
use autoact_bus::{Bus, BusError, Lease};
use autoact_telemetry::propagate;
use autoact_trajectory::{Task, TaskKey};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_util::task::TaskTracker;

use crate::run::actor::{TaskActor, TaskState};
use crate::run::runner::{GiveBack, Outcome, Runner, Signal};
use crate::run::{MAX_WAIT, RunContext};

/// The first pause before a task is delivered again.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest one.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// For a task that is only moving to another gateway.
const MOVE_PAUSE: Duration = Duration::from_millis(50);

/// Starts and supervises task actors.
pub(crate) struct Dispatcher {
    pub(crate) context: Arc<RunContext>,
    /// How many tasks run here, their settling included.
    pub(crate) running: watch::Sender<usize>,
    /// Acknowledgements on their way.
    pub(crate) settling: TaskTracker,
}

pub(crate) enum Message {
    /// Run the task of this lease; the permit is its place among the running ones.
    Run(Lease, OwnedSemaphorePermit),
    /// A task may have been ended or paused from outside.
    Look(TaskKey),
    /// Give back what still runs.
    GiveBack,
}

/// What a running task holds.
pub(crate) struct Running {
    lease: Lease,
    permit: OwnedSemaphorePermit,
    signals: watch::Sender<Signal>,
}

impl Running {
    /// Wakes the runner. What was said before is not taken back by something lesser.
    fn tell(&self, signal: Signal) {
        self.signals.send_modify(|told| *told = signal.max(*told));
    }
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
                for running in state.values().filter(|running| *running.lease.task() == task) {
                    running.tell(Signal::Look);
                }
            }
            Message::GiveBack => {
                for running in state.values() {
                    running.tell(Signal::GiveBack);
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
        let task = lease.task().clone();
        let span = tracing::info_span!(
            "invoke_workflow",
            otel.name = "invoke_workflow autoact",
            gen_ai.operation.name = "invoke_workflow",
            gen_ai.workflow.name = "autoact",
            gen_ai.conversation.id = task.id.as_str(),
            autoact.deliveries = lease.deliveries(),
        );
        // the trace of whoever submitted the task goes on here
        propagate::adopt(&span, |name| lease.header(name));
        let (signals, told) = watch::channel(Signal::GoOn);
        let runner = Runner::new(self.context.clone(), task, told);
        let running = Running { lease, permit, signals };
        self.running.send_modify(|running| *running += 1);
        metrics::gauge!("autoact_tasks_running").increment(1.0);
        match TaskActor::spawn_linked(None, TaskActor, (runner, span), myself.get_cell()).await {
            Ok((actor, _)) => {
                state.insert(actor.get_id(), running);
            }
            Err(error) => self.settle(running, Outcome::GiveBack(GiveBack::Died(error.to_string()))),
        }
    }

    /// Does with the lease what the outcome says, beside the other work.
    fn settle(&self, running: Running, outcome: Outcome) {
        let (counter, bus) = (self.running.clone(), self.context.bus.clone());
        self.settling.spawn(async move {
            let Running { lease, permit, .. } = running;
            let task = lease.task().clone();
            let deliveries = lease.deliveries();
            let settled = match outcome {
                Outcome::Ended => match bus.record_ended(&task).await {
                    Ok(()) => lease.ack().await,
                    // the next holder finds the task ended, and records it
                    Err(error) => Err(error),
                },
                Outcome::Held => match lease.ack().await {
                    Ok(()) => requeue(&bus, &task).await,
                    Err(error) => Err(error),
                },
                Outcome::Lost => {
                    tracing::info!(%task, "another gateway goes on with the task");
                    Ok(())
                }
                Outcome::GiveBack(reason) => {
                    let pause = pause(deliveries, &reason);
                    let why = chain(&reason);
                    match reason {
                        GiveBack::Draining | GiveBack::Waiting(_) => {
                            tracing::info!(%task, deliveries, ?pause, reason = why, "the task is given back")
                        }
                        GiveBack::Unreadable(_) => {
                            metrics::counter!("autoact_tasks_unreadable_total").increment(1);
                            tracing::error!(%task, deliveries, ?pause, reason = why, "the task is left to a gateway that can read it")
                        }
                        _ => tracing::warn!(%task, deliveries, ?pause, reason = why, "the task is given back"),
                    }
                    lease.nak(pause).await
                }
                Outcome::Gone => match bus.record_loss(&task).await {
                    Ok(lost) => {
                        if lost {
                            metrics::counter!("autoact_tasks_lost_total").increment(1);
                            tracing::error!(%task, "the task was accepted, and its events are not there; it leaves the queue");
                        } else {
                            tracing::info!(%task, "the task was removed; it leaves the queue");
                        }
                        lease.ack().await
                    }
                    Err(error) => Err(error),
                },
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

/// Queues a task that has left the queue because it was held back, if it is not held back any more:
/// whoever let it go on may have found it in the queue still.
async fn requeue(bus: &Bus, task: &TaskKey) -> Result<(), BusError> {
    let goes_on = Task::fold(&bus.load(task).await?).is_ok_and(|task| task.finished().is_none() && !task.is_held());
    if goes_on {
        bus.enqueue(task).await?;
    } else {
        tracing::info!(%task, "the task waits for a person");
    }
    Ok(())
}

fn pause(deliveries: u32, reason: &GiveBack) -> Duration {
    let grown = FIRST_PAUSE.saturating_mul(1 << deliveries.clamp(1, 10).saturating_sub(1));
    match reason {
        GiveBack::Draining => MOVE_PAUSE,
        GiveBack::Waiting(_) => grown.min(MAX_WAIT),
        _ => grown.min(MAX_PAUSE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound() {
        let died = GiveBack::Died("x".to_owned());
        let pauses: Vec<u128> = [1, 2, 3, 20].into_iter().map(|deliveries| pause(deliveries, &died).as_millis()).collect();
        assert_eq!(pauses, [500, 1000, 2000, 30_000]);
        assert_eq!(pause(3, &GiveBack::Draining), MOVE_PAUSE);
        assert_eq!(pause(20, &GiveBack::Waiting("x".to_owned())), MAX_WAIT);
    }
}

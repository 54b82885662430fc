//! One task, run: replay its events, then drive it. The actor around it ([`crate::run::actor`])
//! adds supervision.

use std::sync::Arc;
use std::time::Instant;

use autoact_bus::{Bus, BusError};
use autoact_planning::{Driver, DriverOptions, Progress, Stop};
use autoact_trajectory::{EventBody, FinishReason, FoldError, Phase, Receipts, ReleaseReason, Task, TaskKey};
use tokio::sync::watch;

use crate::run::RunContext;
use crate::run::copy::{self, CopyError};
use crate::run::log::{JetStreamLog, append};

/// What a runner is told while it waits for an agent. A later one never hides a greater one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Signal {
    /// Nothing.
    GoOn,
    /// The task may have been ended or paused from outside: look.
    Look,
    /// Stop here; another gateway goes on.
    GiveBack,
}

/// How a run ends.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The task has ended, here or elsewhere: its lease is done.
    Ended,
    /// Another gateway has gone on with the task: the lease is its own.
    Lost,
    /// The task waits for a person, and leaves the queue meanwhile.
    Held,
    /// The task has to be taken up again.
    GiveBack(GiveBack),
    /// There is no task: nothing was stored, or it has expired.
    Gone,
}

/// Why a task is given back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GiveBack {
    #[error("this gateway is shutting down")]
    Draining,
    #[error("it waits: {0}")]
    Waiting(String),
    #[error(transparent)]
    Bus(BusError),
    /// Events that this program cannot read, or that do not follow each other: another gateway may
    /// be able to go on.
    #[error("this gateway cannot read it")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("its actor died: {0}")]
    Died(String),
}

impl From<BusError> for GiveBack {
    fn from(error: BusError) -> Self {
        match error {
            error @ (BusError::Unreadable { .. } | BusError::MissingTool { .. }) => GiveBack::Unreadable(Box::new(error)),
            error => GiveBack::Bus(error),
        }
    }
}

impl From<FoldError> for GiveBack {
    fn from(error: FoldError) -> Self {
        GiveBack::Unreadable(Box::new(error))
    }
}

/// A task being run.
pub(crate) struct Runner {
    context: Arc<RunContext>,
    key: TaskKey,
    signals: watch::Receiver<Signal>,
    driver: Option<Driver<JetStreamLog>>,
}

impl Runner {
    pub(crate) fn new(context: Arc<RunContext>, key: TaskKey, signals: watch::Receiver<Signal>) -> Runner {
        Runner { context, key, signals, driver: None }
    }

    /// Does the next thing; `None` while there is more to do.
    pub(crate) async fn advance(&mut self) -> Option<Outcome> {
        // boxed: it happens once
        let Some(driver) = &mut self.driver else { return Box::pin(self.take_up()).await };
        // also true for a signal that came before, while an event was stored
        let signals = &mut self.signals;
        let signal = async {
            if signals.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        match driver.step(signal).await {
            Ok(Progress::Advanced) => None,
            Ok(Progress::Ended | Progress::Answered) => Some(self.ended().await),
            Ok(Progress::Held) => Some(Outcome::Held),
            Ok(Progress::Interrupted) => self.interrupted().await,
            Ok(Progress::Waiting(failure)) => {
                let draining = self.context.draining.is_cancelled();
                // the agents stop too, it seems; the next gateway has its own
                let (reason, why) = match draining {
                    true => (ReleaseReason::Draining, GiveBack::Draining),
                    false => (ReleaseReason::Waiting, GiveBack::Waiting(failure.chain())),
                };
                self.release(reason, &failure.chain(), failure.class.may_have_run()).await;
                Some(Outcome::GiveBack(why))
            }
            Err(Stop::Log(error @ BusError::TooLarge(_))) => Some(self.too_large(&error).await),
            Err(stop) => Some(self.stopped(stop).await),
        }
    }

    /// An event cannot be stored, now or later: the task ends, because every other attempt would
    /// end here too.
    async fn too_large(&mut self, error: &BusError) -> Outcome {
        let Some(driver) = &mut self.driver else { return Outcome::Lost };
        match driver.fail(&error.to_string()).await {
            Ok(()) => self.ended().await,
            Err(stop) => self.stopped(stop).await,
        }
    }

    /// Replays the events and says that this gateway goes on with them.
    async fn take_up(&mut self) -> Option<Outcome> {
        let began = Instant::now();
        let events = match self.context.bus.load(&self.key).await {
            Ok(events) if events.is_empty() => return Some(Outcome::Gone),
            Ok(events) => events,
            Err(error) => return Some(Outcome::GiveBack(error.into())),
        };
        let task = match Task::fold(&events) {
            Ok(task) => task,
            // its beginning has expired
            Err(FoldError::NotSubmitted { .. }) if events.first().is_some_and(|first| first.index > 1) => return Some(Outcome::Gone),
            Err(error) => return Some(Outcome::GiveBack(error.into())),
        };
        if task.finished().is_some() {
            return Some(self.remembered(&task).await);
        }
        if task.is_held() {
            return Some(Outcome::Held);
        }
        let task = match copy::history(&self.context.bus, &self.context.writer, task).await {
            Ok(task) => task,
            Err(CopyError::Gone(task)) => return Some(self.end(*task, FinishReason::Failed, copy::GONE).await),
            Err(CopyError::Bus(error)) => return Some(self.stopped(Stop::Log(error)).await),
            Err(CopyError::Fold(error)) => return Some(Outcome::GiveBack(error.into())),
        };
        // whoever held it before starts nothing any more
        if let Err(error) = fence(&self.context.bus, &task).await {
            return Some(Outcome::GiveBack(error.into()));
        }
        let given_up = task.fruitless_attempts() >= self.context.max_attempts;
        let (agents, writer) = (self.context.agents.clone(), self.context.writer.clone());
        if given_up {
            return Some(self.give_up(task).await);
        }
        let log = JetStreamLog { bus: self.context.bus.clone() };
        let options = DriverOptions { writer, judgements: None };
        let now = self.context.bus.now();
        match Driver::take_up_at(agents, log, options, task, began.elapsed(), now).await {
            Ok(driver) => {
                self.driver = Some(driver);
                None
            }
            Err(stop) => Some(self.stopped(stop).await),
        }
    }

    /// Ends a task that was taken up again and again without getting any further.
    async fn give_up(&self, task: Task) -> Outcome {
        let attempts = task.fruitless_attempts();
        let detail = format!("given up after {attempts} attempt(s) without progress; the logs of the gateways say what went wrong");
        self.end(task, FinishReason::Failed, &detail).await
    }

    /// Ends a task that is not taken up.
    async fn end(&self, mut task: Task, reason: FinishReason, detail: &str) -> Outcome {
        let finished = task.finish(reason, detail);
        let mut event = task.next_event(self.context.bus.now(), &self.context.writer, EventBody::Finished(finished));
        match append(&self.context.bus, &event, task.last_sequence()).await {
            Ok(stored) => (event.sequence, event.digest) = (stored.sequence, stored.digest),
            Err(error) => return self.stopped(Stop::Log(error)).await,
        }
        if let Err(error) = task.apply(&event) {
            return Outcome::GiveBack(error.into());
        }
        count_end(&task);
        self.remembered(&task).await
    }

    /// A signal came while an agent was asked.
    async fn interrupted(&mut self) -> Option<Outcome> {
        if *self.signals.borrow_and_update() == Signal::GiveBack {
            let acting = self.driver.as_ref().is_some_and(|driver| driver.task().phase() == Phase::Acting);
            self.release(ReleaseReason::Draining, "", acting).await;
            return Some(Outcome::GiveBack(GiveBack::Draining));
        }
        let known = self.driver.as_ref().map_or(0, |driver| driver.task().last_sequence());
        match self.context.bus.last(&self.key).await {
            Ok(Some(event)) if event.sequence == known => None,
            Ok(_) => Some(self.after_conflict().await),
            Err(error) => Some(Outcome::GiveBack(error.into())),
        }
    }

    /// Says that the task is given back on purpose. If that cannot be stored, the next holder takes
    /// it for a crash, which harms nothing.
    async fn release(&mut self, reason: ReleaseReason, detail: &str, may_have_run: bool) {
        let Some(driver) = &mut self.driver else { return };
        metrics::counter!("autoact_tasks_released_total", "reason" => reason.as_str()).increment(1);
        if let Err(error) = driver.release(reason, detail, may_have_run).await {
            tracing::debug!(task = %self.key, %error, "the release was not stored");
        }
    }

    async fn stopped(&self, stop: Stop<BusError>) -> Outcome {
        match stop {
            Stop::Log(BusError::Conflict { .. }) => self.after_conflict().await,
            Stop::Log(error) => Outcome::GiveBack(error.into()),
            Stop::Fold(error) => Outcome::GiveBack(error.into()),
        }
    }

    /// Somebody else wrote: they ended the task, paused it, or they run it.
    async fn after_conflict(&self) -> Outcome {
        match self.context.bus.last(&self.key).await {
            Ok(Some(event)) if matches!(event.body, EventBody::Finished(_)) => Outcome::Ended,
            Ok(Some(event)) if matches!(event.body, EventBody::Paused(_) | EventBody::Resumed(_) | EventBody::InputGiven(_)) => {
                Outcome::Held
            }
            Ok(_) => Outcome::Lost,
            Err(error) => Outcome::GiveBack(error.into()),
        }
    }

    /// The task ended here.
    async fn ended(&self) -> Outcome {
        let Some(driver) = &self.driver else { return Outcome::Ended };
        count_end(driver.task());
        self.remembered(driver.task()).await
    }

    /// The lease of an ended task is done once memory is sure to hear of it. Until then the task is
    /// delivered again, here or elsewhere.
    async fn remembered(&self, task: &Task) -> Outcome {
        match self.context.memory.remember(task).await {
            Ok(()) => Outcome::Ended,
            Err(error) => Outcome::GiveBack(error.into()),
        }
    }
}

/// Sees to it that those who held the task's lease until now start no effect any more, and returns
/// what its receipts say. A task whose tools change nothing has none, nor has one that nobody held.
pub(crate) async fn fence(bus: &Bus, task: &Task) -> Result<Option<Receipts>, BusError> {
    if task.epoch() == 0 || !task.has_effects() {
        return Ok(None);
    }
    let known = bus.receipts().await?.fence(task.key(), task.epoch() + 1).await?;
    Ok(Some(known.receipts))
}

/// Counts and logs the end of a task, by whoever appended it.
pub(crate) fn count_end(task: &Task) {
    let (Some(finished), Some(at)) = (task.finished(), task.finished_at()) else { return };
    let took = at.duration_since(task.submitted_at()).unwrap_or_default();
    let reason = finished.reason.as_str();
    metrics::counter!("autoact_tasks_total", "reason" => reason).increment(1);
    metrics::histogram!("autoact_task_seconds", "reason" => reason).record(took.as_secs_f64());
    tracing::info!(task = %task.key(), reason, approved = finished.approved, steps = task.steps(), ?took, detail = finished.detail, "task ended");
}

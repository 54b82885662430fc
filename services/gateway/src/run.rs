//! One task, run: replay its events, decide, act, append, and again until it has ended.
//!
//! Plain async code without actors, so that it reads from top to bottom: the actor around it ([`crate::actor`]) adds supervision.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use autoact_bus::{Bus, BusError};
use autoact_trajectory::{
    Action, Decision, Effect, Event, EventBody, FinishReason, FoldError, Observation, Started, Task, TaskId, Thought, UNKNOWN_OUTCOME,
    Usage, decide,
};
use tokio::sync::watch;
use tracing::Instrument;

use crate::agents::{AgentError, Agents, Ask};
use crate::call::{Answer, EXECUTE, ask, interruptible};
use crate::clock::Clock;
use crate::memory::Rememberer;
use crate::retry::Patience;

/// What all tasks of this process share.
pub(crate) struct Shared {
    pub(crate) bus: Bus,
    pub(crate) agents: Agents,
    pub(crate) memory: Rememberer,
    /// This gateway instance's name.
    pub(crate) writer: String,
    pub(crate) max_attempts: u32,
    pub(crate) call_limit: Duration,
    pub(crate) agent_patience: Duration,
    /// No new tasks are taken; those that run may end.
    pub(crate) draining: tokio_util::sync::CancellationToken,
}

/// What a run is told while it waits for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Nothing.
    GoOn,
    /// The task may have been ended from outside: look.
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
    /// The task has to be taken up again.
    GiveBack(GiveBack),
    /// There is nothing that could be run.
    Abandon(String),
}

/// Why a task is given back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GiveBack {
    #[error("this gateway is shutting down")]
    Draining,
    #[error(transparent)]
    Bus(BusError),
    #[error("its trajectory does not fold")]
    Fold(#[from] FoldError),
    #[error("its actor died: {0}")]
    Died(String),
}

/// What stops the loop before the task has ended.
enum Stop {
    Conflict,
    GiveBack(GiveBack),
}

impl From<BusError> for Stop {
    fn from(error: BusError) -> Self {
        match error {
            BusError::Conflict { .. } => Stop::Conflict,
            error => Stop::GiveBack(GiveBack::Bus(error)),
        }
    }
}

impl From<FoldError> for Stop {
    fn from(error: FoldError) -> Self {
        Stop::GiveBack(error.into())
    }
}

/// A task being run.
pub(crate) struct Run {
    shared: Arc<Shared>,
    id: TaskId,
    attempt: u32,
    signals: watch::Receiver<Signal>,
    task: Option<Task>,
    clock: Clock,
}

impl Run {
    pub(crate) fn new(shared: Arc<Shared>, id: TaskId, attempt: u32, signals: watch::Receiver<Signal>) -> Run {
        Run { shared, id, attempt, signals, task: None, clock: Clock::start() }
    }

    /// Does the next thing; `None` while there is more to do.
    pub(crate) async fn advance(&mut self) -> Option<Outcome> {
        let stop = match self.task.take() {
            None => self.take_up().await,
            Some(task) => self.step(task).await,
        };
        match stop {
            Ok(outcome) => outcome,
            Err(Stop::GiveBack(reason)) => Some(Outcome::GiveBack(reason)),
            Err(Stop::Conflict) => Some(self.after_conflict().await),
        }
    }

    /// Replays the events and says that this gateway goes on with them.
    async fn take_up(&mut self) -> Result<Option<Outcome>, Stop> {
        let events = self.clock.bus(self.shared.bus.load(&self.id)).await;
        let given_up = self.attempt > self.shared.max_attempts;
        let folded = match events {
            Ok(events) if events.is_empty() => return Ok(Some(Outcome::Abandon("it has no events, or they have expired".to_owned()))),
            Ok(events) => Task::fold(&events).map_err(GiveBack::Fold),
            Err(error) => Err(GiveBack::Bus(error)),
        };
        let task = match folded {
            Ok(task) => task,
            // an event of a later version: another gateway may be able to read it
            Err(reason) if given_up => {
                return Ok(Some(Outcome::Abandon(format!("taken up {} times in vain: {reason}", self.attempt - 1))));
            }
            Err(reason) => return Err(Stop::GiveBack(reason)),
        };
        if task.finished().is_some() {
            return Ok(Some(self.end(&task)));
        }
        if given_up {
            let detail = format!("given up after {} attempt(s); the logs of the gateways say what went wrong", self.attempt - 1);
            let task = self.append(task.clone(), EventBody::Finished(task.finish(FinishReason::Failed, detail)), None).await?;
            return Ok(Some(self.end(&task)));
        }
        let started = Started { gateway: self.shared.writer.clone(), attempt: self.attempt };
        self.task = Some(self.append(task, EventBody::Started(started), None).await?);
        Ok(None)
    }

    async fn step(&mut self, task: Task) -> Result<Option<Outcome>, Stop> {
        let (body, usage) = match decide(&task, SystemTime::now()) {
            Decision::Done => return Ok(Some(self.end(&task))),
            Decision::Finish(finished) => (EventBody::Finished(finished), None),
            Decision::Observe(observation) => (EventBody::Observation(observation), None),
            Decision::Plan => match self.plan(&task).await {
                Answer::Here((thought, usage)) => (EventBody::Thought(thought), Some(usage)),
                Answer::Failed(error) => return self.agent_failed(task, error).await,
                Answer::Interrupted => return self.interrupted(task).await,
            },
            Decision::Parameterize => match self.parameterize(&task).await {
                Answer::Here((action, usage)) => (EventBody::Action(action), Some(usage)),
                Answer::Failed(error) => return self.agent_failed(task, error).await,
                Answer::Interrupted => return self.interrupted(task).await,
            },
            Decision::Execute { action, step, may_have_run } => {
                if may_have_run {
                    tracing::info!(task = %self.id, tool = action.tool, "the action may have run before; it is run again");
                }
                match self.execute(&task, &action, step).await {
                    Answer::Here((observation, usage)) => (EventBody::Observation(observation), Some(usage)),
                    Answer::Failed(error) => return self.agent_failed(task, error).await,
                    Answer::Interrupted => return self.interrupted(task).await,
                }
            }
            Decision::Reflect => match self.reflect(&task).await {
                Answer::Here((reflection, usage)) => (EventBody::Reflection(reflection), Some(usage)),
                Answer::Failed(error) => return self.agent_failed(task, error).await,
                Answer::Interrupted => return self.interrupted(task).await,
            },
        };
        let task = self.append(task, body, usage).await?;
        if task.finished().is_some() {
            return Ok(Some(self.end(&task)));
        }
        self.task = Some(task);
        Ok(None)
    }

    /// Stores the next event, then applies it. The event is checked before it is stored: a trajectory that does not fold is of no use.
    async fn append(&mut self, mut task: Task, body: EventBody, usage: Option<Usage>) -> Result<Task, Stop> {
        let mut event = Event {
            task_id: self.id.clone(),
            index: task.next_index(),
            time: SystemTime::now(),
            writer: self.shared.writer.clone(),
            usage,
            timing: Some(self.clock.lap()),
            sequence: 0,
            body,
        };
        task.clone().apply(&event)?;
        event.sequence = self.clock.bus(append(&self.shared.bus, &event, task.last_sequence())).await?;
        task.apply(&event)?;
        count_end(&task);
        Ok(task)
    }

    async fn plan(&mut self, task: &Task) -> Answer<(Thought, Usage)> {
        let agent = self.shared.agents.plan.clone();
        self.call("plan", self.patience(task), |limit| agent.plan(asking(task, limit))).await
    }

    async fn parameterize(&mut self, task: &Task) -> Answer<(Action, Usage)> {
        let tool = task.trajectory().open_step().map(|step| step.tool.clone()).unwrap_or_default();
        let agent = self.shared.agents.tool.clone();
        let answer = self.call("tool", self.patience(task), |limit| agent.parameterize(asking(task, limit))).await;
        answer.map(|(params, usage)| (Action { tool, params }, usage))
    }

    async fn reflect(&mut self, task: &Task) -> Answer<(autoact_trajectory::Reflection, Usage)> {
        let agent = self.shared.agents.reflect.clone();
        self.call("reflect", self.patience(task), |limit| agent.reflect(asking(task, limit))).await
    }

    /// Asks an agent until it answers, patience ends or a signal comes, and keeps count of the time.
    async fn call<T, F>(&mut self, agent: &'static str, patience: Patience, call: impl FnMut(Duration) -> F) -> Answer<(T, Usage)>
    where
        F: Future<Output = Result<(T, Usage), AgentError>>,
    {
        let Some(asked) = interruptible(&mut self.signals, ask(agent, &self.id, patience, call)).await else { return Answer::Interrupted };
        match asked.answer {
            Ok((answer, usage)) => {
                self.clock.called(usage.total, asked.retry);
                Answer::Here((answer, usage))
            }
            Err(error) => {
                self.clock.called(Duration::ZERO, asked.retry);
                Answer::Failed(error)
            }
        }
    }

    async fn execute(&mut self, task: &Task, action: &Action, step: u32) -> Answer<(Observation, Usage)> {
        let agent = self.shared.agents.tool.clone();
        let spec = task.trajectory().tool(&action.tool);
        let side_effect = spec.is_none_or(|spec| spec.effect == Effect::SideEffect);
        let mut patience = self.patience(task);
        if let Some(spec) = spec {
            patience.call = patience.call.min(spec.timeout + TOOL_MARGIN);
        }
        if side_effect {
            // a call that was lost may have run: only "busy" is certain not to have
            patience.unreachable = Duration::ZERO;
        }
        match self.call(EXECUTE, patience, |limit| agent.execute(asking(task, limit), action, step)).await {
            Answer::Here((seen, usage)) => Answer::Here((task.observe(seen.text, seen.is_error, seen.truncated), usage)),
            Answer::Interrupted => Answer::Interrupted,
            Answer::Failed(error) if side_effect && (error.unreachable() || error.timed_out()) => {
                tracing::warn!(task = %self.id, %error, "a side effect was interrupted; it is not run again");
                Answer::Here((task.observe(UNKNOWN_OUTCOME.to_owned(), true, false), Usage::default()))
            }
            Answer::Failed(error) if error.unreachable() || error.busy() => Answer::Failed(error),
            // the group is told what went wrong and may try something else
            Answer::Failed(error) => {
                tracing::warn!(task = %self.id, %error, "an action failed");
                let text: String = format!("{} failed: {error}", action.tool).chars().take(FAILURE_CHARS).collect();
                Answer::Here((task.observe(text, true, false), Usage::default()))
            }
        }
    }

    /// How long an agent may keep this task waiting.
    fn patience(&self, task: &Task) -> Patience {
        let used = task.started_at().and_then(|started| SystemTime::now().duration_since(started).ok()).unwrap_or_default();
        let left = task.limits().max_time.saturating_sub(used);
        Patience { deadline: tokio::time::Instant::now() + left, unreachable: self.shared.agent_patience, call: self.shared.call_limit }
    }

    /// An agent gave no answer: out of time is the task's own bound, anything else its failure.
    async fn agent_failed(&mut self, task: Task, error: AgentError) -> Result<Option<Outcome>, Stop> {
        if self.shared.draining.is_cancelled() && (error.unreachable() || error.busy()) {
            // the agents stop too, it seems; the next gateway has its own
            return Err(Stop::GiveBack(GiveBack::Draining));
        }
        let body = match decide(&task, SystemTime::now()) {
            Decision::Finish(end) if !error.unreachable() => end,
            _ => task.finish(FinishReason::Failed, chain(&error)),
        };
        tracing::warn!(task = %self.id, error = chain(&error), "an agent gave no answer");
        let task = self.append(task, EventBody::Finished(body), None).await?;
        Ok(Some(self.end(&task)))
    }

    /// A signal came while an agent was asked.
    async fn interrupted(&mut self, task: Task) -> Result<Option<Outcome>, Stop> {
        if *self.signals.borrow_and_update() == Signal::GiveBack {
            return Err(Stop::GiveBack(GiveBack::Draining));
        }
        match self.clock.bus(self.shared.bus.last(&self.id)).await? {
            Some(event) if event.sequence == task.last_sequence() => {
                self.task = Some(task);
                Ok(None)
            }
            _ => Err(Stop::Conflict),
        }
    }

    /// Somebody else wrote: they ended the task, or they run it.
    async fn after_conflict(&self) -> Outcome {
        match self.shared.bus.last(&self.id).await {
            Ok(Some(event)) if matches!(event.body, EventBody::Finished(_)) => Outcome::Ended,
            Ok(_) => Outcome::Lost,
            Err(error) => Outcome::GiveBack(GiveBack::Bus(error)),
        }
    }

    /// What is done with every ended task: also by the gateway that finds it ended, because the one before may not have come to it.
    fn end(&self, task: &Task) -> Outcome {
        self.shared.memory.remember(task);
        Outcome::Ended
    }
}

/// Beyond a tool's own deadline, which the tool agent keeps.
const TOOL_MARGIN: Duration = Duration::from_secs(5);
/// The group learns little from a long error.
const FAILURE_CHARS: usize = 300;

fn asking(task: &Task, limit: Duration) -> Ask<'_> {
    Ask { trajectory: task.trajectory(), sampling: task.sampling(), limit }
}

/// Appends an event in a span of its own.
pub(crate) async fn append(bus: &Bus, event: &Event, after: u64) -> Result<u64, BusError> {
    let span = tracing::info_span!(
        "append",
        otel.name = "publish autoact.trajectory",
        otel.kind = "producer",
        messaging.system = "nats",
        messaging.operation.name = "publish",
        messaging.destination.name = "autoact.trajectory",
        gen_ai.conversation.id = event.task_id.as_str(),
        autoact.event = event.body.name(),
        autoact.index = event.index,
    );
    let sequence = bus.append(event, after).instrument(span).await?;
    if matches!(event.body, EventBody::Thought(_)) {
        metrics::counter!("autoact_steps_total").increment(1);
    }
    Ok(sequence)
}

/// Counts and logs the end of a task, by whoever appended it.
pub(crate) fn count_end(task: &Task) {
    let (Some(finished), Some(at)) = (task.finished(), task.finished_at()) else { return };
    let took = at.duration_since(task.submitted_at()).unwrap_or_default();
    let reason = finished.reason.as_str();
    metrics::counter!("autoact_tasks_total", "reason" => reason).increment(1);
    metrics::histogram!("autoact_task_seconds", "reason" => reason).record(took.as_secs_f64());
    tracing::info!(task = %task.id(), reason, approved = finished.approved, steps = task.steps(), ?took, detail = finished.detail, "task ended");
}

/// An error and its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        next = cause.source();
    }
    text
}

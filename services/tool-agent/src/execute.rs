//! Runs actions: on blocking threads, a bounded number at once, each under its tool's deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autoact_base::failpoint::failpoint;
use autoact_bus::BusConfig;
use autoact_service::Tasks;
use autoact_telemetry::gen_ai;
use autoact_tools::{Caller, ToolLibrary};
use autoact_trajectory::{Action, Effect, MAX_PARAMS_BYTES, Observation, Outcome, TaskKey, Tenant, ToolSpec, Trajectory, UNKNOWN_OUTCOME};
use autoact_wire::agents_v1;
use autoact_wire::{ConversionError, v1};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use crate::config::ToolSettings;
use crate::effects::{Asked, Effects, Permit};
use crate::error::ExecuteError;
use crate::library::{Current, Tools};
use crate::once::{Once, Weigh};

/// What remembered outcomes may take in all. Most are a few hundred bytes; one may be a megabyte,
/// so that their number alone is no bound.
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// How much longer than its timeout a tool is waited for: one that sees to its own deadline ends
/// its program and says what it wrote.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(500);
/// How long claiming a step and recording its outcome may take beside the tool itself: each as long
/// as the bus is waited for.
const RECORD_LIMIT: Duration = Duration::from_secs(10);
/// Calls that may wait for a slot, for each slot: a longer line would only be waited for in vain.
const WAITING_PER_RUN: usize = 8;

/// The tools and the bounds on their use.
pub(crate) struct Executor {
    tools: Arc<Tools>,
    slots: Arc<Semaphore>,
    runs: usize,
    waiting: AtomicUsize,
    done: Once<agents_v1::ExecuteResponse>,
    effects: Effects,
    tasks: Tasks,
    capture_content: bool,
}

/// One action, checked.
struct CheckedAction {
    /// The library that it was checked by, whatever is read meanwhile.
    library: Arc<ToolLibrary>,
    tenant: String,
    task: String,
    step: u32,
    action: Action,
    trajectory: Trajectory,
    spec: ToolSpec,
    epoch: u64,
    may_have_run: bool,
    deadline: Option<Instant>,
}

impl CheckedAction {
    /// The task as its receipts name it.
    fn task_key(&self) -> Result<TaskKey, ExecuteError> {
        if self.task.is_empty() {
            return Err(ExecuteError::Missing("task_id"));
        }
        let unknown = |field, value: &String| ConversionError::UnknownValue { field, value: value.clone() };
        let id = self.task.parse().map_err(|_| unknown("task_id", &self.task))?;
        // a caller of a release without tenants names none
        let tenant = match self.tenant.as_str() {
            "" => Tenant::default(),
            tenant => tenant.parse().map_err(|_| unknown("tenant", &self.tenant))?,
        };
        Ok(TaskKey::new(tenant, id))
    }

    /// Names the call for the tool: repetitions of the call have the same name. Empty for a call
    /// without a task.
    fn key(&self) -> String {
        if self.task.is_empty() { String::new() } else { format!("{}/{}/{}", self.tenant, self.task, self.step) }
    }
}

impl Executor {
    pub(crate) fn new(tools: Arc<Tools>, settings: &ToolSettings, bus: BusConfig, tasks: Tasks, capture_content: bool) -> Executor {
        let (runs, slots) = (settings.max_runs, Arc::new(Semaphore::new(settings.max_runs)));
        let done = Once::new(settings.remembered, REMEMBERED_BYTES);
        let effects = Effects::new(settings.receipts.then_some(bus), tasks.clone());
        Executor { tools, slots, runs, waiting: AtomicUsize::new(0), done, effects, tasks, capture_content }
    }

    pub(crate) fn current(&self) -> Current {
        self.tools.current()
    }

    /// Checks the call and runs its action, unless its caller has stopped waiting. A tool that
    /// changes the world runs once for a (task, step), to its end, even when the caller hangs up.
    pub(crate) async fn execute(
        self: &Arc<Self>,
        request: agents_v1::ExecuteRequest,
        deadline: Option<Instant>,
    ) -> Result<agents_v1::ExecuteResponse, ExecuteError> {
        let run = self.check(request, deadline)?;
        if run.spec.effect == Effect::ReadOnly {
            let place = self.place().await?;
            return self.run(run, place).await.map(|(outcome, usage)| response(outcome, usage));
        }
        let task = run.task_key()?;
        // ids are unique within a tenant
        let key = format!("{}/{}", run.tenant, run.task);
        let tool = run.action.tool.clone();
        let (result, outcome) = tokio::sync::oneshot::channel();
        let executor = Arc::clone(self);
        let once = async move {
            let (step, action) = (run.step, run.action.clone());
            let outcome = executor.done.get(&key, step, &action, || executor.effect(task, run)).await;
            // an error means that the caller is gone; the outcome is remembered
            let _ = result.send(outcome);
        };
        self.tasks.spawn_until_stopped("tool with an effect", |_| once.in_current_span());
        outcome.await.unwrap_or(Err(ExecuteError::Broke { tool }))
    }

    /// Runs a step that changes the world, unless its receipts say that it was run, that it may
    /// have been, or that somebody else runs it.
    async fn effect(&self, task: TaskKey, run: CheckedAction) -> Result<agents_v1::ExecuteResponse, ExecuteError> {
        let epoch = run.epoch;
        // before it is claimed: a claim says when its tool will have ended
        let place = self.place().await?;
        let limit = run.spec.timeout + TIMEOUT_MARGIN;
        // a process that ends waits for what it began, and begins nothing more
        let _hold = self.tasks.hold((Instant::now() + limit + RECORD_LIMIT).into());
        if self.tasks.stopping().is_cancelled() {
            return Err(ExecuteError::Stopping);
        }
        failpoint("before-claim", &epoch);
        let asked = Asked {
            task,
            step: run.step,
            epoch,
            action: run.action.clone(),
            effect: run.spec.effect,
            may_have_run: run.may_have_run,
            limit,
            deadline: run.deadline,
        };
        match self.effects.claim(asked).await? {
            Permit::Done(outcome) => Ok(response(*outcome, place.usage())),
            Permit::Unknown => {
                let observation = Observation { text: UNKNOWN_OUTCOME.to_owned(), is_error: true, ..Observation::default() };
                Ok(response(Outcome { observation, artifacts: Vec::new() }, place.usage()))
            }
            Permit::Run(claimed) => {
                failpoint("after-claim", &epoch);
                let (outcome, usage) = self.run(run, place).await?;
                failpoint("after-effect", &epoch);
                self.effects.record(*claimed, outcome.clone()).await;
                failpoint("after-receipt", &epoch);
                Ok(response(outcome, usage))
            }
        }
    }

    fn check(&self, request: agents_v1::ExecuteRequest, deadline: Option<Instant>) -> Result<CheckedAction, ExecuteError> {
        let action = request.action.map(Action::from).ok_or(ExecuteError::Missing("action"))?;
        if action.tool.is_empty() {
            return Err(ExecuteError::Missing("action.tool"));
        }
        if action.params.len() > MAX_PARAMS_BYTES {
            return Err(ExecuteError::TooLong { found: action.params.len(), limit: MAX_PARAMS_BYTES });
        }
        let library = self.tools.library();
        library.select(&[&action.tool])?;
        let spec = library.spec(&action.tool).cloned().ok_or(ExecuteError::Missing("action.tool"))?;
        if spec.is_terminal() {
            return Err(ExecuteError::Terminal(action.tool));
        }
        let trajectory = request.trajectory.map(Trajectory::try_from).transpose()?.unwrap_or_default();
        let agents_v1::ExecuteRequest { tenant, task_id: task, step, epoch, may_have_run, .. } = request;
        Ok(CheckedAction { library, tenant, task, step, action, trajectory, spec, epoch, may_have_run, deadline })
    }

    async fn run(&self, run: CheckedAction, place: Place) -> Result<(Outcome, v1::Usage), ExecuteError> {
        let span = gen_ai::tool_span(&run.action.tool, &run.task, run.step);
        if self.capture_content {
            span.record(gen_ai::TOOL_CALL_ARGUMENTS, run.action.params.as_str());
        }
        if run.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(ExecuteError::Expired);
        }
        let tool = run.action.tool.clone();
        let usage = place.usage();
        let started = Instant::now();
        let observed = self.observe(run, place.permit).instrument(span.clone()).await;
        let took = started.elapsed();
        let outcome = match &observed {
            Ok((_, outcome)) => *outcome,
            Err(_) => "broke",
        };
        metrics::histogram!("autoact_tool_seconds", "tool" => tool, "outcome" => outcome).record(took.as_secs_f64());
        if !matches!(outcome, "ok" | "referred") {
            span.record(gen_ai::ERROR_TYPE, outcome);
            span.record("otel.status_code", "ERROR");
        }
        let (observation, _) = observed?;
        if self.capture_content {
            span.record(gen_ai::TOOL_CALL_RESULT, observation.text.as_str());
        }
        let autoact_tools::Observation { text, is_error, truncated, refers_back: _, artifacts, sources } = observation;
        let observation = Observation { text, is_error, truncated, repeated: false, sources, untrusted: true };
        Ok((Outcome { observation, artifacts }, v1::Usage { tool: Some(proto(took)), ..usage }))
    }

    async fn observe(
        &self,
        run: CheckedAction,
        permit: OwnedSemaphorePermit,
    ) -> Result<(autoact_tools::Observation, &'static str), ExecuteError> {
        let key = run.key();
        let CheckedAction { library, tenant, action, trajectory, spec, deadline: asked, .. } = run;
        let own = Instant::now() + spec.timeout;
        // what changes the world goes on without its caller
        let deadline = Some(asked.filter(|asked| spec.effect == Effect::ReadOnly && *asked < own).unwrap_or(own));
        let tool = action.tool.clone();
        let span = tracing::Span::current();
        let work = tokio::task::spawn_blocking(move || {
            // held to the end of the work, not of the waiting: a tool that hangs keeps its slot
            let _permit = permit;
            span.in_scope(|| library.execute_as(Caller { tenant: &tenant, key: &key, deadline }, &action, &trajectory))
        });
        let started = Instant::now();
        match tokio::time::timeout(spec.timeout + TIMEOUT_MARGIN, work).await {
            Ok(Ok(observation)) => {
                let outcome = match (observation.is_error, started.elapsed() >= spec.timeout) {
                    (false, _) if observation.refers_back => "referred",
                    (false, _) => "ok",
                    (true, true) => "timeout",
                    (true, false) => "failed",
                };
                Ok((observation, outcome))
            }
            Ok(Err(error)) => {
                tracing::error!(%error, tool, "a tool broke");
                Err(ExecuteError::Broke { tool })
            }
            Err(_) => {
                let text = format!("{tool} failed: no answer within {}", autoact_config::duration::format(spec.timeout));
                Ok((autoact_tools::Observation { text, is_error: true, ..autoact_tools::Observation::default() }, "timeout"))
            }
        }
    }

    /// A place among those that run, and how long it was waited for.
    async fn place(&self) -> Result<Place, ExecuteError> {
        let arrived = Instant::now();
        let permit = self.slot().await?;
        Ok(Place { permit, queued: arrived.elapsed() })
    }

    /// A slot to run in, after waiting in a line of bounded length.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, ExecuteError> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(permit);
        }
        let line = Line::join(&self.waiting);
        let (running, waiting) = (self.runs, line.before);
        let busy = || ExecuteError::Busy { running, waiting };
        if waiting >= self.runs * WAITING_PER_RUN {
            return Err(busy());
        }
        Arc::clone(&self.slots).acquire_owned().await.map_err(|_| busy())
    }
}

/// A place among the actions that run.
struct Place {
    permit: OwnedSemaphorePermit,
    queued: Duration,
}

impl Place {
    fn usage(&self) -> v1::Usage {
        v1::Usage { queue: Some(proto(self.queued)), ..v1::Usage::default() }
    }
}

fn response(outcome: Outcome, usage: v1::Usage) -> agents_v1::ExecuteResponse {
    let Outcome { observation: Observation { text, is_error, repeated: _, truncated, sources, untrusted: _ }, artifacts } = outcome;
    let artifacts = artifacts.into_iter().map(Into::into).collect();
    let sources = sources.iter().map(Into::into).collect();
    agents_v1::ExecuteResponse { observation: text, is_error, truncated, usage: Some(usage), artifacts, sources }
}

/// A place in the line; given up when dropped.
struct Line<'a> {
    waiting: &'a AtomicUsize,
    before: usize,
}

impl Line<'_> {
    fn join(waiting: &AtomicUsize) -> Line<'_> {
        Line { waiting, before: waiting.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Weigh for agents_v1::ExecuteResponse {
    fn bytes(&self) -> usize {
        size_of::<agents_v1::ExecuteResponse>()
            + self.observation.len()
            + self.artifacts.iter().map(|artifact| artifact.data.len()).sum::<usize>()
            + self.sources.iter().map(|source| size_of_val(source) + source.text.len()).sum::<usize>()
    }
}

fn proto(duration: Duration) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX), nanos: duration.subsec_nanos().cast_signed() }
}

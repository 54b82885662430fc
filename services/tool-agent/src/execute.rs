//! Runs actions: on blocking threads, a bounded number at once, each under its tool's deadline.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use autoact_service::Tasks;
use autoact_telemetry::gen_ai;
use autoact_tools::{Caller, Observation, ToolLibrary};
use autoact_trajectory::{Action, Effect, MAX_PARAMS_BYTES, ToolSpec, Trajectory};
use autoact_wire::agents_v1;
use autoact_wire::v1;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Instrument;

use crate::error::ExecuteError;
use crate::library::Tools;
use crate::once::{Once, Weigh};

/// What remembered outcomes may take in all. Most are a few hundred bytes; one may be a megabyte,
/// so that their number alone is no bound.
const REMEMBERED_BYTES: usize = 64 * 1024 * 1024;
/// How much longer than its timeout a tool is waited for: one that sees to its own deadline ends
/// its program and says what it wrote.
const TIMEOUT_MARGIN: Duration = Duration::from_millis(500);
/// Calls that may wait for a slot, for each slot: a longer line would only be waited for in vain.
const WAITING_PER_RUN: usize = 8;

/// The tools and the bounds on their use.
pub(crate) struct Executor {
    tools: Arc<Tools>,
    slots: Arc<Semaphore>,
    runs: usize,
    waiting: AtomicUsize,
    done: Once<agents_v1::ExecuteResponse>,
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
}

impl CheckedAction {
    /// Names the call for the tool: repetitions of the call have the same name. Empty for a call
    /// without a task.
    fn key(&self) -> String {
        if self.task.is_empty() { String::new() } else { format!("{}/{}/{}", self.tenant, self.task, self.step) }
    }
}

impl Executor {
    pub(crate) fn new(tools: Arc<Tools>, runs: usize, remembered: usize, tasks: Tasks, capture_content: bool) -> Executor {
        let slots = Arc::new(Semaphore::new(runs));
        Executor { tools, slots, runs, waiting: AtomicUsize::new(0), done: Once::new(remembered, REMEMBERED_BYTES), tasks, capture_content }
    }

    pub(crate) fn library(&self) -> Arc<ToolLibrary> {
        self.tools.library()
    }

    /// Checks the call and runs its action. A tool that changes the world runs once for a (task,
    /// step), to its end, even when the caller hangs up.
    pub(crate) async fn execute(self: &Arc<Self>, request: agents_v1::ExecuteRequest) -> Result<agents_v1::ExecuteResponse, ExecuteError> {
        let run = self.check(request)?;
        if run.spec.effect == Effect::ReadOnly {
            return self.run(run).await;
        }
        if run.task.is_empty() {
            return Err(ExecuteError::Missing("task_id"));
        }
        // ids are unique within a tenant
        let key = format!("{}/{}", run.tenant, run.task);
        let tool = run.action.tool.clone();
        let (result, outcome) = tokio::sync::oneshot::channel();
        let executor = Arc::clone(self);
        let once = async move {
            let (step, action) = (run.step, run.action.clone());
            let outcome = executor.done.get(&key, step, &action, || executor.run(run)).await;
            // an error means that the caller is gone; the outcome is remembered
            let _ = result.send(outcome);
        };
        self.tasks.spawn_until_stopped("tool with an effect", |_| once.in_current_span());
        outcome.await.unwrap_or(Err(ExecuteError::Broke { tool }))
    }

    fn check(&self, request: agents_v1::ExecuteRequest) -> Result<CheckedAction, ExecuteError> {
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
        Ok(CheckedAction { library, tenant: request.tenant, task: request.task_id, step: request.step, action, trajectory, spec })
    }

    async fn run(&self, run: CheckedAction) -> Result<agents_v1::ExecuteResponse, ExecuteError> {
        let span = gen_ai::tool_span(&run.action.tool, &run.task, run.step);
        if self.capture_content {
            span.record(gen_ai::TOOL_CALL_ARGUMENTS, run.action.params.as_str());
        }
        let tool = run.action.tool.clone();
        let arrived = Instant::now();
        let permit = self.slot().await?;
        let queued = arrived.elapsed();
        let started = Instant::now();
        let observed = self.observe(run, permit).instrument(span.clone()).await;
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
        let usage = v1::Usage { queue: Some(proto(queued)), tool: Some(proto(took)), ..v1::Usage::default() };
        let Observation { text, is_error, truncated, refers_back: _, artifacts, sources } = observation;
        let artifacts = artifacts.into_iter().map(Into::into).collect();
        let sources = sources.iter().map(Into::into).collect();
        Ok(agents_v1::ExecuteResponse { observation: text, is_error, truncated, usage: Some(usage), artifacts, sources })
    }

    async fn observe(&self, run: CheckedAction, permit: OwnedSemaphorePermit) -> Result<(Observation, &'static str), ExecuteError> {
        let key = run.key();
        let CheckedAction { library, tenant, action, trajectory, spec, .. } = run;
        let tool = action.tool.clone();
        let span = tracing::Span::current();
        let work = tokio::task::spawn_blocking(move || {
            // held to the end of the work, not of the waiting: a tool that hangs keeps its slot
            let _permit = permit;
            span.in_scope(|| library.execute_as(Caller { tenant: &tenant, key: &key }, &action, &trajectory))
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
                Ok((Observation { text, is_error: true, ..Observation::default() }, "timeout"))
            }
        }
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

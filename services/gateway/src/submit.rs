//! Accepting a task: checks the request, stores its first event and queues it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use autoact_bus::BusError;
use autoact_proto::status::ServiceError;
use autoact_proto::convert::resolve_limits;
use autoact_proto::v1;
use autoact_trajectory::{Event, EventBody, FoldError, InvalidSampling, InvalidTaskId, Limits, Sampling, Submitted, Task, TaskId, Timing};
use tonic::Code;

use crate::run::{Shared, append};
use crate::tools::{Catalog, SelectError};

/// A question is a paragraph, not a book: the model reads it at every step.
const MAX_QUESTION_BYTES: usize = 16 * 1024;
/// More tools than a model can tell apart.
const MAX_TOOLS: usize = 64;
/// Labels are for looking tasks up, not for data.
const MAX_LABELS: usize = 32;
/// Of a label's name and of its value.
const MAX_LABEL_BYTES: usize = 256;
/// A slot is free again after about one short task.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Why a task was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("`task` is missing")]
    NoTask,
    #[error(transparent)]
    Id(#[from] InvalidTaskId),
    #[error("`question` is empty")]
    NoQuestion,
    #[error("`question` has {0} bytes; at most {MAX_QUESTION_BYTES} are allowed")]
    LongQuestion(usize),
    #[error("`tools` names {0} tools; at most {MAX_TOOLS} are allowed")]
    ManyTools(usize),
    #[error("`labels`: at most {MAX_LABELS} with at most {MAX_LABEL_BYTES} bytes of name and of value are allowed")]
    Labels,
    #[error("`limits.{field}` is {asked}; at most {most} is allowed here")]
    Limit { field: &'static str, asked: String, most: String },
    #[error(transparent)]
    Sampling(#[from] InvalidSampling),
    #[error(transparent)]
    Tools(#[from] SelectError),
    #[error("task `{0}` exists with another question; choose another id")]
    Exists(TaskId),
    #[error("{running} tasks are queued or running, the bound is {most}; call again later")]
    Full { running: u64, most: u64 },
    #[error("task `{task}` is stored but could not be queued; submit it again under the same id")]
    NotQueued { task: TaskId, source: BusError },
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the trajectory of task `{task}` does not fold")]
    Fold { task: TaskId, source: FoldError },
}

impl ServiceError for SubmitError {
    fn code(&self) -> Code {
        match self {
            SubmitError::Tools(SelectError::Library(_)) | SubmitError::NotQueued { .. } => Code::Unavailable,
            SubmitError::Exists(_) => Code::AlreadyExists,
            SubmitError::Full { .. } => Code::ResourceExhausted,
            SubmitError::Bus(error) => bus_code(error),
            SubmitError::Fold { .. } => Code::DataLoss,
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            SubmitError::NoTask => "TASK_MISSING",
            SubmitError::Id(_) => "BAD_TASK_ID",
            SubmitError::NoQuestion => "QUESTION_EMPTY",
            SubmitError::LongQuestion(_) => "QUESTION_TOO_LONG",
            SubmitError::ManyTools(_) => "TOO_MANY_TOOLS",
            SubmitError::Labels => "BAD_LABELS",
            SubmitError::Limit { .. } => "LIMIT_TOO_HIGH",
            SubmitError::Sampling(_) => "BAD_SAMPLING",
            SubmitError::Tools(SelectError::Unknown { .. }) => "UNKNOWN_TOOL",
            SubmitError::Tools(SelectError::Library(_)) => "TOOLS_UNAVAILABLE",
            SubmitError::Exists(_) => "TASK_EXISTS",
            SubmitError::Full { .. } => "GATEWAY_FULL",
            SubmitError::NotQueued { .. } => "NOT_QUEUED",
            SubmitError::Bus(error) => bus_reason(error),
            SubmitError::Fold { .. } => "TRAJECTORY_BROKEN",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        let retry = matches!(self.code(), Code::ResourceExhausted | Code::Unavailable | Code::Aborted);
        retry.then_some(RETRY_DELAY)
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            SubmitError::NoTask => Some("task"),
            SubmitError::Id(_) => Some("task_id"),
            SubmitError::NoQuestion | SubmitError::LongQuestion(_) => Some("question"),
            SubmitError::ManyTools(_) | SubmitError::Tools(SelectError::Unknown { .. }) => Some("tools"),
            SubmitError::Labels => Some("labels"),
            SubmitError::Limit { .. } => Some("limits"),
            SubmitError::Sampling(_) => Some("sampling"),
            _ => None,
        }
    }
}

/// The code of an error of the bus, the same for every call.
pub(crate) fn bus_code(error: &BusError) -> Code {
    match error {
        BusError::Conflict { .. } => Code::Aborted,
        BusError::TooLarge { .. } => Code::InvalidArgument,
        BusError::Unreadable { .. } => Code::DataLoss,
        _ => Code::Unavailable,
    }
}

/// And its reason.
pub(crate) fn bus_reason(error: &BusError) -> &'static str {
    match error {
        BusError::Conflict { .. } => "TASK_MOVED_ON",
        BusError::TooLarge { .. } => "TOO_LARGE",
        BusError::Unreadable { .. } => "TRAJECTORY_BROKEN",
        _ => "BUS_UNAVAILABLE",
    }
}

/// Accepts tasks.
pub(crate) struct Submitter {
    pub(crate) shared: Arc<Shared>,
    pub(crate) catalog: Catalog,
    pub(crate) limits: Limits,
    pub(crate) max_limits: Limits,
    pub(crate) max_tasks: u64,
    /// Submissions between the look at the queue and the entry into it.
    pub(crate) entering: AtomicU64,
}

/// A request whose parts make sense by themselves.
struct Checked {
    id: Option<TaskId>,
    question: String,
    tools: Vec<String>,
    limits: Limits,
    sampling: Sampling,
    labels: BTreeMap<String, String>,
}

impl Submitter {
    /// Stores and queues a task that came in at `received`, or finds that it is there already.
    pub(crate) async fn submit(&self, request: v1::SubmitTaskRequest, received: Instant) -> Result<Task, SubmitError> {
        let checked = self.check(request)?;
        let bus = &self.shared.bus;
        if let Some(id) = &checked.id
            && let Some(task) = self.existing(id, &checked.question).await?
        {
            return Ok(task);
        }
        let tools = self.catalog.select(&checked.tools).await?;
        let _entering = self.admit().await?;
        let id = checked.id.unwrap_or_else(TaskId::generate);
        let Checked { question, limits, sampling, labels, .. } = checked;
        let mut event = Event {
            task_id: id.clone(),
            index: 1,
            time: SystemTime::now(),
            writer: self.shared.writer.clone(),
            usage: None,
            timing: Some(Timing { own: received.elapsed(), ..Timing::default() }),
            sequence: 0,
            body: EventBody::Submitted(Submitted { question: question.clone(), tools, limits, sampling, labels }),
        };
        event.sequence = match append(bus, &event, 0).await {
            Ok(sequence) => sequence,
            // somebody submitted the same id just now
            Err(conflict @ BusError::Conflict { .. }) => {
                return self.existing(&id, &question).await?.ok_or(SubmitError::Bus(conflict));
            }
            Err(error) => return Err(error.into()),
        };
        self.queue(&id).await?;
        metrics::counter!("autoact_tasks_submitted_total").increment(1);
        Task::begin(&event).map_err(|source| SubmitError::Fold { task: id, source })
    }

    /// The task of this id, if there is one. Queued again in case the one who stored it came no further; that changes nothing otherwise.
    async fn existing(&self, id: &TaskId, question: &str) -> Result<Option<Task>, SubmitError> {
        let events = self.shared.bus.load(id).await?;
        if events.is_empty() {
            return Ok(None);
        }
        let task = Task::fold(&events).map_err(|source| SubmitError::Fold { task: id.clone(), source })?;
        if task.trajectory().question != question {
            return Err(SubmitError::Exists(id.clone()));
        }
        if task.finished().is_none() {
            self.queue(id).await?;
        }
        Ok(Some(task))
    }

    async fn queue(&self, id: &TaskId) -> Result<(), SubmitError> {
        let bus = &self.shared.bus;
        let (listed, queued) = tokio::join!(bus.register(id), bus.enqueue(id));
        listed.and(queued).map_err(|source| SubmitError::NotQueued { task: id.clone(), source })
    }

    /// A place among the tasks that may be queued or running. Exact for one gateway; several may together let a few more in.
    async fn admit(&self) -> Result<Entering<'_>, SubmitError> {
        let entering = Entering { count: &self.entering, before: self.entering.fetch_add(1, Ordering::Relaxed) };
        let running = self.shared.bus.backlog().await? + entering.before;
        if running >= self.max_tasks {
            metrics::counter!("autoact_tasks_refused_total").increment(1);
            return Err(SubmitError::Full { running, most: self.max_tasks });
        }
        Ok(entering)
    }

    fn check(&self, request: v1::SubmitTaskRequest) -> Result<Checked, SubmitError> {
        let v1::SubmitTaskRequest { task_id, question, tools, limits, sampling, labels } = request;
        let id = if task_id.is_empty() { None } else { Some(task_id.parse()?) };
        if question.trim().is_empty() {
            return Err(SubmitError::NoQuestion);
        }
        if question.len() > MAX_QUESTION_BYTES {
            return Err(SubmitError::LongQuestion(question.len()));
        }
        if tools.len() > MAX_TOOLS {
            return Err(SubmitError::ManyTools(tools.len()));
        }
        let fits = |(name, value): (&String, &String)| !name.is_empty() && name.len().max(value.len()) <= MAX_LABEL_BYTES;
        if labels.len() > MAX_LABELS || !labels.iter().all(fits) {
            return Err(SubmitError::Labels);
        }
        let limits = resolve_limits(limits, &self.limits);
        self.check_limits(&limits)?;
        let sampling = sampling.unwrap_or_default().try_into()?;
        Ok(Checked { id, question, tools, limits, sampling, labels: labels.into_iter().collect() })
    }

    fn check_limits(&self, asked: &Limits) -> Result<(), SubmitError> {
        let most = &self.max_limits;
        let numbers = [
            ("max_steps", asked.max_steps, most.max_steps),
            ("max_reflections", asked.max_reflections, most.max_reflections),
            ("max_tokens", asked.max_tokens, most.max_tokens),
        ];
        for (field, asked, most) in numbers {
            if asked > most {
                return Err(SubmitError::Limit { field, asked: asked.to_string(), most: most.to_string() });
            }
        }
        if asked.max_time > most.max_time {
            let (asked, most) = (format!("{:?}", asked.max_time), format!("{:?}", most.max_time));
            return Err(SubmitError::Limit { field: "max_time", asked, most });
        }
        Ok(())
    }
}

/// A submission on its way; counted until dropped.
struct Entering<'a> {
    count: &'a AtomicU64,
    before: u64,
}

impl Drop for Entering<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

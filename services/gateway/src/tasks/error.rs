//! Why the application does not do what it is asked.

use std::time::Duration;

use autoact_access::AccessError;
use autoact_bus::BusError;
use autoact_planning::Failure;
use autoact_trajectory::{FoldError, InputKind, InvalidContext, InvalidSampling, MAX_INPUT_BYTES, NotShared, PromptSize, TaskId};

use crate::agents::catalog::SelectError;
use crate::tasks::admission::NoPlace;
use crate::tasks::submit::{MAX_CONVERSATION_BYTES, MAX_LABEL_BYTES, MAX_LABELS, MAX_QUESTION_BYTES, MAX_TOOLS};

/// Why a task was not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SubmitError {
    #[error("`question` is empty")]
    NoQuestion,
    #[error("`question` has {0} bytes; at most {MAX_QUESTION_BYTES} are allowed")]
    LongQuestion(usize),
    #[error(
        "the question and the tools take {} tokens of a prompt with the room for an answer, and at most {} fit the models' contexts; \
         shorten the question or name fewer `tools`",
        .0.tokens, .0.limit
    )]
    NoRoom(PromptSize),
    #[error("`tools` names {0} tools; at most {MAX_TOOLS} are allowed")]
    ManyTools(usize),
    #[error("`labels` has {0} labels; at most {MAX_LABELS} are allowed")]
    ManyLabels(usize),
    #[error("`labels` has a label without a name")]
    LabelName,
    #[error("`labels` has a name or a value of {0} bytes; at most {MAX_LABEL_BYTES} are allowed")]
    LongLabel(usize),
    #[error("`{field}` is {asked}; at most {most} is allowed here")]
    Limit { field: &'static str, asked: String, most: String },
    #[error("`min_confidence` is {0}; expected 0 to 1")]
    MinConfidence(f64),
    #[error(transparent)]
    Sampling(#[from] InvalidSampling),
    #[error(transparent)]
    Tools(#[from] SelectError),
    #[error("task `{0}` exists with another request; choose another id")]
    Exists(TaskId),
    #[error("`conversation_id` is `{0}`; expected at most {MAX_CONVERSATION_BYTES} characters of A-Z, a-z, 0-9, `_` and `-`")]
    Conversation(String),
    #[error(transparent)]
    Context(#[from] InvalidContext),
    #[error(transparent)]
    Origin(Box<TaskError>),
    #[error("task `{task}` cannot be retried from there: {source}")]
    Step { task: TaskId, source: NotShared },
    #[error("there is no collection `{name}`; there are {}", told(known))]
    Knowledge { name: String, known: Vec<String> },
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("your tenant may submit {most} tasks a minute here, and they are used up; call again later")]
    Rate { most: u32, after: Duration },
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    #[error("task `{task}` is stored but could not be queued; submit it again under the same id")]
    NotQueued { task: TaskId, source: Box<BusError> },
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the trajectory of task `{task}` does not fold")]
    Fold { task: TaskId, source: Box<FoldError> },
}

fn told(known: &[String]) -> String {
    if known.is_empty() { "none at all; `autoact corpus import` makes one".to_owned() } else { format!("`{}`", known.join("`, `")) }
}

/// What the task asks instead.
fn asks(asked: &Option<(u32, InputKind)>) -> String {
    match asked {
        Some((step, kind)) => format!("; it waits for an {} at step {step}", kind.as_str()),
        None => "; it waits for nobody".to_owned(),
    }
}

/// Why a task cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskError {
    #[error("there is no task `{0}`; it was never submitted, or it has expired")]
    NotFound(TaskId),
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error(transparent)]
    NoPlace(#[from] NoPlace),
    #[error("the trajectory of task `{task}` does not fold")]
    Fold { task: TaskId, source: Box<FoldError> },
    #[error("task `{task}` has no artifact `{name}`; `autoact tasks artifacts {task}` lists them")]
    NoArtifact { task: TaskId, name: String },
    #[error(transparent)]
    Access(#[from] AccessError),
    #[error("task `{0}` has ended; only a task that runs can be paused or answered")]
    Ended(TaskId),
    #[error("task `{0}` has not ended; cancel it first")]
    NotEnded(TaskId),
    #[error("task `{task}` asks nothing of this kind at step {step}{}", asks(asked))]
    NotAsked { task: TaskId, step: u32, asked: Option<(u32, InputKind)> },
    #[error("`answer` is empty")]
    EmptyAnswer,
    #[error("`{field}` has {bytes} bytes; at most {MAX_INPUT_BYTES} are allowed")]
    LongInput { field: &'static str, bytes: usize },
    #[error("memory did not forget task `{task}`, so nothing was deleted; call again: {}", failure.chain())]
    Memory { task: TaskId, failure: Failure },
    #[error("as many clients of your tenant watch tasks here as may ({most}); call again later")]
    WatcherQuota { most: usize },
    #[error("as many clients watch tasks here as may ({most}); call again later, or watch through another gateway")]
    ManyWatchers { most: usize },
    #[error("this gateway is shutting down; watch task `{task}` again after sequence {after}")]
    Leaving { task: TaskId, after: u64 },
    #[error("nothing was read of task `{task}` for too long; watch it again after sequence {after}, and read faster")]
    SlowReader { task: TaskId, after: u64 },
}

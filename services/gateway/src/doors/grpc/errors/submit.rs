//! Why a task was not accepted.

use autoact_trajectory::NotShared;
use autoact_wire::status::too_long;
use tonic::Code;

use super::{Row, stored};
use crate::agents::catalog::SelectError;
use crate::tasks::submit::{MAX_CONVERSATION_BYTES, MAX_LABEL_BYTES, MAX_LABELS, MAX_QUESTION_BYTES, MAX_TOOLS};
use crate::tasks::{NoPlace, SubmitError};

impl SubmitError {
    pub(super) fn row(&self) -> Row {
        let over = |row: Row, value: &usize, limit: usize| row.with("value", value).with("limit", limit);
        match self {
            SubmitError::NoQuestion => Row::invalid("QUESTION_EMPTY", "question"),
            SubmitError::LongQuestion(bytes) => over(Row::invalid("QUESTION_TOO_LONG", "question"), bytes, MAX_QUESTION_BYTES),
            SubmitError::NoRoom(size) => Row { metadata: too_long(*size), ..Row::invalid("PROMPT_TOO_LONG", "question") },
            SubmitError::ManyTools(count) => over(Row::invalid("TOO_MANY_TOOLS", "tools"), count, MAX_TOOLS),
            SubmitError::Tools(error) => error.row(),
            SubmitError::ManyLabels(count) => over(Row::invalid("BAD_LABELS", "labels"), count, MAX_LABELS),
            SubmitError::LabelName => Row::invalid("BAD_LABELS", "labels"),
            SubmitError::LongLabel(bytes) => over(Row::invalid("BAD_LABELS", "labels"), bytes, MAX_LABEL_BYTES),
            SubmitError::Limit { field, asked, most } => Row::invalid("LIMIT_TOO_HIGH", field).with("value", asked).with("limit", most),
            SubmitError::MinConfidence(found) => {
                Row::invalid("BAD_MIN_CONFIDENCE", "min_confidence").with("value", found).with("expected", "0 to 1")
            }
            SubmitError::Sampling(invalid) => {
                let field = match invalid.field {
                    "temperature" => "sampling.temperature",
                    _ => "sampling.top_p",
                };
                Row::invalid("BAD_SAMPLING", field).with("value", invalid.value).with("expected", invalid.expected)
            }
            SubmitError::Exists(id) => Row::new(Code::AlreadyExists, "TASK_EXISTS").field("task_id").task(id),
            SubmitError::Conversation(value) => {
                Row::invalid("BAD_CONVERSATION_ID", "conversation_id").with("value", value).with("limit", MAX_CONVERSATION_BYTES)
            }
            SubmitError::Context(invalid) => Row::of(invalid),
            SubmitError::Knowledge { name, known } => {
                Row::invalid("UNKNOWN_COLLECTION", "context.knowledge").with("value", name).with("expected", known.join(", "))
            }
            // it is this call that is made again, whatever the other task's says
            SubmitError::Origin(error) => error.row().by_code(),
            SubmitError::Step { task, source } => match source {
                NotShared::NoStep { steps } => Row::invalid("NO_SUCH_STEP", "from_step").task(task).with("steps", steps),
                _ => Row::new(Code::FailedPrecondition, "STEP_NOT_COMPLETE").field("from_step").task(task),
            },
            SubmitError::Access(error) => Row::of(error),
            SubmitError::Rate { most, after } => Row::new(Code::ResourceExhausted, "RATE_LIMITED").with("limit", most).after(*after),
            SubmitError::NoPlace(error) => error.row(),
            SubmitError::NotQueued { task, .. } => Row::new(Code::Unavailable, "NOT_QUEUED").task(task),
            SubmitError::Bus(error) => stored::bus(error),
            SubmitError::Fold { task, source } => stored::fold(task, source),
        }
    }
}

impl NoPlace {
    pub(super) fn row(&self) -> Row {
        match self {
            NoPlace::Quota { running, most } => Row::new(Code::ResourceExhausted, "TASK_QUOTA").with("value", running).with("limit", most),
            NoPlace::Full { running, most } => Row::new(Code::ResourceExhausted, "GATEWAY_FULL").with("value", running).with("limit", most),
            NoPlace::OpenQuota { open, most } => Row::new(Code::ResourceExhausted, "OPEN_QUOTA").with("value", open).with("limit", most),
            NoPlace::Open { open, most } => Row::new(Code::ResourceExhausted, "TOO_MANY_OPEN").with("value", open).with("limit", most),
            NoPlace::Bus(error) => stored::bus(error),
        }
    }
}

impl SelectError {
    pub(super) fn row(&self) -> Row {
        match self {
            SelectError::Library(failure) => Row::new(Code::Unavailable, "TOOLS_UNAVAILABLE").with("failure", failure.class.as_str()),
            SelectError::Unknown { name, nearest, .. } => {
                let row = Row::invalid("UNKNOWN_TOOL", "tools").with("tool", name);
                if let Some(nearest) = nearest { row.with("nearest", nearest) } else { row }
            }
        }
    }
}

//! Requests as the application knows them, and its answers as messages.

use autoact_trajectory::{FinishReason, Limits, Sampling, Tenant};
use autoact_wire::convert::resolve_limits;
use autoact_wire::event::outcome;
use autoact_wire::v1;

use crate::doors::grpc::errors::RequestError;
use crate::tasks::{Line, List, State, Submission};

/// Every reason a task can end with.
const REASONS: [FinishReason; 8] = [
    FinishReason::Approved,
    FinishReason::MaxSteps,
    FinishReason::MaxReflections,
    FinishReason::MaxTokens,
    FinishReason::MaxTime,
    FinishReason::Cancelled,
    FinishReason::Failed,
    FinishReason::Other,
];

/// The task that a request asks for; bounds that it leaves out are `defaults`'.
pub(super) fn submission(request: v1::SubmitTaskRequest, defaults: &Limits) -> Result<Submission, RequestError> {
    let v1::SubmitTaskRequest { task_id, question, tools, limits, sampling, labels, conversation_id } = request;
    let v1::SamplingParams { temperature, top_k, top_p, seed } = sampling.unwrap_or_default();
    Ok(Submission {
        id: if task_id.is_empty() { None } else { Some(task_id.parse().map_err(RequestError::Id)?) },
        question,
        tools,
        limits: resolve_limits(limits, defaults).map_err(RequestError::Limits)?,
        sampling: Sampling { temperature, top_k, top_p, seed },
        labels: labels.into_iter().collect(),
        conversation: conversation_id,
    })
}

/// The page that a request asks for.
pub(super) fn list(request: v1::ListTasksRequest) -> Result<List, RequestError> {
    let before = match request.page_token.as_str() {
        "" => None,
        token => Some(token.parse().map_err(|_| RequestError::PageToken(token.chars().take(64).collect()))?),
    };
    let state = match request.state() {
        v1::TaskState::Unspecified => None,
        v1::TaskState::Submitted => Some(State::Submitted),
        v1::TaskState::Running => Some(State::Running),
        v1::TaskState::Finished => Some(State::Finished),
    };
    let reasons = match request.outcome() {
        v1::TaskOutcome::Unspecified => None,
        asked => Some(REASONS.into_iter().filter(|reason| outcome(*reason) == asked).collect()),
    };
    Ok(List { size: request.page_size as usize, before, state, reasons, labels: request.labels.into_iter().collect() })
}

/// A line of a list.
pub(super) fn line(line: Line, tenant: &Tenant) -> v1::Task {
    let state = match line.state {
        State::Submitted => v1::TaskState::Submitted,
        State::Running => v1::TaskState::Running,
        State::Finished => v1::TaskState::Finished,
    };
    let mut task = v1::Task {
        task_id: line.id.to_string(),
        state: state as i32,
        question: line.question,
        submitted_at: Some(line.submitted_at.into()),
        last_sequence: line.last_sequence,
        labels: line.labels.into_iter().collect(),
        tenant: tenant.to_string(),
        conversation_id: line.conversation,
        ..v1::Task::default()
    };
    if let Some((finished, at)) = line.finished {
        task.set_reason(finished.reason.into());
        task.set_outcome(outcome(finished.reason));
        task.answer = finished.answer;
        task.approved = finished.approved;
        task.detail = finished.detail;
        task.finished_at = Some(at.into());
    }
    task
}

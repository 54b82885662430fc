//! Requests as the application knows them, and its answers as messages.

use autoact_bus::Order;
use autoact_trajectory::{ApprovalPolicy, FinishReason, Limits, Sampling, TaskContext, Tenant};
use autoact_wire::convert::resolve_limits;
use autoact_wire::event::outcome;
use autoact_wire::v1;
use autoact_wire::v1::give_input_request::Input as GivenInput;

use crate::doors::grpc::errors::RequestError;
use crate::tasks::{Bounds, Input, Line, List, Retry, Said, State, Submission};

/// Every reason a task can end with.
const REASONS: [FinishReason; 9] = [
    FinishReason::Approved,
    FinishReason::NoAnswer,
    FinishReason::MaxSteps,
    FinishReason::MaxReflections,
    FinishReason::MaxTokens,
    FinishReason::MaxTime,
    FinishReason::Cancelled,
    FinishReason::Failed,
    FinishReason::Other,
];

/// What begins the page tokens of lists with the oldest first; those with the newest first are
/// plain numbers.
const OLDEST: &str = "oldest-";

/// The task that a request asks for; bounds that it leaves out are `defaults`'. `trace_id`: the
/// request's, or empty.
pub(super) fn submission(request: v1::SubmitTaskRequest, defaults: &Limits, trace_id: String) -> Result<Submission, RequestError> {
    let v1::SubmitTaskRequest {
        task_id,
        question,
        tools,
        limits,
        sampling,
        labels,
        conversation_id,
        context,
        multiline_answer,
        min_confidence,
        approval,
        may_ask,
        next_attempt,
    } = request;
    let v1::SamplingParams { temperature, top_k, top_p, seed } = sampling.unwrap_or_default();
    Ok(Submission {
        id: if task_id.is_empty() { None } else { Some(task_id.parse().map_err(RequestError::Id)?) },
        question,
        tools,
        limits: resolve_limits(limits, defaults).map_err(RequestError::Limits)?,
        sampling: Sampling { temperature, top_k, top_p, seed },
        labels: labels.into_iter().collect(),
        conversation: conversation_id,
        context: context.map(TaskContext::try_from).transpose().map_err(RequestError::Context)?.unwrap_or_default(),
        multiline_answer,
        min_confidence,
        // a policy that is not known is taken as the one that asks most
        approval: v1::ApprovalPolicy::try_from(approval).map_or(ApprovalPolicy::Effects, Into::into),
        may_ask,
        next_attempt: autoact_wire::next_attempt(next_attempt),
        trace_id,
    })
}

/// What a person says to a task that asks.
pub(super) fn input(request: v1::GiveInputRequest) -> Result<Input, RequestError> {
    let said = match request.input {
        Some(GivenInput::Answer(answer)) => Said::Answer(answer),
        Some(GivenInput::Approval(v1::Approval { approved, reason, for_task })) => Said::Approval { approved, reason, for_task },
        None => return Err(RequestError::NoInput),
    };
    Ok(Input { step: request.step, said })
}

/// The task that a request asks to be retried, and from where.
pub(super) fn retry(request: v1::RetryTaskRequest, trace_id: String) -> Result<Retry, RequestError> {
    let v1::RetryTaskRequest { task_id, from_step, new_task_id, limits, seed } = request;
    let asked = limits.unwrap_or_default();
    let limits = resolve_limits(Some(asked), &Limits::default()).map_err(RequestError::Limits)?;
    let bounds = Bounds {
        max_steps: asked.max_steps,
        max_reflections: asked.max_reflections,
        max_tokens: asked.max_tokens,
        max_time: asked.max_time.map(|_| limits.max_time),
    };
    let id = if new_task_id.is_empty() { None } else { Some(new_task_id.parse().map_err(RequestError::NewId)?) };
    Ok(Retry { origin: task_id.parse().map_err(RequestError::Id)?, from: from_step.max(1), id, bounds, seed, trace_id })
}

/// The page that a request asks for.
pub(super) fn list(request: v1::ListTasksRequest) -> Result<List, RequestError> {
    let order = match request.order() {
        v1::TaskOrder::Unspecified | v1::TaskOrder::NewestFirst => Order::NewestFirst,
        v1::TaskOrder::OldestFirst => Order::OldestFirst,
    };
    let beyond = match request.page_token.as_str() {
        "" => None,
        token => Some(position(order, token).ok_or_else(|| RequestError::PageToken(token.chars().take(64).collect()))?),
    };
    let state = match request.state() {
        v1::TaskState::Unspecified => None,
        v1::TaskState::Submitted => Some(State::Submitted),
        v1::TaskState::Running => Some(State::Running),
        v1::TaskState::Paused => Some(State::Paused),
        v1::TaskState::InputRequired => Some(State::InputRequired),
        v1::TaskState::Finished => Some(State::Finished),
    };
    let reasons = match request.outcome() {
        v1::TaskOutcome::Unspecified => None,
        asked => Some(REASONS.into_iter().filter(|reason| outcome(*reason) == asked).collect()),
    };
    Ok(List { size: request.page_size as usize, order, beyond, state, reasons, labels: request.labels.into_iter().collect() })
}

/// The position that a page token names, if it is one of this order.
fn position(order: Order, token: &str) -> Option<u64> {
    let number = match order {
        Order::NewestFirst => token,
        Order::OldestFirst => token.strip_prefix(OLDEST)?,
    };
    // `parse` takes a sign, which no token has
    if number.starts_with('+') { None } else { number.parse().ok() }
}

/// The token of the page that begins beyond `position`.
pub(super) fn page_token(order: Order, position: u64) -> String {
    match order {
        Order::NewestFirst => position.to_string(),
        Order::OldestFirst => format!("{OLDEST}{position}"),
    }
}

/// A line of a list.
pub(super) fn line(line: Line, tenant: &Tenant) -> v1::Task {
    let state = match line.state {
        State::Submitted => v1::TaskState::Submitted,
        State::Running => v1::TaskState::Running,
        State::Paused => v1::TaskState::Paused,
        State::InputRequired => v1::TaskState::InputRequired,
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
        trace_id: line.trace_id,
        submitted_by: line.submitted_by,
        ..v1::Task::default()
    };
    if let Some((finished, at)) = line.finished {
        task.set_reason(finished.reason.into());
        task.set_outcome(outcome(finished.reason));
        task.answer = finished.answer;
        task.approved = finished.approved;
        task.detail = finished.detail;
        task.cancelled_by = finished.by;
        task.finished_at = Some(at.into());
    }
    task
}

//! A page of the list of tasks.

use autoact_bus::TaskHead;
use autoact_proto::v1;
use autoact_trajectory::EventBody;

use crate::cancel::TaskError;
use crate::run::Shared;

/// For a request that says nothing.
const DEFAULT_PAGE: usize = 50;
/// The most anybody gets at a time.
const MAX_PAGE: usize = 1000;

pub(crate) async fn list(shared: &Shared, request: v1::ListTasksRequest) -> Result<v1::ListTasksResponse, TaskError> {
    let before = match request.page_token.as_str() {
        "" => None,
        token => Some(token.parse().map_err(|_| TaskError::PageToken(token.chars().take(64).collect()))?),
    };
    let size = match request.page_size as usize {
        0 => DEFAULT_PAGE,
        size => size.min(MAX_PAGE),
    };
    let page = shared.bus.list(size, before).await?;
    Ok(v1::ListTasksResponse {
        tasks: page.tasks.iter().filter_map(line).collect(),
        next_page_token: page.next.map(|next| next.to_string()).unwrap_or_default(),
    })
}

/// What the first and the last event say about a task.
fn line(head: &TaskHead) -> Option<v1::Task> {
    let EventBody::Submitted(submitted) = &head.first.body else { return None };
    let mut task = v1::Task {
        task_id: head.first.task_id.to_string(),
        state: v1::TaskState::Running as i32,
        question: submitted.question.clone(),
        submitted_at: Some(head.first.time.into()),
        last_sequence: head.last.sequence,
        labels: submitted.labels.clone().into_iter().collect(),
        ..v1::Task::default()
    };
    match &head.last.body {
        EventBody::Submitted(_) => task.set_state(v1::TaskState::Submitted),
        EventBody::Finished(finished) => {
            task.set_state(v1::TaskState::Finished);
            task.set_reason(finished.reason.into());
            task.answer = finished.answer.clone();
            task.approved = finished.approved;
            task.detail = finished.detail.clone();
            task.finished_at = Some(head.last.time.into());
        }
        _ => {}
    }
    Some(task)
}

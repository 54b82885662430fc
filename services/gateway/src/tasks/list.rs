//! A page of the list of tasks.

use std::collections::BTreeMap;
use std::time::SystemTime;

use autoact_access::{Principal, Role};
use autoact_bus::{Order, TaskHead};
use autoact_trajectory::{EventBody, FinishReason, Finished, Task, TaskId, TaskKey};

use crate::tasks::{Application, TaskError, key};

/// For a request that says nothing.
const DEFAULT_PAGE: usize = 50;
/// The most anybody gets at a time.
const MAX_PAGE: usize = 1000;
/// Pages of the index that are read for one page of a filtered list: a filter that nothing fits
/// must end too.
const MAX_ROUNDS: usize = 20;

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Submitted,
    Running,
    Paused,
    InputRequired,
    Finished,
}

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct List {
    /// 0: the default.
    pub(crate) size: usize,
    pub(crate) order: Order,
    /// Where the page before, of the same order, ended.
    pub(crate) beyond: Option<u64>,
    /// Only tasks in this state.
    pub(crate) state: Option<State>,
    /// Only tasks that ended with one of these reasons.
    pub(crate) reasons: Option<Vec<FinishReason>>,
    /// Only tasks that have all of these labels.
    pub(crate) labels: BTreeMap<String, String>,
}

/// A task in a list: what its first and its last event say.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) id: TaskId,
    pub(crate) state: State,
    pub(crate) question: String,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) conversation: String,
    pub(crate) trace_id: String,
    pub(crate) submitted_by: String,
    pub(crate) submitted_at: SystemTime,
    pub(crate) finished: Option<(Finished, SystemTime)>,
    pub(crate) last_sequence: u64,
}

/// A page.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    /// In the order that was asked for.
    pub(crate) tasks: Vec<Line>,
    /// Where the next page begins; `None` at the end.
    pub(crate) next: Option<u64>,
}

impl Application {
    /// A page of the tasks of the caller's tenant.
    pub(crate) async fn list(&self, who: &Principal, list: &List) -> Result<Listed, TaskError> {
        who.require(Role::Ask)?;
        let size = match list.size {
            0 => DEFAULT_PAGE,
            size => size.min(MAX_PAGE),
        };
        let mut listed = Listed { tasks: Vec::new(), next: list.beyond };
        for _ in 0..MAX_ROUNDS {
            let missing = size - listed.tasks.len();
            let page = self.bus.list(&who.tenant, missing, list.order, listed.next).await?;
            for head in &page.tasks {
                let Some(mut line) = line(head) else { continue };
                if tells_part(&head.last.body)
                    && let Some(held) = self.held(&key(who, &line.id)).await?
                {
                    line.state = held;
                }
                if fits(list, &line) {
                    listed.tasks.push(line);
                }
            }
            listed.next = page.next;
            if listed.next.is_none() || listed.tasks.len() >= size {
                break;
            }
        }
        Ok(listed)
    }

    /// How a task is held back, from the whole of its history.
    async fn held(&self, key: &TaskKey) -> Result<Option<State>, TaskError> {
        // what cannot be read is in the list all the same, as its last event has it
        let Ok(task) = Task::fold(&self.bus.load(key).await?) else { return Ok(None) };
        Ok(match (task.is_paused(), task.is_held()) {
            (true, _) => Some(State::Paused),
            (false, true) => Some(State::InputRequired),
            (false, false) => None,
        })
    }
}

/// Whether an event that comes last leaves open how its task is held back: a task that is answered
/// may be paused, and one that is resumed may wait for a person. Hardly a task has such an event
/// last, for what goes on is taken up at once.
fn tells_part(last: &EventBody) -> bool {
    matches!(last, EventBody::InputGiven(_) | EventBody::Resumed(_))
}

fn fits(list: &List, line: &Line) -> bool {
    let reason = line.finished.as_ref().map(|(finished, _)| finished.reason);
    list.state.is_none_or(|state| state == line.state)
        && list.reasons.as_ref().is_none_or(|reasons| reason.is_some_and(|reason| reasons.contains(&reason)))
        && list.labels.iter().all(|(name, value)| line.labels.get(name) == Some(value))
}

fn line(head: &TaskHead) -> Option<Line> {
    let EventBody::Submitted(submitted) = &head.first.body else { return None };
    let (state, finished) = match &head.last.body {
        EventBody::Submitted(_) => (State::Submitted, None),
        EventBody::Finished(finished) => (State::Finished, Some((finished.clone(), head.last.time))),
        EventBody::Paused(_) => (State::Paused, None),
        EventBody::InputRequested(_) => (State::InputRequired, None),
        _ => (State::Running, None),
    };
    Some(Line {
        id: head.first.task_id.clone(),
        state,
        question: submitted.question.clone(),
        labels: submitted.labels.clone(),
        conversation: submitted.conversation.clone(),
        trace_id: submitted.trace_id.clone(),
        submitted_by: submitted.by.clone(),
        submitted_at: head.first.time,
        finished,
        last_sequence: head.last.sequence,
    })
}

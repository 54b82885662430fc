//! What a task does next: the planning loop as a pure function of the task and the time.

use std::time::SystemTime;

use crate::control::{InputKind, InputRequested};
use crate::event::{FinishReason, Finished, Observation};
use crate::history::{Action, Step};
use crate::task::{Phase, Task};

/// The observation of a side effect that was interrupted: it is never run a second time.
pub const UNKNOWN_OUTCOME: &str =
    "The outcome is unknown: the call was interrupted and may or may not have taken effect. It was not run again.";

/// What the group reads of an action that a person refused, before the person's words.
pub const REFUSED: &str = "The call was not approved, and was not run.";

/// What a task does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Look up what is remembered of the task's conversation.
    Recall,
    /// Ask Plan-Agent for a thought and a tool.
    Plan,
    /// Ask Tool-Agent for the parameters of the chosen tool.
    Parameterize,
    /// Run the action.
    Execute {
        /// What to run.
        action: Action,
        /// The planning loop it belongs to, from 1; with the task's id the idempotency key of the
        /// call.
        step: u32,
        /// Another holder of the lease may have run it already. A side effect is run then only if
        /// a receipt shows that it was not.
        may_have_run: bool,
    },
    /// Append this request, and wait for a person.
    Request(InputRequested),
    /// Append this observation: nothing is run.
    Observe(Observation),
    /// Nothing, until a person says something: the task is paused, or asks.
    Hold,
    /// Ask Reflect-Agent about the answer.
    Reflect,
    /// Append this end.
    Finish(Finished),
    /// Nothing: the task has ended.
    Done,
}

/// What `task` does next at `now`. The same events and the same time give the same decision,
/// whoever asks: recovery is replay.
pub fn decide(task: &Task, now: SystemTime) -> Decision {
    match task.phase() {
        Phase::Finished => return Decision::Done,
        _ if task.is_held() => return Decision::Hold,
        // the group was right in time, whatever the clock says now
        Phase::Approved => return Decision::Finish(approved(task)),
        _ => {}
    }
    if let Some(end) = exhausted(task, now) {
        return Decision::Finish(end);
    }
    match task.phase() {
        Phase::Planning if task.recalls() => Decision::Recall,
        Phase::Planning => Decision::Plan,
        Phase::Parameterizing => Decision::Parameterize,
        Phase::Acting => act(task),
        Phase::Reflecting => Decision::Reflect,
        Phase::Approved | Phase::Finished => Decision::Done,
    }
}

/// The end of a task whose last turn was judged right: its answer, or that there is none.
fn approved(task: &Task) -> Finished {
    if let Some(missing) = task.no_answer() {
        return Finished { answer: String::new(), citations: Vec::new(), ..task.finish(FinishReason::NoAnswer, missing) };
    }
    let finished = task.finish(FinishReason::Approved, "");
    Finished { approved: true, ..finished }
}

fn exhausted(task: &Task, now: SystemTime) -> Option<Finished> {
    let limits = task.limits();
    if let Some(started) = task.started_at() {
        // a clock that went backwards has used no time
        let used = now.duration_since(started).unwrap_or_default().saturating_sub(task.waited(now));
        if used >= limits.max_time {
            return Some(task.finish(FinishReason::MaxTime, format!("bound on time: {:?}", limits.max_time)));
        }
    }
    // a bound of zero: the first answer comes back unapproved, and nobody is asked about it
    let unasked = limits.max_reflections == 0 && task.phase() == Phase::Reflecting;
    if unasked || (limits.max_reflections > 0 && task.wrong_verdicts() >= limits.max_reflections) {
        let detail = format!("bound on wrong verdicts: {}", limits.max_reflections);
        return Some(task.finish(FinishReason::MaxReflections, detail));
    }
    if task.completion_tokens() >= u64::from(limits.max_tokens) {
        let detail = format!("bound on tokens: {}, written: {}", limits.max_tokens, task.completion_tokens());
        return Some(task.finish(FinishReason::MaxTokens, detail));
    }
    if task.phase() == Phase::Planning && task.steps() >= limits.max_steps {
        let detail = format!("bound on steps: {}", limits.max_steps);
        return Some(task.finish(FinishReason::MaxSteps, detail));
    }
    None
}

fn act(task: &Task) -> Decision {
    let Some(action) = task.trajectory().open_step().and_then(Step::action) else { return Decision::Done };
    let step = task.steps();
    let tool = task.trajectory().tool(&action.tool);
    let asked = match tool {
        Some(tool) if tool.asks_user() => Some(InputKind::Answer),
        _ if task.needs_approval(&action) => Some(InputKind::Approval),
        _ => None,
    };
    match (asked, task.input_given()) {
        (Some(InputKind::Answer), Some(given)) => Decision::Observe(Observation { text: given.text.clone(), ..Observation::default() }),
        (Some(InputKind::Approval), Some(given)) if !given.approved => {
            let text = if given.text.is_empty() { REFUSED.to_owned() } else { format!("{REFUSED} {}", given.text) };
            Decision::Observe(Observation { text, is_error: true, ..Observation::default() })
        }
        (Some(kind), None) => Decision::Request(InputRequested { step, kind, tool: action.tool, prompt: action.params }),
        (None, _) | (Some(_), Some(_)) => Decision::Execute { action, step, may_have_run: task.may_have_run() },
    }
}

//! `autoact tasks cancel`, `pause`, `resume`, `answer`, `approve`, `refuse`, `retry` and `delete`.

use std::time::Duration;

use autoact_wire::v1;
use autoact_wire::v1::give_input_request::Input;

use crate::client::Gateway;
use crate::names::{input_name, state_name};
use crate::out;
use crate::text::plain;

/// Ends a task.
pub(crate) async fn cancel(client: &mut Gateway, task_id: String) -> anyhow::Result<()> {
    let task = client.cancel_task(v1::CancelTaskRequest { task_id }).await?.into_inner().task.unwrap_or_default();
    out::line(format_args!("{} {}", task.task_id, state_name(&task)))?;
    Ok(())
}

/// Stops a task for a while.
pub(crate) async fn pause(client: &mut Gateway, task_id: String, reason: String) -> anyhow::Result<()> {
    let task = client.pause_task(v1::PauseTaskRequest { task_id, reason }).await?.into_inner().task.unwrap_or_default();
    out::line(format_args!("{} {}; it goes on with `autoact tasks resume {}`", task.task_id, state_name(&task), task.task_id))?;
    Ok(())
}

/// Lets it go on.
pub(crate) async fn resume(client: &mut Gateway, task_id: String) -> anyhow::Result<()> {
    let task = client.resume_task(v1::ResumeTaskRequest { task_id }).await?.into_inner().task.unwrap_or_default();
    out::line(format_args!("{} {}", task.task_id, state_name(&task)))?;
    Ok(())
}

/// Answers a task that asks; without a step, whatever it asks now.
pub(crate) async fn give(client: &mut Gateway, task_id: String, step: Option<u32>, input: Input) -> anyhow::Result<()> {
    let step = match step {
        Some(step) => step,
        None => asked_step(client, &task_id).await?,
    };
    let task = client.give_input(v1::GiveInputRequest { task_id, step, input: Some(input) }).await?.into_inner().task.unwrap_or_default();
    out::line(format_args!("{} {}", task.task_id, state_name(&task)))?;
    Ok(())
}

/// The step that asks now.
async fn asked_step(client: &mut Gateway, task_id: &str) -> anyhow::Result<u32> {
    let request = v1::GetTaskRequest { task_id: task_id.to_owned(), view: v1::TaskView::Basic as i32 };
    let task = client.get_task(request).await?.into_inner().task.unwrap_or_default();
    match task.input_required {
        Some(asked) => Ok(asked.step),
        None if task.state() == v1::TaskState::Finished => {
            anyhow::bail!("task {task_id} asks nothing any more: it has ended ({})", state_name(&task))
        }
        None => anyhow::bail!("task {task_id} asks nothing now: it is {}", state_name(&task)),
    }
}

/// What `retry` asks for.
pub(crate) struct Retry {
    pub(crate) id: String,
    pub(crate) from_step: u32,
    pub(crate) new_id: Option<String>,
    pub(crate) max_steps: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) seed: Option<u64>,
}

/// Submits the task anew from a step, and warns of effects that may come again.
pub(crate) async fn retry(client: &mut Gateway, retry: Retry) -> anyhow::Result<()> {
    let Retry { id, from_step, new_id, max_steps, timeout, seed } = retry;
    let request = v1::GetTaskRequest { task_id: id.clone(), ..v1::GetTaskRequest::default() };
    let before = client.get_task(request).await?.into_inner().task.unwrap_or_default();
    let limits = v1::Limits { max_steps, max_time: timeout.and_then(|time| time.try_into().ok()), ..v1::Limits::default() };
    let request = v1::RetryTaskRequest { task_id: id, from_step, new_task_id: new_id.unwrap_or_default(), limits: Some(limits), seed };
    let task = client.retry_task(request).await?.into_inner().task.unwrap_or_default();
    let again = effects(&before, from_step);
    if !again.is_empty() {
        out::note(format_args!("the effects of {} are not undone, and may come again", again.join(", ")));
    }
    out::line(format_args!("{} {}; watch it with `autoact watch {}`", task.task_id, state_name(&task), task.task_id))?;
    Ok(())
}

/// The steps from `from` on whose tools change the world.
fn effects(task: &v1::Task, from: u32) -> Vec<String> {
    let changes = |name: &str| {
        let tool = task.tools.iter().find(|tool| tool.name == name);
        tool.is_some_and(|tool| tool.effect() != v1::Effect::ReadOnly)
    };
    let steps = task.turns.iter().filter_map(|turn| match &turn.turn {
        Some(v1::turn::Turn::Step(step)) => Some(step),
        _ => None,
    });
    let later = (1u32..).zip(steps).filter(|(number, step)| *number >= from && step.params.is_some() && changes(&step.tool));
    later.map(|(number, step)| format!("step {number} ({})", plain(&step.tool))).collect()
}

/// Says of a step that nobody has read the outcome of its side effect; `tool` is empty if it is not
/// known.
pub(crate) fn open_effect_line(step: u32, tool: &str) -> String {
    let tool = if tool.is_empty() { String::new() } else { format!(" ({})", plain(tool)) };
    format!("step {step}{tool}: it is not known whether its effect took place")
}

/// Removes an ended task.
pub(crate) async fn delete(client: &mut Gateway, task_id: String) -> anyhow::Result<()> {
    client.delete_task(v1::DeleteTaskRequest { task_id: task_id.clone() }).await?;
    out::line(format_args!("{task_id} deleted"))?;
    Ok(())
}

/// How to answer a task that waits, where nobody sits at a terminal.
pub(crate) fn how_to_answer(task_id: &str, asked: &v1::InputRequested) -> String {
    match asked.kind() {
        v1::InputKind::Answer => format!("task {task_id} waits for an answer: `autoact tasks answer {task_id} \"…\"`"),
        v1::InputKind::Approval => {
            format!("task {task_id} waits for an approval: `autoact tasks approve {task_id}`, or `autoact tasks refuse {task_id}`")
        }
        v1::InputKind::Unspecified => format!("task {task_id} waits for something that this version does not know; update it"),
    }
}

/// The line for what a task asks, after its label.
pub(crate) fn asked_line(asked: &v1::InputRequested) -> String {
    match asked.kind() {
        v1::InputKind::Answer => plain(&asked.prompt),
        v1::InputKind::Approval => format!("may {}[{}] be run?", plain(&asked.tool), plain(&asked.prompt)),
        v1::InputKind::Unspecified => input_name(asked.kind()).to_owned(),
    }
}

/// The line for what a person said, after its label.
pub(crate) fn given_line(given: &v1::InputGiven) -> String {
    let said = match (given.kind(), given.approved, given.for_task) {
        (v1::InputKind::Approval, true, true) => "approved for the whole task".to_owned(),
        (v1::InputKind::Approval, true, false) => "approved".to_owned(),
        (v1::InputKind::Approval, false, _) if given.text.is_empty() => "refused".to_owned(),
        (v1::InputKind::Approval, false, _) => format!("refused: {}", plain(&given.text)),
        _ => plain(&given.text),
    };
    format!("{said}  (by {})", plain(&given.by))
}

/// What a line typed at a terminal says; `None`: it says nothing that was asked for.
pub(crate) fn typed(asked: &v1::InputRequested, line: &str) -> Option<Input> {
    let line = line.trim();
    let approval = |approved, reason: &str, for_task| Some(Input::Approval(v1::Approval { approved, reason: reason.to_owned(), for_task }));
    match asked.kind() {
        v1::InputKind::Answer => (!line.is_empty()).then(|| Input::Answer(line.to_owned())),
        v1::InputKind::Approval => match line.to_lowercase().as_str() {
            "y" | "yes" => approval(true, "", false),
            "a" | "always" => approval(true, "", true),
            "n" | "no" => approval(false, "", false),
            _ => line.get(..3).filter(|start| start.eq_ignore_ascii_case("no ")).and_then(|_| approval(false, line[3..].trim(), false)),
        },
        v1::InputKind::Unspecified => None,
    }
}

/// What may be typed.
pub(crate) fn what_to_type(asked: &v1::InputRequested) -> &'static str {
    match asked.kind() {
        v1::InputKind::Approval => "yes, no, no and why, or always (in this task): ",
        _ => "your answer: ",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: v1::InputKind) -> v1::InputRequested {
        v1::InputRequested { kind: kind as i32, ..v1::InputRequested::default() }
    }

    #[test]
    fn what_is_typed_says_what_it_seems_to() {
        let approval = asked(v1::InputKind::Approval);
        let said = |line| match typed(&approval, line) {
            Some(Input::Approval(v1::Approval { approved, reason, for_task })) => Some((approved, reason, for_task)),
            _ => None,
        };
        assert_eq!(said(" Yes\n"), Some((true, String::new(), false)));
        assert_eq!(said("a"), Some((true, String::new(), true)));
        assert_eq!(said("no"), Some((false, String::new(), false)));
        assert_eq!(said("No the address is wrong"), Some((false, "the address is wrong".to_owned(), false)));
        for nothing in ["", "maybe", "nonsense", "yesterday", "né", "ja"] {
            assert_eq!(said(nothing), None, "{nothing}");
        }
        assert_eq!(typed(&asked(v1::InputKind::Answer), " Lyon \n"), Some(Input::Answer("Lyon".to_owned())));
        assert_eq!(typed(&asked(v1::InputKind::Answer), " \n"), None);
    }
}

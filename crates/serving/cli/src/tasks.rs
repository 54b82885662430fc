//! `autoact tasks`: list, show and control tasks.

use autoact_base::error::chain;
use autoact_wire::v1;
use autoact_wire::v1::give_input_request::Input;

use crate::args::{ListedState, TasksCommand};
use crate::artifacts;
use crate::citations;
use crate::client::{self, Gateway, Service};
use crate::context;
use crate::control::{self, Retry};
use crate::exit;
use crate::json;
use crate::names::{is_named, state_name};
use crate::out::{self, OutputError};
use crate::text::{cut, plain, plain_line};
use crate::view::verdict;

pub(crate) async fn run(gateway: &str, command: TasksCommand) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    match answer(&mut client, gateway, command).await {
        Ok(code) => Ok(code),
        Err(error) => Err(explained(error, gateway).await),
    }
}

/// What an error means for a person, if the gateway or the way to it said it.
async fn explained(error: anyhow::Error, gateway: &str) -> anyhow::Error {
    match error.downcast::<tonic::Status>() {
        Ok(status) => client::explain(status, Service::Gateway, gateway).await,
        Err(error) => error,
    }
}

/// Does the same to each task, whatever becomes of the others; the exit code of the first failure.
async fn each(
    client: &mut Gateway,
    gateway: &str,
    ids: Vec<String>,
    what: impl AsyncFn(&mut Gateway, String) -> anyhow::Result<()>,
) -> anyhow::Result<u8> {
    let several = ids.len() > 1;
    let mut failed = None;
    for id in ids {
        let Err(error) = what(client, id.clone()).await else { continue };
        let error = explained(error, gateway).await;
        if !several || error.is::<OutputError>() {
            return Err(error);
        }
        out::error(format_args!("{}: {}", plain_line(&id), chain(error.as_ref())));
        failed = failed.or(Some(crate::exit_code(&error)));
    }
    Ok(failed.unwrap_or(exit::OK))
}

async fn answer(client: &mut Gateway, gateway: &str, command: TasksCommand) -> anyhow::Result<u8> {
    let approval = |approved, reason, for_task| Input::Approval(v1::Approval { approved, reason, for_task });
    match command {
        TasksCommand::List { oldest_first, state, limit, json } => {
            let order = if oldest_first { v1::TaskOrder::OldestFirst } else { v1::TaskOrder::NewestFirst };
            let state = state.map_or(v1::TaskState::Unspecified, listed);
            let request =
                v1::ListTasksRequest { page_size: limit, order: order as i32, state: state as i32, ..v1::ListTasksRequest::default() };
            list(&client.list_tasks(request).await?.into_inner().tasks, state, json)?;
        }
        TasksCommand::Show { id, json } => {
            let task = get(client, id).await?;
            if json {
                out::line(json::task(&task, &state_name(&task)))?;
            } else {
                out::text(shown(&task))?;
            }
        }
        TasksCommand::Artifacts { id, json } => artifacts::list(&get(client, id).await?, json)?,
        TasksCommand::Artifact { id, name, step, output } => {
            let request = v1::GetArtifactRequest { task_id: id, name, step: step.unwrap_or_default() };
            artifacts::fetch(client, request, output).await?;
        }
        TasksCommand::Cancel { ids } => return each(client, gateway, ids, control::cancel).await,
        TasksCommand::Pause { ids, reason } => {
            let pause = async |client: &mut Gateway, id| control::pause(client, id, reason.clone()).await;
            return each(client, gateway, ids, pause).await;
        }
        TasksCommand::Resume { ids } => return each(client, gateway, ids, control::resume).await,
        TasksCommand::Answer { id, text, step } => control::give(client, id, step, Input::Answer(text)).await?,
        TasksCommand::Approve { id, step, for_task } => control::give(client, id, step, approval(true, String::new(), for_task)).await?,
        TasksCommand::Refuse { id, reason, step } => control::give(client, id, step, approval(false, reason, false)).await?,
        TasksCommand::Retry { id, from_step, new_id, max_steps, timeout, seed } => {
            control::retry(client, Retry { id, from_step, new_id, max_steps, timeout, seed }).await?;
        }
        TasksCommand::Delete { ids } => return each(client, gateway, ids, control::delete).await,
    }
    Ok(exit::OK)
}

async fn get(client: &mut Gateway, id: String) -> anyhow::Result<v1::Task> {
    let request = v1::GetTaskRequest { task_id: id, ..v1::GetTaskRequest::default() };
    Ok(client.get_task(request).await?.into_inner().task.unwrap_or_default())
}

fn listed(state: ListedState) -> v1::TaskState {
    match state {
        ListedState::Submitted => v1::TaskState::Submitted,
        ListedState::Running => v1::TaskState::Running,
        ListedState::Paused => v1::TaskState::Paused,
        ListedState::InputRequired => v1::TaskState::InputRequired,
        ListedState::Finished => v1::TaskState::Finished,
    }
}

fn list(tasks: &[v1::Task], asked: v1::TaskState, json: bool) -> anyhow::Result<()> {
    if json {
        out::line(serde_json::Value::Array(tasks.iter().map(|task| json::task(task, &state_name(task))).collect()))?;
        return Ok(());
    }
    if tasks.is_empty() {
        match asked {
            v1::TaskState::Unspecified => out::line("no tasks yet; ask one with `autoact ask \"…\"`")?,
            _ => out::line("no such tasks")?,
        }
    }
    let columns = out::columns();
    for task in tasks {
        let answer = if task.answer.is_empty() { "…" } else { &task.answer };
        let row = format!("{:<38} {:<14} {} → {}", task.task_id, state_name(task), plain_line(&task.question), plain_line(answer));
        // a line a task on a terminal; programs get all of it
        out::line(columns.map_or_else(|| row.clone(), |columns| cut(&row, columns)))?;
    }
    Ok(())
}

/// A task with its whole trajectory.
fn shown(task: &v1::Task) -> String {
    let mut rows = vec![("task", task.task_id.clone()), ("state", state_name(task)), ("question", plain(&task.question))];
    if let Some(context) = &task.context {
        rows.extend(context::rows(context).into_iter().map(|(name, value)| (name, plain(&value))));
    }
    if let Some(origin) = &task.origin {
        rows.push(("retry of", format!("{}, from step {}", origin.task_id, origin.steps + 1)));
    }
    for turn in &task.turns {
        match &turn.turn {
            Some(v1::turn::Turn::Step(step)) => {
                rows.push(("thought", plain(&step.thought)));
                rows.push(("action", format!("{}[{}]", plain(&step.tool), plain(step.params.as_deref().unwrap_or("…")))));
                rows.extend(step.observation.as_ref().map(|observation| ("observed", plain(observation))));
                rows.extend(step.artifacts.iter().map(|artifact| ("artifact", artifacts::shown(artifact))));
            }
            Some(v1::turn::Turn::Reflection(reflection)) => {
                rows.push(("reflection", format!("{} → {}", plain(&reflection.thought), verdict(reflection))));
            }
            None => {}
        }
    }
    if let Some(asked) = &task.input_required {
        rows.push(("asks", control::asked_line(asked)));
        rows.push(("", control::how_to_answer(&task.task_id, asked)));
    }
    rows.push(("answer", plain(&task.answer)));
    if let Some(number) = task.open_effect {
        let mut steps = task.turns.iter().filter_map(|turn| match &turn.turn {
            Some(v1::turn::Turn::Step(step)) => Some(step),
            _ => None,
        });
        let tool = steps.nth((number as usize).saturating_sub(1)).map_or("", |step| step.tool.as_str());
        rows.push(("effect", control::open_effect_line(number, tool)));
    }
    if !task.citations.is_empty() {
        rows.push(("sources", citations::lines(&task.citations).collect::<Vec<_>>().join("\n")));
    }
    if !task.detail.is_empty() {
        rows.push(("detail", plain(&task.detail)));
    }
    for (name, by) in [("submitted by", &task.submitted_by), ("cancelled by", &task.cancelled_by)] {
        if is_named(by) {
            rows.push((name, plain(by)));
        }
    }
    if !task.trace_id.is_empty() {
        rows.push(("trace", plain(&task.trace_id)));
    }
    rows.iter().map(|(name, value)| format!("{name:<14} {}\n", out::hanging(value, 15))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_shows_the_step_whose_effect_is_not_known() {
        let step = |tool: &str| {
            let step = v1::Step { tool: tool.into(), ..v1::Step::default() };
            v1::Turn { turn: Some(v1::turn::Turn::Step(step)) }
        };
        let reflection = v1::Turn { turn: Some(v1::turn::Turn::Reflection(v1::Reflection::default())) };
        let turns = vec![step("Retrieve"), reflection, step("Send")];
        let task = v1::Task { turns, open_effect: Some(2), ..v1::Task::default() };
        let text = shown(&task);
        assert!(text.contains("effect         step 2 (Send): it is not known whether its effect took place\n"), "{text}");
        assert!(!shown(&v1::Task { open_effect: None, ..task }).contains("effect"));
    }
}

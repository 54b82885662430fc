//! `autoact tasks`: list, show, cancel.

use autoact_wire::v1;

use crate::args::TasksCommand;
use crate::artifacts;
use crate::citations;
use crate::client::{self, Service};
use crate::context;
use crate::exit;
use crate::json;
use crate::names::reason_name;
use crate::out;
use crate::text::{cut, plain, plain_line};
use crate::view::verdict;

pub(crate) async fn run(gateway: &str, command: TasksCommand) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    match command {
        TasksCommand::List { oldest_first, limit, json } => {
            let order = if oldest_first { v1::TaskOrder::OldestFirst } else { v1::TaskOrder::NewestFirst };
            let request = v1::ListTasksRequest { page_size: limit, order: order as i32, ..v1::ListTasksRequest::default() };
            let tasks = match client.list_tasks(request).await {
                Ok(response) => response.into_inner().tasks,
                Err(status) => return Err(client::explain(status, Service::Gateway, gateway).await),
            };
            list(&tasks, json)?;
        }
        TasksCommand::Show { id, json } => {
            let task = match client.get_task(v1::GetTaskRequest { task_id: id, ..v1::GetTaskRequest::default() }).await {
                Ok(response) => response.into_inner().task.unwrap_or_default(),
                Err(status) => return Err(client::explain(status, Service::Gateway, gateway).await),
            };
            if json {
                out::line(json::task(&task, &state(&task)))?;
            } else {
                out::text(shown(&task))?;
            }
        }
        TasksCommand::Artifacts { id, json } => {
            let task = match client.get_task(v1::GetTaskRequest { task_id: id, ..v1::GetTaskRequest::default() }).await {
                Ok(response) => response.into_inner().task.unwrap_or_default(),
                Err(status) => return Err(client::explain(status, Service::Gateway, gateway).await),
            };
            artifacts::list(&task, json)?;
        }
        TasksCommand::Artifact { id, name, step, output } => {
            let request = v1::GetArtifactRequest { task_id: id, name, step: step.unwrap_or_default() };
            if let Err(error) = artifacts::fetch(&mut client, request, output).await {
                return match error.downcast::<tonic::Status>() {
                    Ok(status) => Err(client::explain(status, Service::Gateway, gateway).await),
                    Err(error) => Err(error),
                };
            }
        }
        TasksCommand::Cancel { id } => {
            let task = match client.cancel_task(v1::CancelTaskRequest { task_id: id }).await {
                Ok(response) => response.into_inner().task.unwrap_or_default(),
                Err(status) => return Err(client::explain(status, Service::Gateway, gateway).await),
            };
            out::line(format_args!("{} {}", task.task_id, state(&task)))?;
        }
    }
    Ok(exit::OK)
}

fn list(tasks: &[v1::Task], json: bool) -> anyhow::Result<()> {
    if json {
        out::line(serde_json::Value::Array(tasks.iter().map(|task| json::task(task, &state(task))).collect()))?;
        return Ok(());
    }
    if tasks.is_empty() {
        out::line("no tasks yet; ask one with `autoact ask \"…\"`")?;
    }
    let columns = out::columns();
    for task in tasks {
        let answer = if task.answer.is_empty() { "…" } else { &task.answer };
        let row = format!("{:<38} {:<14} {} → {}", task.task_id, state(task), plain_line(&task.question), plain_line(answer));
        // a line a task on a terminal; programs get all of it
        out::line(columns.map_or_else(|| row.clone(), |columns| cut(&row, columns)))?;
    }
    Ok(())
}

/// A task with its whole trajectory.
fn shown(task: &v1::Task) -> String {
    let mut rows = vec![("task", task.task_id.clone()), ("state", state(task)), ("question", plain(&task.question))];
    if let Some(context) = &task.context {
        rows.extend(context::rows(context).into_iter().map(|(name, value)| (name, plain(&value))));
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
    rows.push(("answer", plain(&task.answer)));
    if !task.citations.is_empty() {
        rows.push(("sources", citations::lines(&task.citations).collect::<Vec<_>>().join("\n")));
    }
    if !task.detail.is_empty() {
        rows.push(("detail", plain(&task.detail)));
    }
    if !task.trace_id.is_empty() {
        rows.push(("trace", plain(&task.trace_id)));
    }
    rows.iter().map(|(name, value)| format!("{name:<14} {}\n", out::hanging(value, 15))).collect()
}

fn state(task: &v1::Task) -> String {
    match task.state() {
        v1::TaskState::Finished => reason_name(task.reason()),
        v1::TaskState::Running => "running".to_owned(),
        v1::TaskState::Submitted => "submitted".to_owned(),
        v1::TaskState::Unspecified => "unknown".to_owned(),
    }
}

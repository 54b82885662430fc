//! `autoact tasks`: list, show, cancel.

use autoact_proto::v1;

use crate::args::TasksCommand;
use crate::client;
use crate::exit;
use crate::view::reason_name;

pub(crate) async fn run(gateway: &str, command: TasksCommand) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    let explain = |status| client::explain(status, "gateway", gateway);
    match command {
        TasksCommand::List { limit, json } => {
            let request =
                v1::ListTasksRequest { page_size: limit.clamp(1, 1000), page_token: String::new(), ..v1::ListTasksRequest::default() };
            let tasks = client.list_tasks(request).await.map_err(explain)?.into_inner().tasks;
            if json {
                println!("{}", serde_json::Value::Array(tasks.iter().map(task_json).collect()));
            } else if tasks.is_empty() {
                println!("no tasks yet; ask one with `autoact ask \"…\"`");
            } else {
                for task in &tasks {
                    println!(
                        "{:<38} {:<14} {} → {}",
                        task.task_id,
                        state(task),
                        task.question,
                        if task.answer.is_empty() { "…" } else { &task.answer }
                    );
                }
            }
        }
        TasksCommand::Show { id, json } => {
            let response =
                client.get_task(v1::GetTaskRequest { task_id: id, ..v1::GetTaskRequest::default() }).await.map_err(explain)?.into_inner();
            let task = response.task.unwrap_or_default();
            if json {
                println!("{}", task_json(&task));
            } else {
                show(&task);
            }
        }
        TasksCommand::Cancel { id } => {
            let response = client.cancel_task(v1::CancelTaskRequest { task_id: id }).await.map_err(explain)?.into_inner();
            let task = response.task.unwrap_or_default();
            println!("{} {}", task.task_id, state(&task));
        }
    }
    Ok(exit::OK)
}

fn show(task: &v1::Task) {
    println!("task       {}\nstate      {}\nquestion   {}", task.task_id, state(task), task.question);
    for turn in &task.turns {
        match &turn.turn {
            Some(v1::turn::Turn::Step(step)) => {
                println!("thought    {}", step.thought);
                println!("action     {}[{}]", step.tool, step.params.as_deref().unwrap_or("…"));
                if let Some(observation) = &step.observation {
                    println!("observed   {observation}");
                }
            }
            Some(v1::turn::Turn::Reflection(reflection)) => {
                let verdict = if reflection.verdict() == v1::Verdict::Right { "right" } else { "wrong" };
                println!("reflection {} → {verdict}", reflection.thought);
            }
            None => {}
        }
    }
    println!("answer     {}", task.answer);
    if !task.detail.is_empty() {
        println!("detail     {}", task.detail);
    }
}

fn state(task: &v1::Task) -> String {
    match task.state() {
        v1::TaskState::Finished => reason_name(task.reason()),
        v1::TaskState::Running => "running".to_owned(),
        v1::TaskState::Submitted => "submitted".to_owned(),
        v1::TaskState::Unspecified => "unknown".to_owned(),
    }
}

fn task_json(task: &v1::Task) -> serde_json::Value {
    let turns: Vec<serde_json::Value> = task
        .turns
        .iter()
        .filter_map(|turn| match turn.turn.as_ref()? {
            v1::turn::Turn::Step(step) => Some(serde_json::json!({
                "thought": step.thought, "tool": step.tool, "params": step.params, "observation": step.observation,
            })),
            v1::turn::Turn::Reflection(reflection) => Some(serde_json::json!({
                "reflection": reflection.thought, "verdict": if reflection.verdict() == v1::Verdict::Right { "right" } else { "wrong" },
            })),
        })
        .collect();
    serde_json::json!({
        "task_id": task.task_id, "state": state(task), "question": task.question, "answer": task.answer, "approved": task.approved,
        "detail": task.detail, "turns": turns, "last_sequence": task.last_sequence, "labels": task.labels,
    })
}

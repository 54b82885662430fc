//! `autoact memory`: what the group remembers.

use autoact_proto::v1;

use crate::args::MemoryCommand;
use crate::client;
use crate::exit;

pub(crate) async fn run(command: MemoryCommand) -> anyhow::Result<u8> {
    let MemoryCommand::Recall { query, limit, approved, memory, json } = command;
    let mut client = client::memory(&memory)?;
    let request = v1::RecallRequest { kind: v1::MemoryKind::Task as i32, query, limit: limit.clamp(1, 100), approved_only: approved };
    let response = client.recall(request).await.map_err(|status| client::explain(status, "memory service", &memory))?.into_inner();
    let tasks: Vec<(f32, v1::TaskMemory)> = response
        .memories
        .into_iter()
        .filter_map(|recalled| match recalled.memory? {
            v1::recalled_memory::Memory::Task(task) => Some((recalled.score, task)),
        })
        .collect();
    if json {
        let rows = tasks.iter().map(|(score, task)| {
            serde_json::json!({
                "score": score, "task_id": task.task_id, "question": task.question, "answer": task.answer,
                "approved": task.approved, "steps": task.steps,
            })
        });
        println!("{}", serde_json::Value::Array(rows.collect()));
    } else if tasks.is_empty() {
        println!("nothing similar is remembered");
    } else {
        for (score, task) in &tasks {
            let mark = if task.approved { "" } else { "  (not approved)" };
            println!("{score:>7.3}  {} → {}{mark}", task.question, task.answer);
        }
    }
    Ok(exit::OK)
}

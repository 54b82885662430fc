//! `autoact memory`: what the group remembers.

use autoact_wire::memory_v1;

use crate::args::MemoryCommand;
use crate::client::{self, Service};
use crate::exit;
use crate::out;
use crate::text::plain_line;

pub(crate) async fn run(command: MemoryCommand) -> anyhow::Result<u8> {
    let MemoryCommand::Recall { query, limit, approved, tenant, memory, json } = command;
    let mut client = client::memory(&memory)?;
    let request = memory_v1::RecallRequest {
        kind: memory_v1::MemoryKind::Task as i32,
        query,
        limit,
        approved_only: approved,
        tenant: tenant.to_string(),
    };
    let response = match client.recall(request).await {
        Ok(response) => response.into_inner(),
        Err(status) => return Err(client::explain(status, Service::Memory, &memory).await),
    };
    let tasks: Vec<(f32, memory_v1::TaskMemory)> = response
        .memories
        .into_iter()
        .filter_map(|recalled| match recalled.memory? {
            memory_v1::recalled_memory::Memory::Task(task) => Some((recalled.score, task)),
        })
        .collect();
    if json {
        let rows = tasks.iter().map(|(score, task)| {
            serde_json::json!({
                "score": score, "task_id": task.task_id, "question": task.question, "answer": task.answer,
                "approved": task.approved, "steps": task.steps, "tenant": task.tenant,
            })
        });
        out::line(serde_json::Value::Array(rows.collect()))?;
    } else if tasks.is_empty() {
        out::line("nothing similar is remembered")?;
    } else {
        for (score, task) in &tasks {
            let mark = if task.approved { "" } else { "  (not approved)" };
            out::line(format_args!("{score:>7.3}  {} → {}{mark}", plain_line(&task.question), plain_line(&task.answer)))?;
        }
    }
    Ok(exit::OK)
}

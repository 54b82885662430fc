//! `autoact memory`: what the group remembers.

use autoact_wire::memory_v1::recalled_memory::Memory as Recalled;
use autoact_wire::memory_v1::stored_memory::Memory as Stored;
use autoact_wire::memory_v1::{self, MemoryKind};
use serde_json::Value;
use tonic::{Code, Status};

use crate::args::{MemoryCommand, MemoryOptions};
use crate::client::{self, Service};
use crate::exit;
use crate::json;
use crate::out;
use crate::text::{cut, plain, plain_line};

pub(crate) async fn run(command: MemoryCommand) -> anyhow::Result<u8> {
    let (MemoryCommand::Recall { options, .. }
    | MemoryCommand::List { options, .. }
    | MemoryCommand::Show { options, .. }
    | MemoryCommand::Forget { options, .. }) = &command;
    let MemoryOptions { tenant, memory, json } = options.clone();
    let tenant = tenant.map(|tenant| tenant.to_string()).unwrap_or_default();
    let done = match command {
        MemoryCommand::Recall { query, limit, approved, conversation, .. } => {
            let (kind, approved_only) = (MemoryKind::Task as i32, approved);
            let request =
                memory_v1::RecallRequest { kind, query, limit, approved_only, tenant, conversation_id: conversation, ..Default::default() };
            recall(&memory, request, json).await
        }
        MemoryCommand::List { conversation, kind, limit, .. } => {
            let kind = number(kind);
            let request =
                memory_v1::ListMemoriesRequest { tenant, conversation_id: conversation, kind, page_size: limit, ..Default::default() };
            list(&memory, request, json).await
        }
        MemoryCommand::Show { id, kind, .. } => show(&memory, tenant, id, kind, json).await,
        MemoryCommand::Forget { id, conversation, before, all, kind, .. } => {
            let (id, conversation_id) = (id.unwrap_or_default(), conversation.unwrap_or_default());
            forget(&memory, memory_v1::ForgetRequest { kind: number(kind), id, tenant, conversation_id, before, all }, json).await
        }
    };
    match done {
        Ok(()) => Ok(exit::OK),
        Err(error) => match error.downcast::<Status>() {
            Ok(status) => Err(client::explain(status, Service::Memory, &memory).await),
            Err(error) => Err(error),
        },
    }
}

fn number(kind: Option<crate::args::MemoryKind>) -> i32 {
    kind.map_or(MemoryKind::Unspecified, MemoryKind::from) as i32
}

async fn recall(memory: &str, request: memory_v1::RecallRequest, json: bool) -> anyhow::Result<()> {
    let response = client::memory(memory)?.recall(request).await?.into_inner();
    let stored = |recalled: memory_v1::RecalledMemory| {
        let memory = match recalled.memory? {
            Recalled::Task(task) => Stored::Task(task),
            Recalled::Turn(turn) => Stored::Turn(turn),
        };
        Some((recalled.score, memory))
    };
    let found: Vec<(f32, Stored)> = response.memories.into_iter().filter_map(stored).collect();
    if json {
        out::line(Value::Array(found.iter().map(|(score, memory)| json::memory(memory, Some(*score))).collect()))?;
    } else if found.is_empty() {
        out::line("nothing similar is remembered")?;
    }
    for (score, memory) in found.iter().filter(|_| !json) {
        out::line(format_args!("{score:>7.3}  {}", line(memory)))?;
    }
    Ok(())
}

async fn list(memory: &str, request: memory_v1::ListMemoriesRequest, json: bool) -> anyhow::Result<()> {
    let memory_v1::ListMemoriesResponse { memories, next_page_token } = client::memory(memory)?.list_memories(request).await?.into_inner();
    let found: Vec<Stored> = memories.into_iter().filter_map(|stored| stored.memory).collect();
    if json {
        return Ok(out::line(Value::Array(found.iter().map(|memory| json::memory(memory, None)).collect()))?);
    }
    if found.is_empty() {
        out::line("nothing is remembered")?;
    }
    let columns = out::columns();
    for memory in &found {
        let Parts { kind, task_id, conversation, .. } = parts(memory);
        let row = format!("{kind:<13} {task_id:<38} {conversation:<16} {}", line(memory));
        out::line(columns.map_or_else(|| row.clone(), |columns| cut(&row, columns)))?;
    }
    if !next_page_token.is_empty() {
        out::note("there are more; `--limit` shows up to 1000");
    }
    Ok(())
}

async fn show(memory: &str, tenant: String, id: String, kind: Option<crate::args::MemoryKind>, json: bool) -> anyhow::Result<()> {
    let kinds = kind.map_or(vec![MemoryKind::Task, MemoryKind::Conversation], |kind| vec![kind.into()]);
    let mut client = client::memory(memory)?;
    let mut missing = None;
    for kind in kinds {
        let request = memory_v1::GetMemoryRequest { tenant: tenant.clone(), kind: kind as i32, id: id.clone() };
        let found = match client.get_memory(request).await {
            Ok(response) => response.into_inner().memory.and_then(|stored| stored.memory),
            Err(status) if status.code() == Code::NotFound => {
                missing = Some(status);
                continue;
            }
            Err(status) => return Err(status.into()),
        };
        let Some(found) = found else { continue };
        if json {
            return Ok(out::line(json::memory(&found, None))?);
        }
        let Parts { kind, task_id, conversation, question, answer, approved, finished_at } = parts(&found);
        let finished_at = finished_at.map(|time| time.to_string()).unwrap_or_default();
        let approved = if approved { "yes" } else { "no" };
        let rows = [
            ("kind", kind),
            ("task", task_id),
            ("conversation", conversation),
            ("question", question),
            ("answer", answer),
            ("approved", approved),
            ("finished", &finished_at),
        ];
        for (name, value) in rows.into_iter().filter(|(_, value)| !value.is_empty()) {
            out::line(out::hanging(&format!("{name:<14} {}", plain(value)), 15))?;
        }
        return Ok(());
    }
    Err(missing.unwrap_or_else(|| Status::not_found("there is no such memory")).into())
}

async fn forget(memory: &str, request: memory_v1::ForgetRequest, json: bool) -> anyhow::Result<()> {
    let memory_v1::ForgetResponse { count, .. } = client::memory(memory)?.forget(request).await?.into_inner();
    let line = match (json, count) {
        (true, _) => json::forgotten(count).to_string(),
        (false, 1) => "forgot 1 memory".to_owned(),
        (false, _) => format!("forgot {count} memories"),
    };
    Ok(out::line(line)?)
}

/// What both kinds have.
struct Parts<'a> {
    kind: &'static str,
    task_id: &'a str,
    conversation: &'a str,
    question: &'a str,
    answer: &'a str,
    approved: bool,
    finished_at: Option<prost_types::Timestamp>,
}

fn parts(memory: &Stored) -> Parts<'_> {
    match memory {
        Stored::Task(task) => Parts {
            kind: "task",
            task_id: &task.task_id,
            conversation: &task.conversation_id,
            question: &task.question,
            answer: &task.answer,
            approved: task.approved,
            finished_at: task.finished_at,
        },
        Stored::Turn(turn) => Parts {
            kind: "conversation",
            task_id: &turn.task_id,
            conversation: &turn.conversation_id,
            question: &turn.question,
            answer: &turn.answer,
            approved: turn.approved,
            finished_at: turn.finished_at,
        },
    }
}

fn line(memory: &Stored) -> String {
    let Parts { question, answer, approved, .. } = parts(memory);
    let mark = if approved { "" } else { "  (not approved)" };
    format!("{} → {}{mark}", plain_line(question), plain_line(answer))
}

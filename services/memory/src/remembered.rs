//! What is remembered, and its form in a store.

use autoact_wire::memory_v1;
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// What kind of memory something is. More kinds come: knowledge, conversations, documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A finished task.
    Task,
}

impl Kind {
    /// The name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Task => "task",
        }
    }

    /// The id under which every store holds the memory with this id: always the same, so that
    /// remembering twice is one memory.
    pub(crate) fn point(self, id: &str) -> Uuid {
        let digest = Sha256::new().chain_update(self.as_str()).chain_update([0]).chain_update(id).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// A finished task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskMemory {
    /// Its id, which is the memory's.
    pub task_id: String,
    /// What was asked.
    pub question: String,
    /// What the group answered.
    pub answer: String,
    /// Whether Reflect-Agent approved the answer.
    pub approved: bool,
    /// Planning loops it took.
    pub steps: u32,
    /// When.
    pub finished_at: Option<Timestamp>,
}

/// One memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Memory {
    /// A finished task.
    Task(TaskMemory),
}

impl Memory {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Memory::Task(_) => Kind::Task,
        }
    }

    /// Its id, unique in its kind.
    pub fn id(&self) -> &str {
        match self {
            Memory::Task(task) => &task.task_id,
        }
    }

    /// Whether it was approved.
    pub(crate) fn approved(&self) -> bool {
        match self {
            Memory::Task(task) => task.approved,
        }
    }

    /// What it is found by.
    pub(crate) fn text(&self) -> String {
        match self {
            Memory::Task(task) => format!("{}\n{}", task.question, task.answer),
        }
    }
}

/// What to recall.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Of which kind.
    pub kind: Kind,
    /// Similar to what.
    pub text: String,
    /// How many at most.
    pub limit: usize,
    /// Only what was approved.
    pub approved_only: bool,
}

/// A memory that is similar to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// How similar; comparable within one answer only.
    pub score: f32,
    /// The memory.
    pub memory: Memory,
}

/// A memory as a point's payload. The fields that queries filter by are `kind` and `approved`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Payload {
    Task {
        id: String,
        question: String,
        answer: String,
        approved: bool,
        steps: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<String>,
    },
}

impl From<&Memory> for Payload {
    fn from(memory: &Memory) -> Self {
        let Memory::Task(task) = memory;
        Payload::Task {
            id: task.task_id.clone(),
            question: task.question.clone(),
            answer: task.answer.clone(),
            approved: task.approved,
            steps: task.steps,
            finished_at: task.finished_at.map(|time| time.to_string()),
        }
    }
}

impl From<Payload> for Memory {
    fn from(payload: Payload) -> Self {
        let Payload::Task { id, question, answer, approved, steps, finished_at } = payload;
        // a time that somebody else wrote in another form is no reason to forget the rest
        let finished_at = finished_at.and_then(|text| text.parse().ok());
        Memory::Task(TaskMemory { task_id: id, question, answer, approved, steps, finished_at })
    }
}

impl From<memory_v1::TaskMemory> for TaskMemory {
    fn from(task: memory_v1::TaskMemory) -> Self {
        let memory_v1::TaskMemory { task_id, question, answer, approved, steps, finished_at, tenant: _ } = task;
        TaskMemory { task_id, question, answer, approved, steps, finished_at }
    }
}

impl From<TaskMemory> for memory_v1::TaskMemory {
    fn from(task: TaskMemory) -> Self {
        let TaskMemory { task_id, question, answer, approved, steps, finished_at } = task;
        memory_v1::TaskMemory { task_id, question, answer, approved, steps, finished_at, tenant: String::new() }
    }
}

impl From<Recalled> for memory_v1::RecalledMemory {
    fn from(recalled: Recalled) -> Self {
        let Memory::Task(task) = recalled.memory;
        memory_v1::RecalledMemory { score: recalled.score, memory: Some(memory_v1::recalled_memory::Memory::Task(task.into())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_survives_its_payload() {
        let task = TaskMemory {
            task_id: "t-1".into(),
            question: "What?".into(),
            answer: "That.".into(),
            approved: true,
            steps: 3,
            finished_at: Some(Timestamp { seconds: 1_700_000_000, nanos: 5_000_000 }),
        };
        let memory = Memory::Task(task);
        let json = serde_json::to_value(Payload::from(&memory)).unwrap();
        assert_eq!(json["kind"], "task");
        assert_eq!(Memory::from(serde_json::from_value::<Payload>(json).unwrap()), memory);
    }

    #[test]
    fn points_are_told_apart_and_never_move() {
        assert_eq!(Kind::Task.point("a"), Kind::Task.point("a"));
        assert_ne!(Kind::Task.point("a"), Kind::Task.point("b"));
        // stored data depends on it
        assert_eq!(Kind::Task.point("t-1").to_string(), "f8ecc895-d350-8f23-9e0d-824d4ed14cc1");
    }
}

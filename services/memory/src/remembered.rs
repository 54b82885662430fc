//! What is remembered, and its form in a store.

use autoact_trajectory::{InvalidTenant, Tenant};
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

    /// The id under which every store holds the memory of a tenant with this id: always the same,
    /// so that remembering twice is one memory, and never another tenant's. The tenant `default`
    /// has the ids that memories had before there were tenants.
    pub(crate) fn point(self, tenant: &Tenant, id: &str) -> Uuid {
        let mut digest = Sha256::new();
        if *tenant != Tenant::default() {
            // no kind is called so: the hashed bytes of two tenants always differ
            digest = digest.chain_update("tenant").chain_update([0]).chain_update(tenant.as_str()).chain_update([0]);
        }
        let digest = digest.chain_update(self.as_str()).chain_update([0]).chain_update(id).finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// A finished task.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskMemory {
    /// Whose task it was.
    pub tenant: Tenant,
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

    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        match self {
            Memory::Task(task) => &task.tenant,
        }
    }

    /// The id under which every store holds it.
    pub(crate) fn point(&self) -> Uuid {
        self.kind().point(self.tenant(), self.id())
    }

    /// Its id, unique in its tenant and kind.
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
    /// Whose memories.
    pub tenant: Tenant,
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

/// A memory as a point's payload. The fields that queries filter by are
/// `tenant`, `kind` and `approved`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Payload {
    Task {
        /// Absent in memories from before there were tenants: they are the default tenant's.
        #[serde(default)]
        tenant: String,
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
            tenant: task.tenant.to_string(),
            id: task.task_id.clone(),
            question: task.question.clone(),
            answer: task.answer.clone(),
            approved: task.approved,
            steps: task.steps,
            finished_at: task.finished_at.map(|time| time.to_string()),
        }
    }
}

impl TryFrom<Payload> for Memory {
    type Error = InvalidTenant;

    fn try_from(payload: Payload) -> Result<Self, Self::Error> {
        let Payload::Task { tenant, id, question, answer, approved, steps, finished_at } = payload;
        // a time that somebody else wrote in another form is no reason to forget the rest
        let finished_at = finished_at.and_then(|text| text.parse().ok());
        Ok(Memory::Task(TaskMemory { tenant: tenant_of(&tenant)?, task_id: id, question, answer, approved, steps, finished_at }))
    }
}

/// The tenant that a request or a stored memory names; one that names none is the default tenant's.
pub(crate) fn tenant_of(name: &str) -> Result<Tenant, InvalidTenant> {
    if name.is_empty() { Ok(Tenant::default()) } else { name.parse() }
}

impl TryFrom<memory_v1::TaskMemory> for TaskMemory {
    type Error = InvalidTenant;

    fn try_from(task: memory_v1::TaskMemory) -> Result<Self, Self::Error> {
        let memory_v1::TaskMemory { task_id, question, answer, approved, steps, finished_at, tenant } = task;
        Ok(TaskMemory { tenant: tenant_of(&tenant)?, task_id, question, answer, approved, steps, finished_at })
    }
}

impl From<TaskMemory> for memory_v1::TaskMemory {
    fn from(task: TaskMemory) -> Self {
        let TaskMemory { tenant, task_id, question, answer, approved, steps, finished_at } = task;
        memory_v1::TaskMemory { task_id, question, answer, approved, steps, finished_at, tenant: tenant.to_string() }
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
            tenant: "acme".parse().unwrap(),
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
        let read = |json| Memory::try_from(serde_json::from_value::<Payload>(json).unwrap());
        assert_eq!(read(json.clone()), Ok(memory));
        // as it was stored before there were tenants
        let mut earlier = json.clone();
        earlier.as_object_mut().unwrap().remove("tenant");
        assert_eq!(read(earlier).unwrap().tenant(), &Tenant::default());
        let mut foreign = json;
        foreign["tenant"] = "a/b".into();
        assert!(read(foreign).is_err());
    }

    #[test]
    fn points_are_told_apart_and_never_move() {
        let (ours, acme) = (Tenant::default(), "acme".parse::<Tenant>().unwrap());
        let point = |tenant, id| Kind::Task.point(tenant, id);
        assert_eq!(point(&acme, "a"), point(&acme, "a"));
        assert_ne!(point(&acme, "a"), point(&acme, "b"));
        assert_ne!(point(&ours, "a"), point(&acme, "a"));
        // an id may have any characters
        assert_ne!(point(&ours, "acme\0a"), point(&acme, "a"));
        // stored data depends on it
        assert_eq!(point(&ours, "t-1").to_string(), "f8ecc895-d350-8f23-9e0d-824d4ed14cc1");
    }
}

//! What is remembered.

use std::cmp::Reverse;

use autoact_trajectory::Tenant;
use prost_types::Timestamp;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::asked::Place;

/// What kind of memory something is. More kinds come: knowledge, documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A finished task.
    Task,
    /// A turn of a conversation.
    Turn,
    /// What is to stay forgotten. Never recalled, never listed.
    Forgotten,
}

impl Kind {
    /// The kinds that are told.
    pub const TOLD: [Kind; 2] = [Kind::Task, Kind::Turn];

    /// The name in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Task => "task",
            Kind::Turn => "conversation",
            Kind::Forgotten => "forgotten",
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
    /// The conversation it belongs to; empty: none.
    pub conversation: String,
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

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Whose conversation it is.
    pub tenant: Tenant,
    /// The conversation.
    pub conversation: String,
    /// The task that answered, whose id is the memory's.
    pub task_id: String,
    /// What was asked.
    pub question: String,
    /// What the group answered.
    pub answer: String,
    /// Whether Reflect-Agent approved the answer.
    pub approved: bool,
    /// When.
    pub finished_at: Option<Timestamp>,
}

/// What is to stay forgotten: whoever sends it again finds it so.
#[derive(Debug, Clone, PartialEq)]
pub struct Forgotten {
    /// Whose.
    pub tenant: Tenant,
    /// What: an id, a conversation or everything, of one kind.
    pub id: String,
    /// Of tasks that had ended by then.
    pub until: Timestamp,
    /// When it was asked for.
    pub at: Timestamp,
}

/// One memory.
#[derive(Debug, Clone, PartialEq)]
pub enum Memory {
    /// A finished task.
    Task(TaskMemory),
    /// A turn of a conversation.
    Turn(Turn),
    /// What is to stay forgotten.
    Forgotten(Forgotten),
}

impl Memory {
    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Memory::Task(_) => Kind::Task,
            Memory::Turn(_) => Kind::Turn,
            Memory::Forgotten(_) => Kind::Forgotten,
        }
    }

    /// Whose it is.
    pub fn tenant(&self) -> &Tenant {
        match self {
            Memory::Task(task) => &task.tenant,
            Memory::Turn(turn) => &turn.tenant,
            Memory::Forgotten(forgotten) => &forgotten.tenant,
        }
    }

    /// The conversation it belongs to; empty: none.
    pub fn conversation(&self) -> &str {
        match self {
            Memory::Task(task) => &task.conversation,
            Memory::Turn(turn) => &turn.conversation,
            Memory::Forgotten(_) => "",
        }
    }

    /// Its id, unique in its tenant and kind.
    pub fn id(&self) -> &str {
        match self {
            Memory::Task(task) => &task.task_id,
            Memory::Turn(turn) => &turn.task_id,
            Memory::Forgotten(forgotten) => &forgotten.id,
        }
    }

    /// What every store knows it by.
    pub fn key(&self) -> Key {
        Key { tenant: self.tenant().clone(), kind: self.kind(), id: self.id().to_owned() }
    }

    /// When its task ended.
    pub fn finished_at(&self) -> Option<Timestamp> {
        match self {
            Memory::Task(task) => task.finished_at,
            Memory::Turn(turn) => turn.finished_at,
            Memory::Forgotten(forgotten) => Some(forgotten.at),
        }
    }

    /// Whether it was approved.
    pub(crate) fn approved(&self) -> bool {
        match self {
            Memory::Task(task) => task.approved,
            Memory::Turn(turn) => turn.approved,
            Memory::Forgotten(_) => false,
        }
    }

    /// What it is found by.
    pub(crate) fn text(&self) -> String {
        match self {
            Memory::Task(TaskMemory { question, answer, .. }) | Memory::Turn(Turn { question, answer, .. }) => {
                format!("{question}\n{answer}")
            }
            Memory::Forgotten(_) => String::new(),
        }
    }

    /// Its place among the others, the newest first.
    pub fn place(&self) -> Place {
        let time = self.finished_at().unwrap_or_default();
        Place { time: Reverse((time.seconds, time.nanos)), kind: self.kind(), id: self.id().to_owned() }
    }
}

/// What every store knows a memory by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whose.
    pub tenant: Tenant,
    /// Of which kind.
    pub kind: Kind,
    /// Its id there.
    pub id: String,
}

impl Key {
    /// The id under which every store holds it.
    pub(crate) fn point(&self) -> Uuid {
        self.kind.point(&self.tenant, &self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_told_apart_and_never_move() {
        let (ours, acme) = (Tenant::default(), "acme".parse::<Tenant>().unwrap());
        let point = |tenant, id| Kind::Task.point(tenant, id);
        assert_eq!(point(&acme, "a"), point(&acme, "a"));
        assert_ne!(point(&acme, "a"), point(&acme, "b"));
        assert_ne!(point(&ours, "a"), point(&acme, "a"));
        assert_ne!(point(&ours, "a"), Kind::Turn.point(&ours, "a"));
        // an id may have any characters
        assert_ne!(point(&ours, "acme\0a"), point(&acme, "a"));
        // stored data depends on it
        assert_eq!(point(&ours, "t-1").to_string(), "f8ecc895-d350-8f23-9e0d-824d4ed14cc1");
    }
}

//! What is to be forgotten, and how it stays so.
//!
//! Memories come from an outbox that sends them again until they are acknowledged. So one that was
//! forgotten may come once more. A record of each forgetting says what may not: it names ids, never
//! a text.

use autoact_trajectory::Tenant;
use prost_types::Timestamp;

use crate::asked::Filter;
use crate::remembered::{Forgotten, Key, Kind, Memory};

/// After everything.
const END_OF_TIME: Timestamp = Timestamp { seconds: 253_402_300_799, nanos: 0 };

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq)]
pub struct Forgetting {
    /// Whose.
    pub tenant: Tenant,
    /// Of these kinds.
    pub kinds: Vec<Kind>,
    /// Which of them.
    pub scope: Scope,
}

/// Which memories of a tenant.
#[derive(Debug, Clone, PartialEq)]
pub enum Scope {
    /// The one with this id.
    Id(String),
    /// Those of a conversation.
    Conversation {
        /// The conversation.
        id: String,
        /// Only of tasks that had ended by then.
        before: Option<Timestamp>,
    },
    /// All.
    All {
        /// Only of tasks that had ended by then.
        before: Option<Timestamp>,
    },
}

impl Forgetting {
    /// What is there of it now; of a single memory its key.
    pub(crate) fn filter(&self, kind: Kind) -> Option<Filter> {
        let all = Filter::of(&self.tenant, kind);
        match &self.scope {
            Scope::Id(_) => None,
            Scope::Conversation { id, before } => Some(Filter { conversation: id.clone(), before: *before, ..all }),
            Scope::All { before } => Some(Filter { before: *before, ..all }),
        }
    }

    /// The record that keeps it forgotten.
    pub(crate) fn record(&self, kind: Kind, now: Timestamp) -> Forgotten {
        let (id, until) = match &self.scope {
            // no second task has its id
            Scope::Id(id) => (of_id(kind, id), END_OF_TIME),
            Scope::Conversation { id, before } => (of_conversation(kind, id), before.unwrap_or(now)),
            Scope::All { before } => (of_all(kind), before.unwrap_or(now)),
        };
        Forgotten { tenant: self.tenant.clone(), id, until, at: now }
    }
}

/// The records that may say that a memory is forgotten.
pub(crate) fn records_of(memory: &Memory) -> Vec<Key> {
    let kind = memory.kind();
    let mut ids = vec![of_id(kind, memory.id()), of_all(kind)];
    if !memory.conversation().is_empty() {
        ids.push(of_conversation(kind, memory.conversation()));
    }
    ids.into_iter().map(|id| Key { tenant: memory.tenant().clone(), kind: Kind::Forgotten, id }).collect()
}

/// Whether a record means a memory of which it may speak.
pub(crate) fn means(record: &Forgotten, memory: &Memory) -> bool {
    let time = memory.finished_at().unwrap_or_default();
    (time.seconds, time.nanos) <= (record.until.seconds, record.until.nanos)
}

fn of_id(kind: Kind, id: &str) -> String {
    format!("{}/id/{id}", kind.as_str())
}

fn of_conversation(kind: Kind, id: &str) -> String {
    format!("{}/conversation/{id}", kind.as_str())
}

fn of_all(kind: Kind) -> String {
    format!("{}/all", kind.as_str())
}

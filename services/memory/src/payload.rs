//! The form of a memory in a store.

use autoact_trajectory::{InvalidTenant, Tenant};
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};

use crate::remembered::{Forgotten, Memory, TaskMemory, Turn};

/// A memory as a point's payload. The fields that queries filter by are
/// `tenant`, `kind`, `conversation` and `approved`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Payload {
    Task {
        /// Absent in memories from before there were tenants: they are the default tenant's.
        #[serde(default)]
        tenant: String,
        /// Absent in memories from before there were conversations.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        conversation: String,
        id: String,
        question: String,
        answer: String,
        approved: bool,
        steps: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<String>,
    },
    Conversation {
        tenant: String,
        conversation: String,
        id: String,
        question: String,
        answer: String,
        approved: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finished_at: Option<String>,
    },
    Forgotten {
        tenant: String,
        id: String,
        until: String,
        at: String,
    },
}

impl From<&Memory> for Payload {
    fn from(memory: &Memory) -> Self {
        let text = |time: &Timestamp| time.to_string();
        match memory.clone() {
            Memory::Task(TaskMemory { tenant, conversation, task_id, question, answer, approved, steps, finished_at }) => Payload::Task {
                tenant: tenant.to_string(),
                conversation,
                id: task_id,
                question,
                answer,
                approved,
                steps,
                finished_at: finished_at.as_ref().map(text),
            },
            Memory::Turn(Turn { tenant, conversation, task_id, question, answer, approved, finished_at }) => Payload::Conversation {
                tenant: tenant.to_string(),
                conversation,
                id: task_id,
                question,
                answer,
                approved,
                finished_at: finished_at.as_ref().map(text),
            },
            Memory::Forgotten(Forgotten { tenant, id, until, at }) => {
                Payload::Forgotten { tenant: tenant.to_string(), id, until: text(&until), at: text(&at) }
            }
        }
    }
}

impl TryFrom<Payload> for Memory {
    type Error = InvalidTenant;

    fn try_from(payload: Payload) -> Result<Self, Self::Error> {
        // a time that somebody else wrote in another form is no reason to forget the rest
        let time = |text: Option<String>| text.and_then(|text| text.parse().ok());
        Ok(match payload {
            Payload::Task { tenant, conversation, id, question, answer, approved, steps, finished_at } => Memory::Task(TaskMemory {
                tenant: tenant_of(&tenant)?,
                conversation,
                task_id: id,
                question,
                answer,
                approved,
                steps,
                finished_at: time(finished_at),
            }),
            Payload::Conversation { tenant, conversation, id, question, answer, approved, finished_at } => Memory::Turn(Turn {
                tenant: tenant_of(&tenant)?,
                conversation,
                task_id: id,
                question,
                answer,
                approved,
                finished_at: time(finished_at),
            }),
            Payload::Forgotten { tenant, id, until, at } => Memory::Forgotten(Forgotten {
                tenant: tenant_of(&tenant)?,
                id,
                until: time(Some(until)).unwrap_or_default(),
                at: time(Some(at)).unwrap_or_default(),
            }),
        })
    }
}

/// The tenant that a request or a stored memory names; one that names none is the default tenant's.
pub(crate) fn tenant_of(name: &str) -> Result<Tenant, InvalidTenant> {
    if name.is_empty() { Ok(Tenant::default()) } else { name.parse() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_survives_its_payload() {
        let ended = Timestamp { seconds: 1_700_000_000, nanos: 5_000_000 };
        let finished_at = Some(ended);
        let task = TaskMemory {
            tenant: "acme".parse().unwrap(),
            conversation: "c-1".into(),
            task_id: "t-1".into(),
            question: "What?".into(),
            answer: "That.".into(),
            approved: true,
            steps: 3,
            finished_at,
        };
        let TaskMemory { tenant, conversation, task_id, question, answer, approved, .. } = task.clone();
        let turn = Turn { tenant: tenant.clone(), conversation, task_id, question, answer, approved, finished_at };
        let forgotten = Forgotten { tenant, id: "task/all".into(), until: ended, at: Timestamp::default() };
        let memory = Memory::Task(task);
        let json = |memory: &Memory| serde_json::to_value(Payload::from(memory)).unwrap();
        let read = |json| Memory::try_from(serde_json::from_value::<Payload>(json).unwrap());
        for (memory, kind) in [(&memory, "task"), (&Memory::Turn(turn), "conversation"), (&Memory::Forgotten(forgotten), "forgotten")] {
            assert_eq!(json(memory)["kind"], kind);
            assert_eq!(kind, memory.kind().as_str());
            assert_eq!(read(json(memory)).as_ref(), Ok(memory));
        }
        // as it was stored before there were conversations, and tenants
        let mut earlier = json(&memory);
        earlier.as_object_mut().unwrap().remove("conversation");
        assert_eq!(read(earlier.clone()).unwrap().conversation(), "");
        earlier.as_object_mut().unwrap().remove("tenant");
        assert_eq!(read(earlier).unwrap().tenant(), &Tenant::default());
        let mut foreign = json(&memory);
        foreign["tenant"] = "a/b".into();
        assert!(read(foreign).is_err());
    }
}

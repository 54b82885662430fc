//! Memories as messages, both ways.

use autoact_trajectory::InvalidTenant;
use autoact_wire::memory_v1;

use crate::asked::Recalled;
use crate::payload::tenant_of;
use crate::remembered::{Memory, TaskMemory, Turn};

impl TryFrom<memory_v1::TaskMemory> for TaskMemory {
    type Error = InvalidTenant;

    fn try_from(task: memory_v1::TaskMemory) -> Result<Self, Self::Error> {
        let memory_v1::TaskMemory { task_id, question, answer, approved, steps, finished_at, tenant, conversation_id } = task;
        let (tenant, conversation) = (tenant_of(&tenant)?, conversation_id);
        Ok(TaskMemory { tenant, conversation, task_id, question, answer, approved, steps, finished_at })
    }
}

impl From<TaskMemory> for memory_v1::TaskMemory {
    fn from(task: TaskMemory) -> Self {
        let TaskMemory { tenant, conversation, task_id, question, answer, approved, steps, finished_at } = task;
        let (tenant, conversation_id) = (tenant.to_string(), conversation);
        memory_v1::TaskMemory { task_id, question, answer, approved, steps, finished_at, tenant, conversation_id }
    }
}

impl TryFrom<memory_v1::ConversationTurn> for Turn {
    type Error = InvalidTenant;

    fn try_from(turn: memory_v1::ConversationTurn) -> Result<Self, Self::Error> {
        let memory_v1::ConversationTurn { tenant, conversation_id, task_id, question, answer, approved, finished_at } = turn;
        Ok(Turn { tenant: tenant_of(&tenant)?, conversation: conversation_id, task_id, question, answer, approved, finished_at })
    }
}

impl From<Turn> for memory_v1::ConversationTurn {
    fn from(turn: Turn) -> Self {
        let Turn { tenant, conversation, task_id, question, answer, approved, finished_at } = turn;
        let (tenant, conversation_id) = (tenant.to_string(), conversation);
        memory_v1::ConversationTurn { tenant, conversation_id, task_id, question, answer, approved, finished_at }
    }
}

/// A memory with its score; what is no memory to anybody outside is left out.
pub(crate) fn recalled(recalled: Recalled) -> memory_v1::RecalledMemory {
    use memory_v1::recalled_memory::Memory as Message;
    let memory = match recalled.memory {
        Memory::Task(task) => Some(Message::Task(task.into())),
        Memory::Turn(turn) => Some(Message::Turn(turn.into())),
        Memory::Forgotten(_) => None,
    };
    memory_v1::RecalledMemory { score: recalled.score, memory }
}

/// The same without a score.
pub(crate) fn stored(memory: Memory) -> memory_v1::StoredMemory {
    use memory_v1::stored_memory::Memory as Message;
    let memory = match memory {
        Memory::Task(task) => Some(Message::Task(task.into())),
        Memory::Turn(turn) => Some(Message::Turn(turn.into())),
        Memory::Forgotten(_) => None,
    };
    memory_v1::StoredMemory { memory }
}

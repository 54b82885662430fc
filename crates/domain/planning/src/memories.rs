//! What is remembered of a task's conversation.

use std::time::Duration;

use async_trait::async_trait;
use autoact_trajectory::{Recalled, Task};

/// Looks up what is remembered. It bounds what it returns, and how long that takes.
#[async_trait]
pub trait Memories: Send + Sync {
    /// What the agents are to know of the task's conversation. Whatever goes wrong is told in the
    /// result: a task goes on without its memories. `time_left` is how long the task can wait.
    async fn recall(&self, task: &Task, time_left: Duration) -> Recalled;
}

/// For groups that remember nothing: learning, evaluation, a gateway without a memory service.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemories;

#[async_trait]
impl Memories for NoMemories {
    async fn recall(&self, _: &Task, _: Duration) -> Recalled {
        Recalled::failed("there is no memory here")
    }
}

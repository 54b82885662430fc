//! The settings of what is recalled.

use std::time::Duration;

use autoact_config::Check;
use autoact_trajectory::MAX_RECALLED_BYTES;
use serde::{Deserialize, Serialize};

/// A person who waits for an answer hardly notices; a memory that is there answers in milliseconds.
const RECALL_TIMEOUT: Duration = Duration::from_secs(2);
/// Turns of a conversation that fit the question, beside the last one.
const RECALLED_TURNS: u32 = 4;
/// A turn is often understood from the one before it.
const RECALLED_NEIGHBOURS: u32 = 1;
/// Tasks of a conversation that fit the question.
const RECALLED_TASKS: u32 = 5;
/// In tasks: what was found out five tasks ago counts half.
const RECALL_HALF_LIFE: f64 = 5.0;
/// About 512 tokens of English, a quarter of a context of 2,048. The gateway has no tokenizer.
const RECALL_BYTES: usize = 2048;

/// What is recalled of a task's conversation before its first plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RecallConfig {
    /// How long the task waits for memory; then it goes on without.
    #[serde(with = "autoact_config::duration")]
    pub timeout: Duration,
    /// Turns that fit the question, beside the last one; 0: no turns, the last one neither.
    pub turns: u32,
    /// Turns before and after each of these.
    pub neighbours: u32,
    /// Approved tasks that fit the question; 0: none.
    pub tasks: u32,
    /// After so many tasks of the conversation, what a task found out counts half; 0: ages count
    /// nothing.
    pub half_life: f64,
    /// The most bytes of what agents are given of it.
    pub max_bytes: usize,
}

impl Default for RecallConfig {
    fn default() -> Self {
        RecallConfig {
            timeout: RECALL_TIMEOUT,
            turns: RECALLED_TURNS,
            neighbours: RECALLED_NEIGHBOURS,
            tasks: RECALLED_TASKS,
            half_life: RECALL_HALF_LIFE,
            max_bytes: RECALL_BYTES,
        }
    }
}

impl RecallConfig {
    /// What is wrong with the values.
    pub(super) fn check(&self, check: &mut Check<'_>) {
        let RecallConfig { timeout, turns, neighbours, tasks, half_life, max_bytes } = self.clone();
        check.require(!timeout.is_zero(), "recall.timeout", "above 0", autoact_config::duration::format(timeout));
        check.require(turns <= 100, "recall.turns", "0 to 100", turns);
        check.require(neighbours <= 10, "recall.neighbours", "0 to 10", neighbours);
        check.require(tasks <= 100, "recall.tasks", "0 to 100", tasks);
        check.require(half_life.is_finite() && half_life >= 0.0, "recall.half_life", "0 or more", half_life);
        check.require(max_bytes <= MAX_RECALLED_BYTES, "recall.max_bytes", &format!("0 to {MAX_RECALLED_BYTES}"), max_bytes);
    }
}

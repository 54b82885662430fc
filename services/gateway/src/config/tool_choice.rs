//! The settings of how tools are chosen from a large library.

use std::time::Duration;

use autoact_config::Check;
use autoact_tool_choice::ChoiceOptions;
use serde::{Deserialize, Serialize};

/// A model in the memory service's process needs milliseconds for a question.
const TIMEOUT: Duration = Duration::from_millis(500);
/// More in a prompt is no choice.
const MAX_LIMIT: usize = 64;

/// How tools are chosen for tasks that name none, where the library has more than a prompt should
/// have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolChoiceConfig {
    /// The most tools of a task beside those that every task has. A library without more is given as
    /// a whole.
    pub limit: usize,
    /// The least score of a chosen tool, 0 to 1, where tools are compared by words and by meaning.
    pub least: f64,
    /// The same where they are compared by words alone.
    pub least_by_words: f64,
    /// How long a question waits for its vector; then words alone count.
    #[serde(with = "autoact_config::duration")]
    pub timeout: Duration,
}

impl Default for ToolChoiceConfig {
    fn default() -> Self {
        let ChoiceOptions { limit, least, least_by_words, .. } = ChoiceOptions::default();
        ToolChoiceConfig { limit, least, least_by_words, timeout: TIMEOUT }
    }
}

impl ToolChoiceConfig {
    /// What is wrong with the values.
    pub(super) fn check(&self, check: &mut Check<'_>) {
        let ToolChoiceConfig { limit, least, least_by_words, timeout } = *self;
        check.require((1..=MAX_LIMIT).contains(&limit), "tool_choice.limit", &format!("1 to {MAX_LIMIT}"), limit);
        for (key, score) in [("tool_choice.least", least), ("tool_choice.least_by_words", least_by_words)] {
            check.require((0.0..=1.0).contains(&score), key, "0 to 1", score);
        }
        check.require(!timeout.is_zero(), "tool_choice.timeout", "above 0", autoact_config::duration::format(timeout));
    }
}

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
    /// The most tools that are chosen, beside those that every task has.
    pub limit: usize,
    /// A library with so many tools to choose from, or fewer, is given as a whole. 0: tools are always
    /// chosen, as models need that are disturbed by tools which they do not need.
    pub above: usize,
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
        ToolChoiceConfig { limit, above: limit, least, least_by_words, timeout: TIMEOUT }
    }
}

impl ToolChoiceConfig {
    /// What is wrong with the values.
    pub(super) fn check(&self, check: &mut Check<'_>) {
        let ToolChoiceConfig { limit, above, least, least_by_words, timeout } = *self;
        check.require((1..=MAX_LIMIT).contains(&limit), "tool_choice.limit", &format!("1 to {MAX_LIMIT}"), limit);
        check.require(above <= MAX_LIMIT, "tool_choice.above", &format!("0 to {MAX_LIMIT}"), above);
        for (key, score) in [("tool_choice.least", least), ("tool_choice.least_by_words", least_by_words)] {
            check.require((0.0..=1.0).contains(&score), key, "0 to 1", score);
        }
        check.require(!timeout.is_zero(), "tool_choice.timeout", "above 0", autoact_config::duration::format(timeout));
    }
}

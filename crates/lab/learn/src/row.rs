//! The rows of the evaluation's results table.

use autoact_in_process::Voices;

/// The row of the learned group.
pub const AUTOACT: &str = "autoact";
/// The row of the base model, without fine-tuning.
pub const BASE: &str = "base";

/// The row of the first round's group, if a later round's is installed. It is the paper's method
/// without the extension by rounds.
pub const ONE_ROUND: &str = "one-round";

/// A row of the results table: the adapters, and whether answers are reflected on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// Its name in the paper's tables and figures.
    pub(crate) title: &'static str,
    pub(crate) voices: Voices,
    pub(crate) without_reflection: bool,
}

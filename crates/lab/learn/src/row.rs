//! The rows of the evaluation's table.

use autoact_in_process::Voices;

/// The learned group's row.
pub const AUTOACT: &str = "autoact";
/// The base's row: − fine-tuning.
pub const BASE: &str = "base";

/// The row of the first round's group, where a further round's is installed: the paper's method to the letter.
pub const ONE_ROUND: &str = "one-round";

/// A row of the table: who speaks, and whether answers are reflected on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// Its name in files.
    pub(crate) name: &'static str,
    /// Its name in the paper's tables and figures.
    pub(crate) title: &'static str,
    pub(crate) voices: Voices,
    pub(crate) without_reflection: bool,
}

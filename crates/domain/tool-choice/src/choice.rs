//! How a choice is made.

/// How scores by words and by meaning become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Merge {
    /// Words alone.
    Words,
    /// Meaning alone; words where there are no vectors.
    Vectors,
    /// Their weighted mean; words where there are no vectors. What finds most (docs/benchmarks.md).
    #[default]
    Mean,
    /// Reciprocal ranks; words where there are no vectors. Its scores say nothing of how well a tool
    /// fits, so they suit no bound.
    ReciprocalRanks,
}

/// How a choice is made. Scores are 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChoiceOptions {
    /// Tools that are chosen at most.
    pub limit: usize,
    /// Those with a lower score are not chosen.
    pub least: f64,
    /// The same where words alone are compared: other scores.
    pub least_by_words: f64,
    /// How scores become one.
    pub merge: Merge,
}

impl Default for ChoiceOptions {
    /// Measured on the `dev` questions of `bench/tool-choice`.
    fn default() -> ChoiceOptions {
        ChoiceOptions { limit: 8, least: 0.12, least_by_words: 0.08, merge: Merge::default() }
    }
}

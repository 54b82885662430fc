//! A question of a data set in this project's types.

use autoact_tools::Page;

/// One question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The data set's own id.
    pub id: String,
    /// The question, with its options and the caption of its picture.
    pub question: String,
    /// The gold answer; `B. Louisiana` for multiple choice.
    pub answer: String,
    /// The level for reports: `easy`, `medium` or `hard`; `G1-4`, `G5-8` or `G9-12`.
    pub level: String,
    /// The question's own corpus; empty if the data set has no pages.
    pub pages: Vec<Page>,
}

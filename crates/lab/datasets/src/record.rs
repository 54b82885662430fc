//! A question of a data set in the project's types.

use autoact_tools::Page;

/// One question with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The data set's own id.
    pub id: String,
    /// What is asked, options and caption included.
    pub question: String,
    /// The gold answer; `B. Louisiana` for multiple choice.
    pub answer: String,
    /// The level it counts in: `easy`, `medium` or `hard`; `G1-4`, `G5-8` or `G9-12`.
    pub level: String,
    /// The question's own pages, which are its corpus; none: the question brings no pages.
    pub pages: Vec<Page>,
}

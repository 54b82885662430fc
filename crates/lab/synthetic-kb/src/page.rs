//! A page: sentences, and the facts that each of them states.

use crate::schema::RelationId;

/// Number of sentences that the Retrieve tool shows; the others need Lookup.
pub const LEAD_SENTENCES: usize = 6;

/// Options for writing pages.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageStyle {
    /// Probability of each of a page's possible sentences without facts.
    pub fillers: f64,
}

/// One sentence and the facts it states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSentence {
    /// The sentence.
    pub text: String,
    /// The relations of the page's type that the sentence states.
    pub states: Vec<RelationId>,
}

/// A page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its title.
    pub title: String,
    /// Its sentences, in order.
    pub sentences: Vec<PageSentence>,
}

impl Page {
    /// The text, one sentence per line, so that abbreviations (`J. R. R. Tolkien`) split no
    /// sentence.
    pub fn text(&self) -> String {
        self.sentences.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

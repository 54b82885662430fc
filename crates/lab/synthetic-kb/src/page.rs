//! A page: sentences, and the facts that each states.

use crate::schema::RelationId;

/// Sentences of a page that the Retrieve tool shows; the rest needs Lookup.
pub const LEAD_SENTENCES: usize = 6;

/// How pages are written.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageStyle {
    /// The chance of each of a page's possible sentences without facts.
    pub fillers: f64,
}

/// One sentence and the facts it states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSentence {
    /// The sentence.
    pub text: String,
    /// The relations of the page's type that it states.
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
    /// The text, one sentence a line: no reader has to guess where `J. R. R. Tolkien` ends.
    pub fn text(&self) -> String {
        self.sentences.iter().map(|sentence| sentence.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

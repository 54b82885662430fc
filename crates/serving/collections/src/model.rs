//! What a collection holds, and what is found in it.

use serde::{Deserialize, Serialize};

/// A file of a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its path below the imported directory, with `/` between its parts. It names the file.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal: what tells whether it has changed.
    pub sha256: String,
    /// What read it: another version may read it differently.
    pub reader: String,
    /// The document's title.
    pub title: String,
    /// Its format, such as `pdf`.
    pub kind: String,
    /// How many pages it has, if its format has pages.
    pub pages: Option<u32>,
    /// Its size.
    pub bytes: u64,
    /// Its segments.
    #[serde(default)]
    pub segments: u64,
}

/// A segment to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewSegment {
    /// The name by which it is opened, unique in its file.
    pub title: String,
    /// Other names by which people ask for it.
    pub aliases: Vec<String>,
    /// Whole sentences, exactly as they stand in the document's text.
    pub text: String,
    /// The heading above it.
    pub heading: Option<String>,
    /// The page, from 1, if the format has pages.
    pub page: Option<u32>,
    /// Where it begins, in bytes of the document's text.
    pub start: u64,
}

/// A segment as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    /// Its number: higher than those of all segments that were there when it was stored.
    pub number: u64,
    /// The file.
    pub path: String,
    /// The name by which it is opened, unique in the collection.
    pub title: String,
    /// Whole sentences, exactly as they stand in the document's text.
    pub text: String,
    /// The heading above it.
    pub heading: Option<String>,
    /// The page, from 1, if the format has pages.
    pub page: Option<u32>,
    /// Where it begins, in bytes of the document's text.
    pub start: u64,
}

impl Segment {
    /// What an embedder reads of it: the title says what the text is about.
    pub fn embedded(&self) -> String {
        format!("{}\n{}", self.title, self.text)
    }
}

/// A segment that a query found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The segment.
    pub segment: Segment,
    /// Higher is better; comparable within one collection and query.
    pub score: f32,
}

/// What a name led to in a collection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// A segment.
    Segment {
        /// The segment.
        segment: Box<Segment>,
        /// The name is a spelling of its title; otherwise it is an alias, or misspelt.
        by_title: bool,
        /// Others that have this name as an alias.
        also: Vec<Segment>,
    },
    /// None: the titles like it, best first.
    Unknown {
        /// The titles.
        similar: Vec<String>,
    },
}

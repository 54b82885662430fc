//! A document: its text, and the sections that divide it.

use std::ops::Range;
use std::path::Path;

use autoact_base::lines::{one_line, several_lines};

use serde::{Deserialize, Serialize};

use crate::error::ReadError;

/// A longer heading is a paragraph in a large font.
const MAX_HEADING_CHARS: usize = 200;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// A PDF with a text layer.
    Pdf,
    /// HTML, of which the main content is read.
    Html,
    /// Markdown (CommonMark, with tables and footnotes).
    Markdown,
    /// Plain text.
    Text,
}

impl Kind {
    /// The format that a file's name says.
    pub fn of(path: &Path) -> Option<Kind> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "pdf" => Some(Kind::Pdf),
            "html" | "htm" | "xhtml" => Some(Kind::Html),
            "md" | "markdown" => Some(Kind::Markdown),
            "txt" | "text" => Some(Kind::Text),
            _ => None,
        }
    }

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pdf => "pdf",
            Kind::Html => "html",
            Kind::Markdown => "markdown",
            Kind::Text => "text",
        }
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The file, relative to the imported directory, with `/` between its parts.
    pub path: String,
    /// SHA-256 of the file's bytes, in hexadecimal.
    pub sha256: String,
    /// The file's size.
    pub bytes: u64,
    /// Its title: what it says, else the file's name.
    pub title: String,
    /// Its format.
    pub kind: Kind,
    /// How many pages it has, if its format has pages.
    pub pages: Option<u32>,
    /// Its extracted text. A paragraph is one line; blank lines stand between paragraphs.
    pub text: String,
    /// The parts of its text, in order. They do not overlap, and only line breaks are between them.
    pub sections: Vec<Section>,
}

/// A part of a document: what stands under one heading, on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    /// The heading, on one line.
    pub heading: Option<String>,
    /// The page, from 1, if the format has pages.
    pub page: Option<u32>,
    /// Its bytes in [`Document::text`].
    pub span: Range<usize>,
}

impl Document {
    /// The text of one of its sections.
    pub fn section_text(&self, section: &Section) -> &str {
        self.text.get(section.span.clone()).unwrap_or_default()
    }
}

/// What a parser makes of a file.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Extracted {
    pub(crate) title: Option<String>,
    pub(crate) pages: Option<u32>,
    pub(crate) text: String,
    pub(crate) sections: Vec<Section>,
}

/// Collects the text of a document, block by block.
#[derive(Debug)]
pub(crate) struct Builder {
    extracted: Extracted,
    heading: Option<String>,
    page: Option<u32>,
    /// The next block begins a section.
    begins: bool,
    max_bytes: usize,
}

impl Builder {
    pub(crate) fn new(max_bytes: usize) -> Builder {
        Builder { extracted: Extracted::default(), heading: None, page: None, begins: true, max_bytes }
    }

    /// The document's title; the first one counts.
    pub(crate) fn title(&mut self, title: &str) {
        let title = one_line(title);
        if self.extracted.title.is_none() && !title.is_empty() {
            self.extracted.title = Some(title);
        }
    }

    /// What follows stands under this heading.
    pub(crate) fn heading(&mut self, heading: &str) -> Result<(), ReadError> {
        let heading = one_line(heading);
        if heading.chars().count() > MAX_HEADING_CHARS {
            return self.paragraph(&heading);
        }
        self.heading = (!heading.is_empty()).then_some(heading);
        self.begins = true;
        Ok(())
    }

    /// What follows stands on this page.
    pub(crate) fn page(&mut self, page: u32) {
        self.page = Some(page);
        self.begins = true;
        self.extracted.pages = Some(page);
    }

    /// A paragraph: one line, with a blank line before it.
    pub(crate) fn paragraph(&mut self, text: &str) -> Result<(), ReadError> {
        self.push("\n\n", &one_line(text))
    }

    /// A list item or the row of a table: one line.
    pub(crate) fn line(&mut self, text: &str) -> Result<(), ReadError> {
        self.push("\n", &one_line(text))
    }

    /// Code or verse: its lines stay.
    pub(crate) fn lines(&mut self, text: &str) -> Result<(), ReadError> {
        self.push("\n\n", &several_lines(text))
    }

    fn push(&mut self, before: &str, block: &str) -> Result<(), ReadError> {
        if block.is_empty() {
            return Ok(());
        }
        let text = &mut self.extracted.text;
        if text.len() + before.len() + block.len() > self.max_bytes {
            return Err(ReadError::TooMuchText { limit: self.max_bytes });
        }
        if !text.is_empty() {
            text.push_str(if self.begins { "\n\n" } else { before });
        }
        let start = text.len();
        text.push_str(block);
        let end = text.len();
        match self.extracted.sections.last_mut().filter(|_| !self.begins) {
            Some(section) => section.span.end = end,
            None => self.extracted.sections.push(Section { heading: self.heading.clone(), page: self.page, span: start..end }),
        }
        self.begins = false;
        Ok(())
    }

    /// What was collected.
    pub(crate) fn finish(self) -> Extracted {
        self.extracted
    }
}

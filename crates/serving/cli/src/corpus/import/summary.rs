//! What was read of a directory.

use std::collections::BTreeMap;

use autoact_base::error::chain;
use autoact_documents::{Document, FileEntry, Ignored, ReadError};
use serde::Serialize;

use crate::out;
use crate::text::plain_line;

/// What was read.
#[derive(Debug, Default, Serialize)]
pub(super) struct Reading {
    /// The files that were read.
    pub(super) files: usize,
    /// How many of each format.
    kinds: BTreeMap<&'static str, usize>,
    /// The pages of those that have pages.
    pages: u64,
    /// The sections of all of them.
    sections: usize,
    /// The files that could not be read.
    pub(super) skipped: Vec<Skipped>,
    /// What was passed over.
    pub(super) ignored: Passed,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Skipped {
    file: String,
    reason: &'static str,
    message: String,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Passed {
    unknown: usize,
    hidden: usize,
    links: usize,
    special: usize,
    unreadable: Vec<String>,
}

impl Reading {
    pub(super) fn new(ignored: &Ignored) -> Reading {
        let Ignored { unknown, hidden, links, special, unreadable } = ignored.clone();
        Reading { ignored: Passed { unknown, hidden, links, special, unreadable }, ..Reading::default() }
    }

    /// A file was read.
    pub(super) fn read(&mut self, document: &Document) {
        self.files += 1;
        *self.kinds.entry(document.kind.name()).or_default() += 1;
        self.pages += u64::from(document.pages.unwrap_or_default());
        self.sections += document.sections.len();
    }

    /// A file could not be read.
    pub(super) fn skip(&mut self, file: &FileEntry, error: &ReadError) {
        self.skipped.push(Skipped { file: file.path.clone(), reason: error.reason(), message: chain(error) });
    }

    /// A file was read, and could not be stored.
    pub(super) fn refuse(&mut self, file: &FileEntry, message: String) {
        self.skipped.push(Skipped { file: file.path.clone(), reason: "refused", message });
    }

    /// For people: what was not read, and what was.
    pub(super) fn show(&self) -> anyhow::Result<()> {
        for skipped in &self.skipped {
            out::line(format_args!("skipped {}: {}", plain_line(&skipped.file), skipped.message))?;
        }
        for path in &self.ignored.unreadable {
            let path = plain_line(path);
            out::line(format_args!("skipped {path}: cannot read the directory, or it lies too deep"))?;
        }
        let Passed { unknown, hidden, links, special, .. } = self.ignored;
        let passed = [(unknown, "of other formats"), (hidden, "hidden"), (links, "links"), (special, "no regular files")];
        let passed: Vec<String> = passed.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
        if !passed.is_empty() {
            out::line(format_args!("passed over: {}", passed.join(", ")))?;
        }
        let kinds: Vec<String> = self.kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        let Reading { files, pages, sections, skipped, .. } = self;
        out::line(format_args!("read {files} files{kinds}: {pages} PDF pages, {sections} sections; {} skipped", skipped.len()))?;
        Ok(())
    }
}

#[cfg(test)]
impl Reading {
    /// One with all its fields.
    pub(super) fn example() -> Reading {
        Reading { skipped: vec![Skipped::default()], ..Reading::default() }
    }
}

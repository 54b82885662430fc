//! Changing one collection: segments and entries go into tantivy's writer, and last once they are
//! committed.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use autoact_tools::text::canonical;
use serde::Serialize;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::{IndexWriter, TantivyDocument, TantivyError, Term};

use crate::fields::Fields;
use crate::model::{Entry, NewSegment, Segment};
use crate::search::Search;
use crate::segment_names::{SegmentNames, unique_title};

/// What the writer may hold before it writes an index segment.
const WRITER_BYTES: usize = 32_000_000;
/// An index segment is merged once this share of its documents is deleted: replaced files do not
/// stay for long.
const MOST_DELETED: f32 = 0.2;
/// Index segments below this many documents are merged as soon as there are eight of them.
const SMALL_SEGMENT: u32 = 5_000;

/// The writer of a collection. Only one exists at a time.
pub(crate) struct Writer {
    writer: IndexWriter,
    fields: Fields,
    next: u64,
    /// Folded titles that are not committed yet, and their files.
    pending: HashMap<String, String>,
}

impl Writer {
    pub(crate) fn open(index: &tantivy::Index, fields: Fields, search: &Search) -> tantivy::Result<Writer> {
        let writer = index.writer_with_options(options())?;
        let mut merges = LogMergePolicy::default();
        merges.set_min_layer_size(SMALL_SEGMENT);
        merges.set_del_docs_ratio_before_merge(MOST_DELETED);
        writer.set_merge_policy(Box::new(merges));
        Ok(Writer { writer, fields, next: search.next_number()?, pending: HashMap::new() })
    }

    /// Replaces what there is of a file.
    pub(crate) fn put(&mut self, entry: &Entry, segments: Vec<NewSegment>, search: &Search) -> tantivy::Result<u64> {
        let Fields { path, entry: is_entry, payload, .. } = self.fields;
        self.writer.delete_term(Term::from_field_text(path, &entry.path));
        let mut stored = 0;
        for segment in segments {
            self.add(entry, segment, search)?;
            stored += 1;
        }
        let entry = Entry { segments: stored, ..entry.clone() };
        let mut document = TantivyDocument::default();
        document.add_text(path, &entry.path);
        document.add_u64(is_entry, 1);
        document.add_bytes(payload, &json(&entry)?);
        self.writer.add_document(document)?;
        Ok(stored)
    }

    fn add(&mut self, entry: &Entry, new: NewSegment, search: &Search) -> tantivy::Result<()> {
        let NewSegment { title, mut aliases, text, heading, page, start } = new;
        let given = title.clone();
        let title = self.unique(title, &entry.path, search)?;
        if given != title {
            aliases.push(given);
        }
        let segment = Segment { number: self.next, path: entry.path.clone(), title, text, heading, page, start };
        self.next += 1;
        let Fields { path, number, name, alias, title, text, payload, .. } = self.fields;
        let mut document = TantivyDocument::default();
        document.add_text(path, &segment.path);
        document.add_u64(number, segment.number);
        let SegmentNames { name: folded, aliases } = SegmentNames::new(&segment.title, &aliases);
        document.add_text(name, &folded);
        for other in &aliases {
            document.add_text(alias, other);
        }
        document.add_text(title, canonical(&segment.title));
        document.add_text(text, canonical(&segment.text));
        document.add_bytes(payload, &json(&segment)?);
        self.writer.add_document(document)?;
        self.pending.insert(folded, segment.path);
        Ok(())
    }

    /// The title, with the file's name where another file has the same.
    fn unique(&self, title: String, path: &str, search: &Search) -> tantivy::Result<String> {
        unique_title(&title, path, self.next, |folded| {
            let pending = self.pending.get(folded).is_some_and(|other| other != path);
            Ok(pending || search.is_title_elsewhere(folded, path)?)
        })
    }

    /// Removes files.
    pub(crate) fn delete(&mut self, paths: &[String]) {
        for path in paths {
            self.writer.delete_term(Term::from_field_text(self.fields.path, path));
        }
    }

    /// Makes everything so far survive a crash.
    pub(crate) fn commit(&mut self, files: &Path) -> tantivy::Result<()> {
        self.writer.commit()?;
        // the list of index segments has been renamed into place: that too has to survive
        File::open(files)?.sync_all()?;
        self.pending.clear();
        Ok(())
    }

    /// Forgets what is not committed.
    pub(crate) fn rollback(&mut self) -> tantivy::Result<()> {
        self.pending.clear();
        self.writer.rollback().map(drop)
    }

    /// Ends it. A merge goes on to its end first: it writes into the collection's files.
    pub(crate) fn close(self) -> tantivy::Result<()> {
        self.writer.wait_merging_threads()
    }
}

/// Rewrites the index segments that hold deleted documents without them, and removes their files.
/// No writer may be open.
pub(crate) fn purge(index: &tantivy::Index, reload: impl FnOnce() -> tantivy::Result<()>) -> tantivy::Result<()> {
    let mut writer: IndexWriter = index.writer_with_options(options())?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    for meta in index.searchable_segment_metas()? {
        if meta.has_deletes() {
            writer.merge(&[meta.id()]).wait()?;
        }
    }
    reload()?;
    writer.garbage_collect_files().wait()?;
    writer.wait_merging_threads()
}

fn options() -> tantivy::indexer::IndexWriterOptions {
    IndexWriterOptions::builder().memory_budget_per_thread(WRITER_BYTES).num_worker_threads(1).num_merge_threads(1).build()
}

fn json<T: Serialize>(value: &T) -> tantivy::Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| TantivyError::InternalError(error.to_string()))
}

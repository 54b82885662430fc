//! The embedded store's index: tantivy, in files. Synchronous; [`super::embedded`] owns it on a
//! thread.
//!
//! A memory is one document. Its words are ranked by BM25, its payload is stored beside them, and
//! its point id is the key by which it is replaced and forgotten. Tantivy panics on some damaged
//! files, so every call is guarded: a panic becomes an error.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use autoact_collections::guarded;
use tantivy::collector::Count;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::query::TermQuery;
use tantivy::schema::IndexRecordOption;
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};
use uuid::Uuid;

use super::StoreError;
use super::open::{Directory, OpenError};
use super::search::{Fields, Search, partition};
use crate::payload::Payload;
use crate::remembered::{Key, Memory};
use crate::words::Words;

/// What the writer may hold before it writes a segment: the least that tantivy allows. A batch of
/// memories is far smaller.
const WRITER_BYTES: usize = 15_000_000;
/// Every commit makes a segment. Segments below this many documents are merged as soon as there are
/// eight of them. The default (10,000) would rewrite thousands of memories every eighth commit.
const SMALL_SEGMENT: u32 = 500;
/// Tantivy's list of segments, replaced at each commit. Where it is, an index is.
const META: &str = "meta.json";
/// Tantivy's list of the files that are its own.
const MANAGED: &str = ".managed.json";

/// The index, for its one writer.
pub(super) struct Index {
    index: tantivy::Index,
    /// Taken while the files are written again, and after the end.
    writer: Option<IndexWriter>,
    search: Search,
    files: PathBuf,
    /// What has changed since the last commit: whether the memory is there.
    changed: HashMap<Uuid, bool>,
    /// After the writer: its files are ours until it has ended.
    _directory: Directory,
}

impl Index {
    /// Opens the index in a directory, or makes it.
    pub(super) fn open(path: &Path) -> Result<Index, OpenError> {
        let directory = Directory::take(path)?;
        let files = directory.index()?;
        let is_there = |name: &str| files.join(name).exists();
        match (is_there(META), is_there(MANAGED)) {
            (true, true) => {}
            (true, false) => return Err(directory.damaged(format!("`{MANAGED}` is missing"))),
            // a crash while it was made leaves no segment
            (false, _) if segments(&files).map_err(|source| directory.failed(source))? => {
                return Err(directory.damaged(format!("`{META}` is missing")));
            }
            (false, _) => {}
        }
        let (schema, fields) = Fields::schema();
        let opened = guarded(|| {
            let index =
                if is_there(META) { tantivy::Index::open_in_dir(&files)? } else { tantivy::Index::create_in_dir(&files, schema.clone())? };
            if index.schema() != schema {
                return Err(TantivyError::SchemaError("its fields are not a memory's".to_owned()));
            }
            if let Some(file) = index.validate_checksum()?.into_iter().next() {
                return Err(TantivyError::InternalError(format!("`{}` has another checksum", file.display())));
            }
            let writer = writer(&index)?;
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            Ok((index, writer, reader))
        });
        let (index, writer, reader) = opened.map_err(|error| directory.damaged(error))?;
        let search = Search { reader, fields };
        Ok(Index { index, writer: Some(writer), search, files, changed: HashMap::new(), _directory: directory })
    }

    /// For readers.
    pub(super) fn search(&self) -> Search {
        self.search.clone()
    }

    /// Stores or replaces a memory; [`commit`](Self::commit) makes it last and lets it be found.
    pub(super) fn remember(&mut self, memory: &Memory, words: &Words) -> Result<(), StoreError> {
        let Fields { point, kind, approved, words: field, payload } = self.search.fields;
        let id = memory.key().point();
        let mut document = TantivyDocument::default();
        document.add_bytes(point, id.as_bytes());
        document.add_text(kind, partition(memory.tenant(), memory.kind(), ""));
        if !memory.conversation().is_empty() {
            document.add_text(kind, partition(memory.tenant(), memory.kind(), memory.conversation()));
        }
        document.add_bool(approved, memory.approved());
        document.add_pre_tokenized_text(field, tokens(words.of(&memory.text())));
        document.add_bytes(payload, &serde_json::to_vec(&Payload::from(memory)).map_err(engine)?);
        let writer = self.writer.as_mut().ok_or(StoreError::Closed)?;
        guarded(|| {
            writer.delete_term(Term::from_field_bytes(point, id.as_bytes()));
            writer.add_document(document)
        })
        .map_err(StoreError::Engine)?;
        self.changed.insert(id, true);
        Ok(())
    }

    /// Removes a memory; false when there was none. [`commit`](Self::commit) makes it last.
    pub(super) fn forget(&mut self, key: &Key) -> Result<bool, StoreError> {
        let id = key.point();
        let term = Term::from_field_bytes(self.search.fields.point, id.as_bytes());
        let is_there = match self.changed.get(&id) {
            Some(is_there) => *is_there,
            None => guarded(|| {
                let query = TermQuery::new(term.clone(), IndexRecordOption::Basic);
                Ok(self.search.reader.searcher().search(&query, &Count)? > 0)
            })
            .map_err(StoreError::Engine)?,
        };
        if is_there {
            let writer = self.writer.as_mut().ok_or(StoreError::Closed)?;
            guarded(|| Ok(writer.delete_term(term))).map_err(StoreError::Engine)?;
            self.changed.insert(id, false);
        }
        Ok(is_there)
    }

    /// Makes everything so far survive a crash, and lets it be found.
    pub(super) fn commit(&mut self) -> Result<(), StoreError> {
        let writer = self.writer.as_mut().ok_or(StoreError::Closed)?;
        let committed = guarded(|| {
            writer.commit()?;
            // the list of segments has been renamed into place: that too has to survive
            File::open(&self.files)?.sync_all()?;
            self.search.reader.reload()
        });
        self.changed.clear();
        committed.map_err(StoreError::Engine)
    }

    /// Writes the files again that hold deleted memories, without them, and removes the old ones.
    /// Everything has to be committed.
    pub(super) fn purge(&mut self) -> Result<(), StoreError> {
        let Some(usual) = self.writer.take() else { return Err(StoreError::Closed) };
        let purged = guarded(|| {
            // merges of its own have to end first: both would take the same segments
            usual.wait_merging_threads()?;
            let mut purging: IndexWriter = self.index.writer_with_options(options())?;
            purging.set_merge_policy(Box::new(NoMergePolicy));
            for meta in self.index.searchable_segment_metas()? {
                if meta.has_deletes() {
                    purging.merge(&[meta.id()]).wait()?;
                }
            }
            self.search.reader.reload()?;
            purging.garbage_collect_files().wait()?;
            purging.wait_merging_threads()?;
            File::open(&self.files)?.sync_all()?;
            writer(&self.index)
        });
        self.writer = Some(purged.map_err(StoreError::Engine)?);
        Ok(())
    }

    /// Ends it. What is not committed is lost.
    pub(super) fn close(mut self) {
        let Some(writer) = self.writer.take() else { return };
        // a merge that went on would write into a directory that is another process's by then
        if let Err(error) = guarded(|| writer.wait_merging_threads()) {
            tracing::error!(error, "the memory store did not close well");
        }
    }
}

fn options() -> IndexWriterOptions {
    IndexWriterOptions::builder().memory_budget_per_thread(WRITER_BYTES).num_worker_threads(1).num_merge_threads(1).build()
}

/// The usual writer.
fn writer(index: &tantivy::Index) -> tantivy::Result<IndexWriter> {
    let writer = index.writer_with_options(options())?;
    let mut merges = LogMergePolicy::default();
    merges.set_min_layer_size(SMALL_SEGMENT);
    writer.set_merge_policy(Box::new(merges));
    Ok(writer)
}

/// A memory's words as tantivy takes them.
fn tokens(words: Vec<String>) -> PreTokenizedString {
    let token = |(position, text)| Token { position, text, ..Token::default() };
    PreTokenizedString { text: String::new(), tokens: words.into_iter().enumerate().map(token).collect() }
}

/// Whether a directory holds anything but what an index without a segment has.
fn segments(files: &Path) -> std::io::Result<bool> {
    for entry in std::fs::read_dir(files)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if name != MANAGED && !name.ends_with(".lock") && !name.starts_with(".tmp") {
            return Ok(true);
        }
    }
    Ok(false)
}

fn engine(error: impl std::fmt::Display) -> StoreError {
    StoreError::Engine(error.to_string())
}

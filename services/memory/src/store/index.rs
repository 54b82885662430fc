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
use autoact_trajectory::Tenant;
use tantivy::collector::{Count, DocSetCollector, TopDocs};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy, NoMergePolicy};
use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, Occur, TermQuery, TermSetQuery};
use tantivy::schema::{Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{DocAddress, IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError, Term};
use uuid::Uuid;

use super::open::{Directory, OpenError};
use super::{StoreError, stored};
use crate::payload::Payload;
use crate::remembered::{Filter, First, Key, Kind, Memory, Query, Recalled};
use crate::words::Words;

/// What the writer may hold before it writes a segment: the least that tantivy allows. A batch of
/// memories is far smaller.
const WRITER_BYTES: usize = 15_000_000;
/// Every commit makes a segment. Segments below this many documents are merged as soon as there are
/// eight of them. The default (10,000) would rewrite thousands of memories every eighth commit.
const SMALL_SEGMENT: u32 = 500;
/// A query's terms, the rarest first. A question has fewer; a page of text as a query has more, and
/// its frequent words cost the most and say the least.
const MOST_TERMS: usize = 64;
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

/// The index, for readers of what is committed.
#[derive(Clone)]
pub(super) struct Search {
    reader: IndexReader,
    fields: Fields,
}

#[derive(Debug, Clone, Copy)]
struct Fields {
    /// The point id.
    point: Field,
    /// Whose and of which kind, and of which conversation: see [`partition`].
    kind: Field,
    approved: Field,
    words: Field,
    payload: Field,
}

impl Fields {
    /// The schema; change the directory's layout with it.
    fn schema() -> (Schema, Fields) {
        let words = TextFieldIndexing::default().set_tokenizer("raw").set_fieldnorms(true).set_index_option(IndexRecordOption::WithFreqs);
        let mut schema = Schema::builder();
        let fields = Fields {
            point: schema.add_bytes_field("point", INDEXED),
            kind: schema.add_text_field("kind", STRING),
            approved: schema.add_bool_field("approved", INDEXED),
            words: schema.add_text_field("words", TextOptions::default().set_indexing_options(words)),
            payload: schema.add_bytes_field("payload", STORED),
        };
        (schema.build(), fields)
    }
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

impl Search {
    /// The memories most similar to a query, best first.
    pub(super) fn recall(&self, query: &Query, words: &Words) -> Result<Vec<Recalled>, StoreError> {
        let mut asked = words.of(&query.text);
        asked.sort_unstable();
        asked.dedup();
        let found = guarded(|| {
            let searcher = self.reader.searcher();
            let Some(request) = self.request(&searcher, query, asked)? else { return Ok(Vec::new()) };
            let hits = searcher.search(&request, &TopDocs::with_limit(query.limit).order_by_score())?;
            hits.into_iter().map(|(score, address)| Ok((score, self.payload(&searcher, address)?))).collect::<tantivy::Result<Vec<_>>>()
        });
        let found = found.map_err(StoreError::Engine)?;
        let recalled = |(score, payload): (f32, Vec<u8>)| Some(Recalled { score, memory: stored(serde_json::from_slice(&payload))? });
        Ok(found.into_iter().filter_map(recalled).collect())
    }

    /// Those of these memories that there are.
    pub(super) fn get(&self, keys: &[Key]) -> Result<Vec<Memory>, StoreError> {
        let term = |key: &Key| Term::from_field_bytes(self.fields.point, key.point().as_bytes());
        let found = guarded(|| {
            let searcher = self.reader.searcher();
            let found = searcher.search(&TermSetQuery::new(keys.iter().map(term)), &DocSetCollector)?;
            found.into_iter().map(|address| self.payload(&searcher, address)).collect::<tantivy::Result<Vec<_>>>()
        });
        Ok(found.map_err(StoreError::Engine)?.iter().filter_map(|payload| stored(serde_json::from_slice(payload))).collect())
    }

    /// The first memories that a filter admits.
    pub(super) fn scan(&self, filter: &Filter) -> Result<Vec<Memory>, StoreError> {
        let mut first = First::new(filter);
        let read = guarded(|| {
            let searcher = self.reader.searcher();
            let query: Box<dyn tantivy::query::Query> = match &filter.tenant {
                Some(tenant) => {
                    let partition = partition(tenant, filter.kind, &filter.conversation);
                    Box::new(TermQuery::new(Term::from_field_text(self.fields.kind, &partition), IndexRecordOption::Basic))
                }
                None => Box::new(AllQuery),
            };
            let mut found: Vec<_> = searcher.search(&query, &DocSetCollector)?.into_iter().collect();
            // neighbours on disk are compressed together
            found.sort_unstable();
            for address in found {
                if let Some(memory) = stored(serde_json::from_slice(&self.payload(&searcher, address)?)) {
                    first.push(memory);
                }
            }
            Ok(())
        });
        read.map_err(StoreError::Engine)?;
        Ok(first.finish())
    }

    fn payload(&self, searcher: &Searcher, address: DocAddress) -> tantivy::Result<Vec<u8>> {
        let document: TantivyDocument = searcher.doc(address)?;
        let payload = document.get_first(self.fields.payload).and_then(|value| value.as_bytes().map(<[u8]>::to_vec));
        Ok(payload.unwrap_or_default())
    }

    /// What to search for; nothing when none of the words is in any memory.
    fn request(&self, searcher: &Searcher, query: &Query, asked: Vec<String>) -> tantivy::Result<Option<BooleanQuery>> {
        let mut terms = Vec::with_capacity(asked.len());
        for word in asked {
            let term = Term::from_field_text(self.fields.words, &word);
            match searcher.doc_freq(&term)? {
                0 => {}
                memories => terms.push((memories, term)),
            }
        }
        if terms.is_empty() {
            return Ok(None);
        }
        terms.sort_unstable_by_key(|(memories, _)| *memories);
        let any = terms.into_iter().take(MOST_TERMS).map(|(_, term)| TermQuery::new(term, IndexRecordOption::WithFreqs));
        let mut clauses: Vec<(Occur, Box<dyn tantivy::query::Query>)> =
            vec![(Occur::Must, Box::new(BooleanQuery::union(any.map(|term| Box::new(term) as Box<dyn tantivy::query::Query>).collect())))];
        // a filter is no part of the score
        let mut filter = |term| {
            let term = Box::new(TermQuery::new(term, IndexRecordOption::Basic));
            clauses.push((Occur::Must, Box::new(BoostQuery::new(term, 0.0))));
        };
        filter(Term::from_field_text(self.fields.kind, &partition(&query.tenant, query.kind, &query.conversation)));
        if query.approved_only {
            filter(Term::from_field_bool(self.fields.approved, true));
        }
        Ok(Some(BooleanQuery::new(clauses)))
    }
}

/// The memories among which a query looks: those of one tenant and kind, or of one conversation of
/// theirs. The default tenant's are named by the kind alone, as all were before there were tenants;
/// so the index of that time is read as it is, and a program of that time finds no other tenant's
/// memories in an index of now. The same goes for conversations, which are one more value of the
/// same field.
fn partition(tenant: &Tenant, kind: Kind, conversation: &str) -> String {
    let kind = kind.as_str();
    let partition = if *tenant == Tenant::default() { kind.to_owned() } else { format!("{tenant}/{kind}") };
    // neither a tenant nor a kind has this character
    if conversation.is_empty() { partition } else { format!("{partition}@{conversation}") }
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

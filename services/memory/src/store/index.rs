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
use tantivy::collector::{Count, TopDocs};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::query::{BooleanQuery, BoostQuery, Occur, TermQuery};
use tantivy::schema::{Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, Searcher, TantivyDocument, TantivyError, Term};
use uuid::Uuid;

use super::open::{Directory, OpenError};
use super::{StoreError, recalled};
use crate::remembered::{Kind, Memory, Payload, Query, Recalled};
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
    writer: IndexWriter,
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
    /// Whose, and of which kind: see [`partition`].
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
            let options = IndexWriterOptions::builder().memory_budget_per_thread(WRITER_BYTES).num_worker_threads(1).num_merge_threads(1);
            let writer = index.writer_with_options(options.build())?;
            let mut merges = LogMergePolicy::default();
            merges.set_min_layer_size(SMALL_SEGMENT);
            writer.set_merge_policy(Box::new(merges));
            let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
            Ok((writer, reader))
        });
        let (writer, reader) = opened.map_err(|error| directory.damaged(error))?;
        Ok(Index { writer, search: Search { reader, fields }, files, changed: HashMap::new(), _directory: directory })
    }

    /// For readers.
    pub(super) fn search(&self) -> Search {
        self.search.clone()
    }

    /// Stores or replaces a memory; [`commit`](Self::commit) makes it last and lets it be found.
    pub(super) fn remember(&mut self, memory: &Memory, words: &Words) -> Result<(), StoreError> {
        let Fields { point, kind, approved, words: field, payload } = self.search.fields;
        let id = memory.point();
        let mut document = TantivyDocument::default();
        document.add_bytes(point, id.as_bytes());
        document.add_text(kind, partition(memory.tenant(), memory.kind()));
        document.add_bool(approved, memory.approved());
        document.add_pre_tokenized_text(field, tokens(words.of(&memory.text())));
        document.add_bytes(payload, &serde_json::to_vec(&Payload::from(memory)).map_err(engine)?);
        guarded(|| {
            self.writer.delete_term(Term::from_field_bytes(point, id.as_bytes()));
            self.writer.add_document(document)
        })
        .map_err(StoreError::Engine)?;
        self.changed.insert(id, true);
        Ok(())
    }

    /// Removes a memory; false when there was none. [`commit`](Self::commit) makes it last.
    pub(super) fn forget(&mut self, tenant: &Tenant, kind: Kind, id: &str) -> Result<bool, StoreError> {
        let id = kind.point(tenant, id);
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
            guarded(|| Ok(self.writer.delete_term(term))).map_err(StoreError::Engine)?;
            self.changed.insert(id, false);
        }
        Ok(is_there)
    }

    /// Makes everything so far survive a crash, and lets it be found.
    pub(super) fn commit(&mut self) -> Result<(), StoreError> {
        let committed = guarded(|| {
            self.writer.commit()?;
            // the list of segments has been renamed into place: that too has to survive
            File::open(&self.files)?.sync_all()?;
            self.search.reader.reload()
        });
        self.changed.clear();
        committed.map_err(StoreError::Engine)
    }

    /// Ends it. What is not committed is lost.
    pub(super) fn close(self) {
        // a merge that went on would write into a directory that is another process's by then
        if let Err(error) = guarded(|| self.writer.wait_merging_threads()) {
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
            let payload = |(score, address)| {
                let document: TantivyDocument = searcher.doc(address)?;
                let payload = document.get_first(self.fields.payload).and_then(|value| value.as_bytes().map(<[u8]>::to_vec));
                Ok((score, payload.unwrap_or_default()))
            };
            hits.into_iter().map(payload).collect::<tantivy::Result<Vec<_>>>()
        });
        let found = found.map_err(StoreError::Engine)?;
        Ok(found.into_iter().filter_map(|(score, payload)| recalled(score, serde_json::from_slice(&payload))).collect())
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
        filter(Term::from_field_text(self.fields.kind, &partition(&query.tenant, query.kind)));
        if query.approved_only {
            filter(Term::from_field_bool(self.fields.approved, true));
        }
        Ok(Some(BooleanQuery::new(clauses)))
    }
}

/// The memories among which a query looks: those of one tenant and kind. The default tenant's are
/// named by the kind alone, as all were before there were tenants; so the index of that time is
/// read as it is, and a program of that time finds no other tenant's memories in an index of now.
fn partition(tenant: &Tenant, kind: Kind) -> String {
    if *tenant == Tenant::default() { kind.as_str().to_owned() } else { format!("{tenant}/{}", kind.as_str()) }
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

//! Reading the embedded store's index: what is committed, from any thread.

use autoact_collections::guarded;
use autoact_trajectory::Tenant;
use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, Occur, TermQuery, TermSetQuery};
use tantivy::schema::{Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions, Value};
use tantivy::{DocAddress, IndexReader, Searcher, TantivyDocument, Term};

use super::{StoreError, stored};
use crate::asked::{Filter, First, Query, Recalled};
use crate::remembered::{Key, Kind, Memory};
use crate::words::Words;

/// A query's terms, the rarest first. A question has fewer; a page of text as a query has more, and
/// its frequent words cost the most and say the least.
const MOST_TERMS: usize = 64;
/// The index, for readers of what is committed.
#[derive(Clone)]
pub(super) struct Search {
    pub(super) reader: IndexReader,
    pub(super) fields: Fields,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    /// The point id.
    pub(super) point: Field,
    /// Whose and of which kind, and of which conversation: see [`partition`].
    pub(super) kind: Field,
    pub(super) approved: Field,
    pub(super) words: Field,
    pub(super) payload: Field,
}

impl Fields {
    /// The schema; change the directory's layout with it.
    pub(super) fn schema() -> (Schema, Fields) {
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
pub(super) fn partition(tenant: &Tenant, kind: Kind, conversation: &str) -> String {
    let kind = kind.as_str();
    let partition = if *tenant == Tenant::default() { kind.to_owned() } else { format!("{tenant}/{kind}") };
    // neither a tenant nor a kind has this character
    if conversation.is_empty() { partition } else { format!("{partition}@{conversation}") }
}

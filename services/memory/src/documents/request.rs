//! What requests name, checked.

use autoact_base::in_turn;
use autoact_collections::{CollectionName, Found, LEAST_CANDIDATES, Opened, Space, Strategy, merge};
use autoact_trajectory::Tenant;
use autoact_wire::memory_v1;

use crate::documents::convert::{found, segment};
use crate::documents::error::DocumentsError;
use crate::documents::store::DocumentStore;
use crate::payload::tenant_of;

/// Collections of one call: those of a task.
const MAX_COLLECTIONS: usize = 16;
/// The longest query or name: far above a question.
const MAX_QUERY_BYTES: usize = 64 * 1024;
/// Segments that a call gets which names no limit.
const DEFAULT_LIMIT: u32 = 5;
/// The most that anybody gets.
const MAX_LIMIT: u32 = 100;
/// The most titles that are told.
const MAX_SIMILAR: u32 = 16;

/// Texts of one call: an embedder in the process needs seconds for them.
const MAX_TEXTS: usize = 64;
/// Longer than what any embedder reads of a text.
const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Texts to make vectors of.
pub(super) fn texts(texts: Vec<String>) -> Result<Vec<String>, DocumentsError> {
    let count = texts.len();
    if !(1..=MAX_TEXTS).contains(&count) {
        return Err(DocumentsError::OutOfRange { field: "texts", value: count as u64, expected: "1 to 64 texts" });
    }
    match texts.iter().map(String::len).max() {
        Some(length) if length > MAX_TEXT_BYTES => Err(DocumentsError::TooLong { field: "texts", length, most: MAX_TEXT_BYTES }),
        _ => Ok(texts),
    }
}

/// One collection.
#[derive(Debug, Clone)]
pub(super) struct Whose {
    pub(super) tenant: Tenant,
    pub(super) collection: CollectionName,
}

impl Whose {
    pub(super) fn of(owner: &str, collection: &str) -> Result<Whose, DocumentsError> {
        Ok(Whose { tenant: tenant(owner)?, collection: collection.parse().map_err(DocumentsError::Name)? })
    }
}

/// Collections of a tenant, in the order of their precedence.
#[derive(Debug)]
pub(super) struct Scope {
    collections: Vec<Whose>,
}

impl Scope {
    pub(super) fn of(owner: &str, collections: &[String]) -> Result<Scope, DocumentsError> {
        let count = collections.len();
        if count == 0 {
            return Err(DocumentsError::Missing("collections"));
        }
        if count > MAX_COLLECTIONS {
            return Err(DocumentsError::OutOfRange { field: "collections", value: count as u64, expected: "1 to 16 names" });
        }
        let mut names: Vec<CollectionName> = Vec::new();
        for name in collections {
            let name = name.parse().map_err(DocumentsError::Name)?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let tenant = tenant(owner)?;
        let whose = |collection| Whose { tenant: tenant.clone(), collection };
        Ok(Scope { collections: names.into_iter().map(whose).collect() })
    }

    /// The best segments; each collection gives its best in turn, since scores of two collections
    /// cannot be compared.
    pub(super) async fn search(&self, store: &dyn DocumentStore, search: &Search) -> Result<Vec<memory_v1::FoundSegment>, DocumentsError> {
        let mut lists = Vec::with_capacity(self.collections.len());
        for whose in &self.collections {
            let segments = search.one(store, whose).await?;
            lists.push(segments.into_iter().map(|segment| found(&whose.collection, segment)).collect());
        }
        Ok(in_turn(lists, search.limit))
    }

    /// What a name means in the first collection that has it.
    pub(super) async fn open(
        &self,
        store: &dyn DocumentStore,
        name: &str,
        similar: usize,
    ) -> Result<memory_v1::OpenSegmentResponse, DocumentsError> {
        let mut response = memory_v1::OpenSegmentResponse::default();
        for whose in &self.collections {
            let collection = &whose.collection;
            match store.named(whose, name, similar).await? {
                Opened::Segment { segment: opened, by_title, also } => {
                    let also = also.into_iter().map(|also| segment(collection, also));
                    if response.segment.is_none() {
                        response.segment = Some(segment(collection, *opened));
                        response.by_title = by_title;
                        response.also.extend(also);
                    } else if by_title {
                        // what only resembles the name is no second source of it
                        response.also.push(segment(collection, *opened));
                        response.also.extend(also);
                    }
                }
                Opened::Unknown { similar } => response.similar.extend(similar),
            }
        }
        if response.segment.is_some() {
            response.similar.clear();
        }
        response.similar.truncate(similar);
        Ok(response)
    }
}

/// What is looked for.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) query: String,
    /// The query's vector, for strategies that have one.
    pub(super) vector: Option<(Space, Vec<f32>)>,
    pub(super) strategy: Strategy,
    pub(super) limit: usize,
}

impl Search {
    /// The best segments of one collection.
    async fn one(&self, store: &dyn DocumentStore, whose: &Whose) -> Result<Vec<Found>, DocumentsError> {
        let candidates = match self.strategy {
            Strategy::Words | Strategy::Vectors => self.limit,
            Strategy::Concatenation | Strategy::ReciprocalRanks => self.limit.max(LEAST_CANDIDATES),
        };
        let words =
            async { if self.strategy == Strategy::Vectors { Ok(Vec::new()) } else { store.words(whose, &self.query, candidates).await } };
        let vectors = async {
            match &self.vector {
                Some((space, vector)) => store.near(whose, space, vector, candidates).await,
                None => Ok(Vec::new()),
            }
        };
        let (words, vectors) = tokio::try_join!(words, vectors)?;
        Ok(merge(self.strategy, words, vectors, self.limit))
    }
}

pub(super) fn tenant(name: &str) -> Result<Tenant, DocumentsError> {
    tenant_of(name).map_err(DocumentsError::Tenant)
}

/// A text that has to be there, of bounded length.
pub(super) fn text(field: &'static str, text: String) -> Result<String, DocumentsError> {
    if text.trim().is_empty() {
        return Err(DocumentsError::Missing(field));
    }
    bounded(field, text, MAX_QUERY_BYTES)
}

/// A text of bounded length.
pub(super) fn bounded(field: &'static str, text: String, most: usize) -> Result<String, DocumentsError> {
    if text.len() > most { Err(DocumentsError::TooLong { field, length: text.len(), most }) } else { Ok(text) }
}

pub(super) fn limit(limit: u32) -> Result<usize, DocumentsError> {
    match limit {
        0 => Ok(DEFAULT_LIMIT as usize),
        limit if limit <= MAX_LIMIT => Ok(limit as usize),
        limit => Err(DocumentsError::OutOfRange { field: "limit", value: limit.into(), expected: "1 to 100, or 0 for 5" }),
    }
}

pub(super) fn similar(similar: u32) -> Result<usize, DocumentsError> {
    if similar > MAX_SIMILAR {
        return Err(DocumentsError::OutOfRange { field: "similar", value: similar.into(), expected: "0 to 16" });
    }
    Ok(similar as usize)
}

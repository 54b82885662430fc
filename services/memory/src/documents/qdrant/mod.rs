//! Documents in a Qdrant server, which several replicas of memory share.
//!
//! Each collection of a tenant is one of Qdrant's: what another one has does not change how it is
//! ranked, and deleting it removes its files. Words and the letters of names are sparse vectors,
//! meanings are dense ones, and the rules are those of the embedded store.

mod changes;
mod names;
mod points;
mod spaces;
mod sparse;

use std::collections::HashSet;
use std::sync::Mutex;

use autoact_collections::{CollectionName, CollectionsError, Entry, Found, MAX_NAME_CHARS, NewSegment, Opened, Space};
use autoact_tools::text::fold;
use autoact_trajectory::Tenant;
use qdrant_client::QdrantError;
use qdrant_client::qdrant::{
    Condition, CountPointsBuilder, Direction, Filter, OrderByBuilder, PointId, Query, QueryPointsBuilder, ScrollPointsBuilder, VectorInput,
};
use tonic::Code;

use crate::config::QdrantConfig;
use crate::documents::error::DocumentsError;
use crate::documents::qdrant::names::{Known, parts, spellings};
use crate::documents::qdrant::points::{LETTERS, StoredEntry, StoredSegment, WORDS, What, read};
use crate::documents::qdrant::spaces::dense_name;
use crate::documents::qdrant::sparse::{Sparse, query_letters, query_words};
use crate::documents::request::Whose;
use crate::documents::shelf::measured;
use crate::documents::store::{Counts, DocumentStore, SegmentId, Unembedded};
use crate::server::QdrantServer;
use crate::store::StoreError;

/// Stands between the parts of a collection's name in Qdrant; none of them has it.
const SEPARATOR: char = '@';
/// Points of one request.
const PAGE: usize = 256;
/// So many segments that have a name are told.
const MOST_OF_A_NAME: u32 = 64;
/// So many segments that have a part of a text as their name are told.
const MOST_OF_PARTS: u32 = 1024;
/// So many segments whose names share letters with a name are compared with it.
const MOST_ALIKE: u64 = 256;

/// The documents in a server.
pub(super) struct QdrantDocuments {
    server: QdrantServer,
    prefix: String,
    /// Collections that are known to have a dense vector for a space.
    spaces: Mutex<HashSet<(String, Space)>>,
}

impl QdrantDocuments {
    pub(super) fn new(config: &QdrantConfig) -> Result<QdrantDocuments, StoreError> {
        Ok(QdrantDocuments { server: QdrantServer::new(config)?, prefix: config.documents.clone(), spaces: Mutex::default() })
    }

    /// A collection's name in Qdrant.
    fn collection(&self, Whose { tenant, collection }: &Whose) -> String {
        format!("{}{SEPARATOR}{tenant}{SEPARATOR}{collection}", self.prefix)
    }

    /// Whose collection it is that has a name in Qdrant; `None` for what is not ours.
    fn whose(&self, name: &str) -> Option<Whose> {
        let (tenant, collection) = name.strip_prefix(&self.prefix)?.strip_prefix(SEPARATOR)?.split_once(SEPARATOR)?;
        Some(Whose { tenant: tenant.parse().ok()?, collection: collection.parse().ok()? })
    }

    async fn every(&self) -> Result<Vec<Whose>, DocumentsError> {
        let listed = self.server.client.list_collections().await.map_err(|error| self.server.error(error))?;
        let mut all: Vec<Whose> = listed.collections.iter().filter_map(|collection| self.whose(&collection.name)).collect();
        all.sort_by(|one, other| (one.tenant.as_str(), &one.collection).cmp(&(other.tenant.as_str(), &other.collection)));
        Ok(all)
    }

    async fn named_by(&self, tenant: &Tenant) -> Result<Vec<CollectionName>, DocumentsError> {
        let own = self.every().await?.into_iter().filter(|whose| whose.tenant == *tenant);
        Ok(own.map(|whose| whose.collection).collect())
    }

    /// Why a request about a collection failed.
    async fn failed(&self, whose: &Whose, error: QdrantError) -> DocumentsError {
        if matches!(&error, QdrantError::ResponseError { status } if status.code() == Code::NotFound) {
            return match self.named_by(&whose.tenant).await {
                Ok(known) => CollectionsError::Unknown { name: whose.collection.clone(), known }.into(),
                Err(error) => error,
            };
        }
        self.server.error(error).into()
    }

    /// What the server said of a collection, or why the request failed.
    async fn told<T>(&self, whose: &Whose, answer: Result<T, QdrantError>) -> Result<T, DocumentsError> {
        match answer {
            Ok(told) => Ok(told),
            Err(error) => Err(self.failed(whose, error).await),
        }
    }

    /// The segments that a filter admits, those first that were stored first.
    async fn segments(&self, whose: &Whose, filter: Filter, limit: u32) -> Result<Vec<StoredSegment>, DocumentsError> {
        let order = OrderByBuilder::new("stored_at").direction(Direction::Asc.into());
        let scroll = ScrollPointsBuilder::new(self.collection(whose)).filter(filter).limit(limit).order_by(order).with_payload(true);
        let page = self.told(whose, self.server.client.scroll(scroll).await).await?;
        Ok(page.result.into_iter().filter_map(|point| read(point.payload)).collect())
    }

    /// The segments that have one of these names.
    async fn having(&self, whose: &Whose, names: HashSet<String>, limit: u32) -> Result<Vec<StoredSegment>, DocumentsError> {
        let names: Vec<String> = names.into_iter().collect();
        let either = ["name", "alias"].map(|field| Condition::matches(field, names.clone()));
        let filter = Filter { should: either.to_vec(), ..Filter::must([What::Segment.is()]) };
        self.segments(whose, filter, limit).await
    }

    /// The segments nearest to a query by one of their vectors, nearest first, with their scores.
    async fn nearest(
        &self,
        whose: &Whose,
        vector: &str,
        input: VectorInput,
        limit: u64,
    ) -> Result<Vec<(StoredSegment, f32)>, DocumentsError> {
        let query = QueryPointsBuilder::new(self.collection(whose))
            .query(Query::new_nearest(input))
            .using(vector)
            .filter(Filter::must([What::Segment.is()]))
            .limit(limit)
            .with_payload(true);
        let found = self.told(whose, self.server.client.query(query).await).await?;
        Ok(found.result.into_iter().filter_map(|point| Some((read(point.payload)?, point.score))).collect())
    }

    /// The same by a sparse vector; one without an entry finds nothing.
    async fn nearest_by(
        &self,
        whose: &Whose,
        vector: &str,
        sparse: Sparse,
        limit: u64,
    ) -> Result<Vec<(StoredSegment, f32)>, DocumentsError> {
        let (indices, values): (Vec<u32>, Vec<f32>) = sparse.into_iter().unzip();
        if indices.is_empty() {
            // an unknown collection is refused all the same
            return self.count(whose, Filter::must([What::Entry.is()])).await.map(|_| Vec::new());
        }
        self.nearest(whose, vector, VectorInput::new_sparse(indices, values), limit).await
    }

    async fn count(&self, whose: &Whose, filter: Filter) -> Result<u64, DocumentsError> {
        let counted = self
            .told(whose, self.server.client.count(CountPointsBuilder::new(self.collection(whose)).filter(filter).exact(true)).await)
            .await?;
        Ok(counted.result.unwrap_or_default().count)
    }

    async fn list(&self, whose: &Whose) -> Result<Vec<Entry>, DocumentsError> {
        let (mut entries, mut next) = (Vec::new(), None::<PointId>);
        loop {
            let filter = Filter::must([What::Entry.is()]);
            let mut scroll = ScrollPointsBuilder::new(self.collection(whose)).filter(filter).limit(PAGE as u32).with_payload(true);
            if let Some(offset) = next.take() {
                scroll = scroll.offset(offset);
            }
            let page = self.told(whose, self.server.client.scroll(scroll).await).await?;
            entries.extend(page.result.into_iter().filter_map(|point| read::<StoredEntry>(point.payload)).map(|stored| stored.entry));
            next = page.next_page_offset;
            if next.is_none() {
                entries.sort_by(|one, other| one.path.cmp(&other.path));
                return Ok(entries);
            }
        }
    }

    async fn open(&self, whose: &Whose, name: &str, similar: usize) -> Result<Opened, DocumentsError> {
        if name.chars().count() > MAX_NAME_CHARS {
            // an unknown collection is refused all the same
            return self.count(whose, Filter::must([What::Entry.is()])).await.map(|_| Opened::Unknown { similar: Vec::new() });
        }
        let named = Known::new(self.having(whose, spellings(name), MOST_OF_A_NAME).await?);
        if let Some(opened) = named.find(name) {
            return Ok(opened);
        }
        let alike = self.nearest_by(whose, LETTERS, query_letters(&fold(name)), MOST_ALIKE).await?;
        let alike: Vec<StoredSegment> = alike.into_iter().map(|(segment, _)| segment).collect();
        let parts = self.having(whose, parts(name), MOST_OF_PARTS).await?;
        let known = Known::new(alike.iter().cloned().chain(parts).collect());
        Ok(known.meant(name).unwrap_or_else(|| Opened::Unknown { similar: Known::new(alike).similar(name, similar) }))
    }
}

fn found((segment, score): (StoredSegment, f32)) -> Found {
    Found { segment: segment.into(), score }
}

#[tonic::async_trait]
impl DocumentStore for QdrantDocuments {
    async fn all(&self) -> Result<Vec<Whose>, DocumentsError> {
        measured("collections", self.every()).await
    }

    async fn names(&self, tenant: &Tenant) -> Result<Vec<CollectionName>, DocumentsError> {
        measured("collections", self.named_by(tenant)).await
    }

    async fn counts(&self, whose: &Whose, space: Option<&Space>) -> Result<Counts, DocumentsError> {
        measured("counts", async {
            let files = self.count(whose, Filter::must([What::Entry.is()])).await?;
            let segments = self.count(whose, Filter::must([What::Segment.is()])).await?;
            let vector = space.map(dense_name);
            let vectors = match vector {
                Some(vector) if self.size(whose, &vector).await?.is_some() => {
                    self.count(whose, Filter::must([What::Segment.is(), Condition::has_vector(vector)])).await?
                }
                _ => 0,
            };
            Ok(Counts { files, segments, vectors })
        })
        .await
    }

    async fn put(&self, whose: &Whose, entry: Entry, segments: Vec<NewSegment>) -> Result<u64, DocumentsError> {
        measured("put", self.store(whose, entry, segments)).await
    }

    async fn delete_files(&self, whose: &Whose, paths: Vec<String>) -> Result<u64, DocumentsError> {
        measured("delete", self.delete(whose, paths)).await
    }

    async fn delete_collection(&self, whose: &Whose) -> Result<bool, DocumentsError> {
        self.forget_spaces(whose);
        measured("delete_collection", async {
            let deleted = self.server.client.delete_collection(self.collection(whose)).await;
            Ok(deleted.map_err(|error| self.server.error(error))?.result)
        })
        .await
    }

    async fn entries(&self, whose: &Whose) -> Result<Vec<Entry>, DocumentsError> {
        measured("list", self.list(whose)).await
    }

    async fn words(&self, whose: &Whose, query: &str, limit: usize) -> Result<Vec<Found>, DocumentsError> {
        let found_by = self.nearest_by(whose, WORDS, query_words(query), limit as u64);
        Ok(measured("words", found_by).await?.into_iter().map(found).collect())
    }

    async fn near(&self, whose: &Whose, space: &Space, vector: &[f32], limit: usize) -> Result<Vec<Found>, DocumentsError> {
        measured("near", async {
            let name = self.space(whose, space).await?;
            let nearest = self.nearest(whose, &name, VectorInput::new_dense(vector.to_vec()), limit as u64).await;
            Ok(self.asked_anew(whose, nearest)?.into_iter().map(found).collect())
        })
        .await
    }

    async fn named(&self, whose: &Whose, name: &str, similar: usize) -> Result<Opened, DocumentsError> {
        measured("open", self.open(whose, name, similar)).await
    }

    async fn without_vector(&self, whose: &Whose, space: &Space, limit: usize) -> Result<(Vec<Unembedded>, usize), DocumentsError> {
        self.asked_anew(whose, measured("without_vector", self.unembedded(whose, space, limit)).await)
    }

    async fn add_vectors(&self, whose: &Whose, space: &Space, vectors: Vec<(SegmentId, Vec<f32>)>) -> Result<(), DocumentsError> {
        self.asked_anew(whose, measured("vectors", self.embed(whose, space, vectors)).await)
    }
}

//! A Qdrant server as the store: the words of the embedded one as sparse vectors, the same
//! payloads.

use std::collections::HashMap;
use std::sync::Arc;

use autoact_embedding::EmbedError;
use autoact_trajectory::Tenant;
use qdrant_client::Payload as Fields;
use qdrant_client::qdrant::{
    Condition, DeletePointsBuilder, FieldType, Filter, Fusion, GetPointsBuilder, NamedVectors, PointId, PointStruct, PrefetchQueryBuilder,
    Query as Search, QueryPointsBuilder, ScrollPointsBuilder, UpsertPointsBuilder, Value, Vector, VectorInput,
};

use super::{MemoryStore, StoreError, stored};
use crate::asked::{Filter as Wanted, First, Query, Recalled};
use crate::config::QdrantConfig;
use crate::encode::{Encoded, Encoder};
use crate::payload::Payload;
use crate::remembered::{Key, Memory};
use crate::server::{Layout, QdrantServer, json};

/// The name of the sparse vector.
const TERMS_VECTOR: &str = "bm25";
/// The name of the dense vector, where there is an embedder.
const DENSE_VECTOR: &str = "dense";
/// Where terms and dense vectors are both asked, how many more of each are looked at than are
/// wanted.
const FUSION_FACTOR: usize = 4;
/// Memories of one request, where many are read or removed.
const PAGE: usize = 256;

/// The fields that queries filter by.
const FIELDS: [(&str, FieldType); 4] =
    [("tenant", FieldType::Keyword), ("kind", FieldType::Keyword), ("conversation", FieldType::Keyword), ("approved", FieldType::Bool)];

/// Memories in a collection of a Qdrant server.
pub struct QdrantStore {
    server: QdrantServer,
    collection: String,
    encoder: Arc<Encoder>,
}

impl std::fmt::Debug for QdrantStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QdrantStore").field("url", &self.server.url).field("collection", &self.collection).finish_non_exhaustive()
    }
}

impl QdrantStore {
    /// A store that connects on first use; [`prepare`](Self::prepare) makes its collection.
    pub fn new(config: &QdrantConfig, encoder: Encoder) -> Result<QdrantStore, StoreError> {
        Ok(QdrantStore { server: QdrantServer::new(config)?, collection: config.collection.clone(), encoder: Arc::new(encoder) })
    }

    /// Makes the collection and its indexes, or checks that the one there is ours. Several replicas
    /// may do it at once.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let dense = self.encoder.dense().map(|(_, dimension)| (DENSE_VECTOR, dimension as u64));
        let layout = Layout { sparse: &[(TERMS_VECTOR, true)], dense, fields: &FIELDS };
        self.server.prepare(&self.collection, &layout).await.map(drop)
    }

    /// Encodes off the async threads: an embedder may take a while.
    async fn encode(&self, work: impl FnOnce(&Encoder) -> Result<Encoded, EmbedError> + Send + 'static) -> Result<Encoded, StoreError> {
        let encoder = self.encoder.clone();
        let encoded = tokio::task::spawn_blocking(move || work(&encoder)).await;
        let encoded = encoded.map_err(|error| StoreError::Engine(format!("cannot encode: {error}")))?;
        encoded.map_err(|error| StoreError::Embed(Arc::new(error)))
    }
}

#[tonic::async_trait]
impl MemoryStore for QdrantStore {
    fn name(&self) -> &'static str {
        "qdrant"
    }

    async fn remember(&self, memory: Memory) -> Result<(), StoreError> {
        let text = memory.text();
        let Encoded { indices, values, dense } = self.encode(move |encoder| encoder.document(&text)).await?;
        let mut vectors = NamedVectors::default();
        // what nobody looks for has no words
        if !indices.is_empty() {
            vectors = vectors.add_vector(TERMS_VECTOR, Vector::new_sparse(indices, values));
        }
        if let Some(dense) = dense {
            vectors = vectors.add_vector(DENSE_VECTOR, dense);
        }
        let payload = serde_json::to_value(Payload::from(&memory)).map_err(|error| StoreError::Engine(error.to_string()))?;
        let payload = Fields::try_from(payload).map_err(|error| self.server.error(error))?;
        let point = PointStruct::new(point_id(&memory.key()), vectors, payload);
        let upsert = UpsertPointsBuilder::new(&self.collection, vec![point]).wait(true);
        self.server.client.upsert_points(upsert).await.map_err(|error| self.server.error(error))?;
        Ok(())
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recalled>, StoreError> {
        let text = query.text.clone();
        let encoded = self.encode(move |encoder| encoder.query(&text)).await?;
        if encoded.is_empty() {
            return Ok(Vec::new());
        }
        let request = search(&self.collection, encoded, &query);
        let points = self.server.client.query(request).await.map_err(|error| self.server.error(error))?.result;
        let recalled = |score, payload| Some(Recalled { score, memory: read(payload)? });
        Ok(points.into_iter().filter_map(|point| recalled(point.score, point.payload)).collect())
    }

    async fn get(&self, keys: Vec<Key>) -> Result<Vec<Memory>, StoreError> {
        let ids: Vec<PointId> = keys.iter().map(point_id).collect();
        let get = GetPointsBuilder::new(&self.collection, ids).with_payload(true).with_vectors(false);
        let found = self.server.client.get_points(get).await.map_err(|error| self.server.error(error))?.result;
        Ok(found.into_iter().filter_map(|point| read(point.payload)).collect())
    }

    async fn scan(&self, wanted: Wanted) -> Result<Vec<Memory>, StoreError> {
        let mut must = vec![Condition::matches("kind", wanted.kind.as_str().to_owned())];
        must.extend(wanted.tenant.as_ref().map(of));
        if !wanted.conversation.is_empty() {
            must.push(Condition::matches("conversation", wanted.conversation.clone()));
        }
        let filter = Filter::must(must);
        let (mut first, mut next) = (First::new(&wanted), None);
        loop {
            let scroll = ScrollPointsBuilder::new(&self.collection).filter(filter.clone()).limit(PAGE as u32).with_payload(true);
            let scroll = match next.take() {
                Some(offset) => scroll.offset::<PointId>(offset),
                None => scroll,
            };
            let page = self.server.client.scroll(scroll).await.map_err(|error| self.server.error(error))?;
            page.result.into_iter().filter_map(|point| read(point.payload)).for_each(|memory| first.push(memory));
            next = page.next_page_offset;
            if next.is_none() {
                return Ok(first.finish());
            }
        }
    }

    async fn erase(&self, keys: Vec<Key>) -> Result<usize, StoreError> {
        let mut erased = 0;
        for keys in keys.chunks(PAGE) {
            let ids: Vec<PointId> = keys.iter().map(point_id).collect();
            let get = GetPointsBuilder::new(&self.collection, ids.clone()).with_payload(false).with_vectors(false);
            let found = self.server.client.get_points(get).await.map_err(|error| self.server.error(error))?.result;
            if found.is_empty() {
                continue;
            }
            let delete = DeletePointsBuilder::new(&self.collection).points(ids).wait(true);
            self.server.client.delete_points(delete).await.map_err(|error| self.server.error(error))?;
            erased += found.len();
        }
        Ok(erased)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.server.check().await
    }

    async fn close(&self) {}
}

fn point_id(key: &Key) -> PointId {
    PointId::from(key.point().to_string())
}

/// What a point's payload says.
fn read(payload: HashMap<String, Value>) -> Option<Memory> {
    stored(serde_json::from_value(json(payload)))
}

/// A tenant's memories. Those from before there were tenants name none: they are the default
/// tenant's.
fn of(tenant: &Tenant) -> Condition {
    let named = Condition::matches("tenant", tenant.to_string());
    if *tenant == Tenant::default() { Filter::should([named, Condition::is_empty("tenant")]).into() } else { named }
}

/// The nearest by terms, or by terms and meaning together, their ranks fused.
fn search(collection: &str, encoded: Encoded, query: &Query) -> QueryPointsBuilder {
    let mut must = vec![of(&query.tenant), Condition::matches("kind", query.kind.as_str().to_owned())];
    if !query.conversation.is_empty() {
        must.push(Condition::matches("conversation", query.conversation.clone()));
    }
    if query.approved_only {
        must.push(Condition::matches("approved", true));
    }
    let filter = Filter::must(must);
    let limit = query.limit as u64;
    let terms = Search::new_nearest(VectorInput::new_sparse(encoded.indices, encoded.values));
    let request = QueryPointsBuilder::new(collection).limit(limit).with_payload(true);
    let Some(dense) = encoded.dense else { return request.query(terms).using(TERMS_VECTOR).filter(filter) };
    let one = |search: Search, name: &str| {
        PrefetchQueryBuilder::default().query(search).using(name).filter(filter.clone()).limit(limit * FUSION_FACTOR as u64)
    };
    request
        .add_prefetch(one(terms, TERMS_VECTOR))
        .add_prefetch(one(Search::new_nearest(dense), DENSE_VECTOR))
        .query(Search::new_fusion(Fusion::Rrf))
}

//! A Qdrant server as the store: the words of the embedded one as sparse vectors, the same
//! payloads.

use std::collections::HashMap;
use std::sync::Arc;

use autoact_embedding::EmbedError;
use autoact_trajectory::Tenant;
use qdrant_client::qdrant::vectors_config::Config as DenseConfig;
use qdrant_client::qdrant::{
    CollectionInfo, Condition, CreateCollectionBuilder, CreateFieldIndexCollectionBuilder, DeletePointsBuilder, Distance, FieldType,
    Filter, Fusion, GetPointsBuilder, Modifier, NamedVectors, PointId, PointStruct, PrefetchQueryBuilder, Query as Search,
    QueryPointsBuilder, ScrollPointsBuilder, SparseVectorParamsBuilder, SparseVectorsConfigBuilder, UpsertPointsBuilder, Value, Vector,
    VectorInput, VectorParamsBuilder, VectorsConfigBuilder,
};
use qdrant_client::{Payload as Fields, Qdrant, QdrantError};
use tonic::Code;

use super::{MemoryStore, StoreError, stored};
use crate::asked::{Filter as Wanted, First, Query, Recalled};
use crate::config::QdrantConfig;
use crate::encode::{Encoded, Encoder};
use crate::payload::Payload;
use crate::remembered::{Key, Memory};

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
    client: Qdrant,
    url: String,
    collection: String,
    encoder: Arc<Encoder>,
}

impl std::fmt::Debug for QdrantStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QdrantStore").field("url", &self.url).field("collection", &self.collection).finish_non_exhaustive()
    }
}

impl QdrantStore {
    /// A store that connects on first use; [`prepare`](Self::prepare) makes its collection.
    pub fn new(config: &QdrantConfig, encoder: Encoder) -> Result<QdrantStore, StoreError> {
        let mut builder = Qdrant::from_url(&config.url)
            .timeout(config.timeout)
            .connect_timeout(config.timeout)
            .keep_alive_while_idle()
            // it would talk to the server here, on this thread, and print to stdout
            .skip_compatibility_check();
        if !config.api_key.is_empty() {
            builder = builder.api_key(config.api_key.expose());
        }
        let client = builder.build().map_err(|error| StoreError::Engine(error.to_string()))?;
        Ok(QdrantStore { client, url: config.url.clone(), collection: config.collection.clone(), encoder: Arc::new(encoder) })
    }

    /// Makes the collection and its indexes, or checks that the one there is ours. Several replicas
    /// may do it at once.
    pub async fn prepare(&self) -> Result<(), StoreError> {
        let exists = self.client.collection_exists(&self.collection).await.map_err(|error| self.error(error))?;
        if !exists {
            let mut sparse = SparseVectorsConfigBuilder::default();
            sparse.add_named_vector_params(TERMS_VECTOR, SparseVectorParamsBuilder::default().modifier(Modifier::Idf));
            let mut create = CreateCollectionBuilder::new(&self.collection).sparse_vectors_config(sparse);
            if let Some((_, dimension)) = self.encoder.dense() {
                let mut dense = VectorsConfigBuilder::default();
                dense.add_named_vector_params(DENSE_VECTOR, VectorParamsBuilder::new(dimension as u64, Distance::Cosine));
                create = create.vectors_config(dense);
            }
            match self.client.create_collection(create).await {
                Ok(_) => tracing::info!(collection = self.collection, "made the collection"),
                // another replica was faster; its collection is checked like any other
                Err(QdrantError::ResponseError { status }) if matches!(status.code(), Code::AlreadyExists | Code::InvalidArgument) => {}
                Err(error) => return Err(self.error(error)),
            }
        }
        let info = self.client.collection_info(&self.collection).await.map_err(|error| self.error(error))?.result.unwrap_or_default();
        self.check_layout(&info)?;
        for (field, kind) in FIELDS {
            if !info.payload_schema.contains_key(field) {
                let create = CreateFieldIndexCollectionBuilder::new(&self.collection, field, kind).wait(true);
                self.client.create_field_index(create).await.map_err(|error| self.error(error))?;
            }
        }
        Ok(())
    }

    fn check_layout(&self, info: &CollectionInfo) -> Result<(), StoreError> {
        let params = info.config.as_ref().and_then(|config| config.params.as_ref());
        let terms = params.and_then(|params| params.sparse_vectors_config.as_ref()).and_then(|sparse| sparse.map.get(TERMS_VECTOR));
        let idf = terms.is_some_and(|terms| terms.modifier == Some(Modifier::Idf as i32));
        let dense = match params.and_then(|params| params.vectors_config.as_ref()).and_then(|vectors| vectors.config.as_ref()) {
            Some(DenseConfig::ParamsMap(map)) => map.map.get(DENSE_VECTOR).map(|params| params.size),
            _ => None,
        };
        let wanted = self.encoder.dense().map(|(_, dimension)| dimension as u64);
        let difference = if !idf {
            format!("has no sparse vector `{TERMS_VECTOR}` with the modifier `idf`")
        } else if wanted.is_some() && dense != wanted {
            format!("has no dense vector `{DENSE_VECTOR}` of {} numbers", wanted.unwrap_or_default())
        } else {
            return Ok(());
        };
        Err(StoreError::Layout { url: self.url.clone(), collection: self.collection.clone(), difference })
    }

    fn error(&self, error: QdrantError) -> StoreError {
        let url = self.url.clone();
        match error {
            QdrantError::ResponseError { status } => {
                let reason = status.message().to_owned();
                match status.code() {
                    Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => StoreError::Unreachable { url, reason },
                    Code::Unauthenticated | Code::PermissionDenied => StoreError::Refused { url, reason },
                    // what its client makes of a refused connection; it says so in words alone
                    Code::Internal if reason.starts_with("Failed to connect") => StoreError::Unreachable { url, reason },
                    code => StoreError::Engine(format!("Qdrant at `{url}` says {code:?}: {reason}")),
                }
            }
            QdrantError::ResourceExhaustedError { status, .. } => StoreError::Unreachable { url, reason: status.message().to_owned() },
            other => StoreError::Engine(format!("Qdrant at `{url}`: {other}")),
        }
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
        let payload = Fields::try_from(payload).map_err(|error| self.error(error))?;
        let point = PointStruct::new(point_id(&memory.key()), vectors, payload);
        let upsert = UpsertPointsBuilder::new(&self.collection, vec![point]).wait(true);
        self.client.upsert_points(upsert).await.map_err(|error| self.error(error))?;
        Ok(())
    }

    async fn recall(&self, query: Query) -> Result<Vec<Recalled>, StoreError> {
        let text = query.text.clone();
        let encoded = self.encode(move |encoder| encoder.query(&text)).await?;
        if encoded.is_empty() {
            return Ok(Vec::new());
        }
        let request = search(&self.collection, encoded, &query);
        let points = self.client.query(request).await.map_err(|error| self.error(error))?.result;
        let recalled = |score, payload| Some(Recalled { score, memory: read(payload)? });
        Ok(points.into_iter().filter_map(|point| recalled(point.score, point.payload)).collect())
    }

    async fn get(&self, keys: Vec<Key>) -> Result<Vec<Memory>, StoreError> {
        let ids: Vec<PointId> = keys.iter().map(point_id).collect();
        let get = GetPointsBuilder::new(&self.collection, ids).with_payload(true).with_vectors(false);
        let found = self.client.get_points(get).await.map_err(|error| self.error(error))?.result;
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
            let page = self.client.scroll(scroll).await.map_err(|error| self.error(error))?;
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
            let found = self.client.get_points(get).await.map_err(|error| self.error(error))?.result;
            if found.is_empty() {
                continue;
            }
            let delete = DeletePointsBuilder::new(&self.collection).points(ids).wait(true);
            self.client.delete_points(delete).await.map_err(|error| self.error(error))?;
            erased += found.len();
        }
        Ok(erased)
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.client.health_check().await.map(drop).map_err(|error| self.error(error))
    }

    async fn close(&self) {}
}

fn point_id(key: &Key) -> PointId {
    PointId::from(key.point().to_string())
}

/// What a point's payload says.
fn read(payload: HashMap<String, Value>) -> Option<Memory> {
    let fields = payload.into_iter().map(|(key, value)| (key, value.into_json())).collect();
    stored(serde_json::from_value(serde_json::Value::Object(fields)))
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

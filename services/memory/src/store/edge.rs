//! qdrant-edge: a Qdrant shard in this process. Synchronous; [`super::embedded`] owns it on a thread.
//!
//! Two things about qdrant-edge 0.7.2 shape this file. Opening a shard does not replay its log, so nothing is said to be remembered
//! before a flush. And it panics where a file cannot be written, so every call is guarded: a panic becomes an error, after which the
//! shard is not used any more.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use qdrant_edge::external::ordered_float::OrderedFloat;
use qdrant_edge::external::serde_json::Value;
use qdrant_edge::{
    Condition, CreateIndex, Distance, EdgeConfig, EdgeShard, EdgeSparseVectorParamsBuilder, EdgeVectorParams, FieldCondition,
    FieldIndexOperations, Filter, Fusion, JsonPath, Match, Modifier, NamedQuery, NamedVectors, OperationError, PayloadFieldSchema,
    PayloadSchemaType, PointId, PointInsertOperations, PointOperations, PointStruct, Prefetch, QueryEnum, QueryRequest, ScoringQuery,
    SparseVector, UpdateOperation, ValueVariants, Vector, VectorInternal, WalOptions, WithPayloadInterface, WithVector,
};

use super::open::{Directory, OpenError};
use super::{DENSE_VECTOR, FUSION_FACTOR, StoreError, TERMS_VECTOR, recalled};
use crate::encode::{Encoded, Encoder};
use crate::remembered::{Kind, Memory, Payload, Query, Recalled};

/// A segment of the engine's log. The default of 32 MiB is for servers; a fresh memory should not take that on disk.
const LOG_SEGMENT_BYTES: usize = 4 * 1024 * 1024;
/// The constant of reciprocal rank fusion; the same as a Qdrant server's.
const FUSION_K: usize = 2;

/// An open shard.
pub(super) struct Shard {
    shard: Option<EdgeShard>,
    encoder: Encoder,
    // after the shard: its files are ours until it is closed
    _directory: Directory,
}

impl Shard {
    /// Opens the shard in a directory, or makes it.
    pub(super) fn open(path: &Path, encoder: Encoder) -> Result<Shard, OpenError> {
        let directory = Directory::take(path, &encoder)?;
        let files = directory.shard()?;
        let config = config(encoder.dense());
        // written before the first segment: where it is, a shard is
        let exists = files.join("edge_config.json").exists();
        let opened = guarded(|| if exists { EdgeShard::load(&files, Some(config)) } else { EdgeShard::new(&files, config) });
        let shard = opened.map_err(|error| directory.damaged(error))?;
        let shard = Shard { shard: Some(shard), encoder, _directory: directory };
        shard.make_indexes().map_err(|error| shard._directory.damaged(error))?;
        Ok(shard)
    }

    /// The indexes of the fields that queries filter by.
    fn make_indexes(&self) -> Result<(), StoreError> {
        let known = self.with(|shard| Ok(shard.info().payload_schema))?;
        for (field, schema) in [("kind", PayloadSchemaType::Keyword), ("approved", PayloadSchemaType::Bool)] {
            let field_name = json_path(field)?;
            if !known.contains_key(&field_name) {
                let create = CreateIndex { field_name, field_schema: Some(PayloadFieldSchema::FieldType(schema)) };
                self.update(UpdateOperation::FieldIndexOperation(FieldIndexOperations::CreateIndex(create)))?;
            }
        }
        Ok(())
    }

    /// Stores or replaces a memory; [`flush`](Self::flush) makes it last.
    pub(super) fn remember(&self, memory: &Memory) -> Result<(), StoreError> {
        let Encoded { indices, values, dense } = self.encoder.document(&memory.text())?;
        let sparse = Vector::new_sparse(indices, values).map_err(engine)?;
        let mut vectors = NamedVectors::default().add_vector(TERMS_VECTOR, sparse);
        if let Some(dense) = dense {
            vectors = vectors.add_vector(DENSE_VECTOR, dense);
        }
        let payload = match serde_json::to_value(Payload::from(memory)).map_err(engine)? {
            payload @ Value::Object(_) => payload,
            other => return Err(engine(format!("a payload is `{other}`"))),
        };
        let point = PointStruct::new(PointId::Uuid(memory.kind().point(memory.id())), vectors, payload);
        let points = PointInsertOperations::PointsList(vec![point.into()]);
        self.update(UpdateOperation::PointOperation(PointOperations::UpsertPoints(points)))
    }

    /// The memories most similar to a query.
    pub(super) fn recall(&self, query: &Query) -> Result<Vec<Recalled>, StoreError> {
        let encoded = self.encoder.query(&query.text)?;
        if encoded.is_empty() {
            return Ok(Vec::new());
        }
        let request = request(encoded, filter(query)?, query.limit);
        let points = self.with(|shard| shard.query(request))?;
        let payload = |payload: Option<qdrant_edge::Payload>| Value::Object(payload.map(|payload| payload.0).unwrap_or_default());
        Ok(points.into_iter().filter_map(|point| recalled(point.score, payload(point.payload))).collect())
    }

    /// Removes a memory; [`flush`](Self::flush) makes it last.
    pub(super) fn forget(&self, kind: Kind, id: &str) -> Result<bool, StoreError> {
        let id = PointId::Uuid(kind.point(id));
        let found = self.with(|shard| shard.retrieve(&[id], Some(WithPayloadInterface::Bool(false)), None))?;
        if found.is_empty() {
            return Ok(false);
        }
        self.update(UpdateOperation::PointOperation(PointOperations::DeletePoints { ids: vec![id] }))?;
        Ok(true)
    }

    /// Makes everything so far survive a crash.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        self.with(|shard| {
            shard.flush();
            Ok(())
        })
    }

    fn update(&self, operation: UpdateOperation) -> Result<(), StoreError> {
        self.with(|shard| shard.update(operation))
    }

    fn with<T>(&self, work: impl FnOnce(&EdgeShard) -> Result<T, OperationError>) -> Result<T, StoreError> {
        let shard = self.shard.as_ref().ok_or(StoreError::Closed)?;
        guarded(|| work(shard)).map_err(StoreError::Engine)
    }
}

impl Drop for Shard {
    /// The engine flushes when it is dropped, and panics where it cannot.
    fn drop(&mut self) {
        let shard = self.shard.take();
        if let Err(error) = guarded(|| {
            drop(shard);
            Ok(())
        }) {
            tracing::error!(error, "the memory store did not close well");
        }
    }
}

/// Runs the engine; its panics come back as errors.
fn guarded<T>(work: impl FnOnce() -> Result<T, OperationError>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("the engine gave up: {}", text.unwrap_or("no reason given")))
        }
    }
}

fn engine(error: impl std::fmt::Display) -> StoreError {
    StoreError::Engine(error.to_string())
}

fn config(dense: Option<(&str, usize)>) -> EdgeConfig {
    // the inverse document frequency is the engine's: it knows how many memories have a term
    let terms = EdgeSparseVectorParamsBuilder::new().modifier(Modifier::Idf).build();
    let log = WalOptions { segment_capacity: LOG_SEGMENT_BYTES, segment_queue_len: 0, retain_closed: NonZeroUsize::MIN };
    let config = EdgeConfig::builder().on_disk_payload(true).sparse_vector(TERMS_VECTOR, terms).wal_options(log);
    match dense {
        None => config.build(),
        Some((_, dimension)) => config.vector(DENSE_VECTOR, EdgeVectorParams::builder(dimension, Distance::Cosine).build()).build(),
    }
}

fn json_path(field: &str) -> Result<JsonPath, StoreError> {
    field.parse().map_err(|()| engine(format!("`{field}` is not a path")))
}

fn filter(query: &Query) -> Result<Filter, StoreError> {
    let is = |field: &str, value| json_path(field).map(|path| Condition::Field(FieldCondition::new_match(path, Match::new_value(value))));
    let mut must = vec![is("kind", ValueVariants::String(query.kind.as_str().to_owned()))?];
    if query.approved_only {
        must.push(is("approved", ValueVariants::Bool(true))?);
    }
    Ok(Filter { must: Some(must), ..Filter::new() })
}

/// The nearest by terms, or by terms and meaning together, their ranks fused.
fn request(encoded: Encoded, filter: Filter, limit: usize) -> QueryRequest {
    let nearest = |vector, name: &str| ScoringQuery::Vector(QueryEnum::Nearest(NamedQuery::new(vector, name)));
    let terms = VectorInternal::Sparse(SparseVector { indices: encoded.indices, values: encoded.values });
    let terms = nearest(terms, TERMS_VECTOR);
    let (prefetches, query) = match encoded.dense {
        None => (Vec::new(), terms),
        Some(dense) => {
            let one = |query| Prefetch {
                prefetches: Vec::new(),
                query: Some(query),
                limit: limit * FUSION_FACTOR,
                params: None,
                filter: Some(filter.clone()),
                score_threshold: None::<OrderedFloat<f32>>,
            };
            let both = vec![one(terms), one(nearest(VectorInternal::Dense(dense), DENSE_VECTOR))];
            (both, ScoringQuery::Fusion(Fusion::Rrf { k: FUSION_K, weights: None }))
        }
    };
    QueryRequest {
        prefetches,
        query: Some(query),
        filter: Some(filter),
        score_threshold: None,
        limit,
        offset: 0,
        params: None,
        with_vector: WithVector::Bool(false),
        with_payload: WithPayloadInterface::Bool(true),
    }
}

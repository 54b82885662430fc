//! Dense vectors: one named vector for each embedder that a collection has met.

use std::collections::HashSet;
use std::sync::{MutexGuard, PoisonError};

use autoact_collections::{Segment, Space};
use qdrant_client::QdrantError;
use qdrant_client::qdrant::{
    Condition, CountPointsBuilder, CreateVectorNameRequestBuilder, DenseVectorCreationConfigBuilder, Distance, Filter, NamedVectors,
    PointId, PointVectors, ScrollPointsBuilder, UpdatePointVectorsBuilder,
};
use tonic::Code;
use uuid::Uuid;

use crate::documents::error::DocumentsError;
use crate::documents::qdrant::QdrantDocuments;
use crate::documents::qdrant::points::{StoredSegment, What, point_id, read};
use crate::documents::request::Whose;
use crate::documents::store::{SegmentId, Unembedded};
use crate::server::dense_size;

impl QdrantDocuments {
    /// The name of a space's dense vector in a collection that has it, or is given it.
    pub(super) async fn space(&self, whose: &Whose, space: &Space) -> Result<String, DocumentsError> {
        let (collection, name) = (self.collection(whose), dense_name(space));
        let key = (collection.clone(), space.clone());
        if self.spaces().contains(&key) {
            return Ok(name);
        }
        if self.size(whose, &name).await? != Some(space.dimension as u64) {
            let dense = DenseVectorCreationConfigBuilder::new(space.dimension as u64, Distance::Cosine);
            let create = CreateVectorNameRequestBuilder::new(&collection, &name, dense).wait(true);
            match self.server.client.create_vector_name(create).await {
                Ok(_) => tracing::info!(collection, embedder = space.name, "the collection has vectors of this embedder"),
                Err(QdrantError::ResponseError { status }) if status.code() == Code::Unimplemented => {
                    let (url, reason) = (self.server.url.clone(), status.message().to_owned());
                    return Err(DocumentsError::NoNewVectors { url, reason });
                }
                // another replica was faster
                Err(error) if self.size(whose, &name).await? != Some(space.dimension as u64) => {
                    return Err(self.failed(whose, error).await);
                }
                Err(_) => {}
            }
        }
        self.spaces().insert(key);
        Ok(name)
    }

    /// The dimension of a collection's dense vector of a name, if it has it.
    pub(super) async fn size(&self, whose: &Whose, name: &str) -> Result<Option<u64>, DocumentsError> {
        let info = self.told(whose, self.server.client.collection_info(self.collection(whose)).await).await?;
        Ok(info.result.and_then(|info| dense_size(&info, name)))
    }

    fn spaces(&self) -> MutexGuard<'_, HashSet<(String, Space)>> {
        self.spaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a request failed another replica may have made the collection anew, without the vectors
    /// that this one knows of: the next request asks again.
    pub(super) fn asked_anew<T>(&self, whose: &Whose, result: Result<T, DocumentsError>) -> Result<T, DocumentsError> {
        if result.is_err() {
            self.forget_spaces(whose);
        }
        result
    }

    /// Nothing is known of a collection's vectors.
    pub(super) fn forget_spaces(&self, whose: &Whose) {
        let collection = self.collection(whose);
        self.spaces().retain(|(known, _)| *known != collection);
    }

    /// Some segments that have no vector in a space, and how many there are in all.
    pub(super) async fn unembedded(&self, whose: &Whose, space: &Space, limit: usize) -> Result<(Vec<Unembedded>, usize), DocumentsError> {
        let vector = self.space(whose, space).await?;
        let filter = Filter { must_not: vec![Condition::has_vector(vector)], ..Filter::must([What::Segment.is()]) };
        let mut segments: Vec<Unembedded> = Vec::new();
        // from anywhere, so that replicas do not all embed the same ones; then from the beginning
        for from in [Some(Uuid::new_v4()), None] {
            let scroll = ScrollPointsBuilder::new(self.collection(whose)).filter(filter.clone()).limit(limit as u32).with_payload(true);
            let scroll = match from {
                Some(from) => scroll.offset(PointId::from(from.to_string())),
                None => scroll,
            };
            let page = self.told(whose, self.server.client.scroll(scroll).await).await?.result;
            for stored in page.into_iter().filter_map(|point| read::<StoredSegment>(point.payload)) {
                let id = stored.id();
                if segments.len() < limit && !segments.iter().any(|segment| segment.id == id) {
                    segments.push(Unembedded { id, text: Segment::from(stored).embedded() });
                }
            }
            if segments.len() == limit {
                // estimated: an exact count reads the whole collection, for every batch
                let count = CountPointsBuilder::new(self.collection(whose)).filter(filter).exact(false);
                let counted = self.told(whose, self.server.client.count(count).await).await?;
                return Ok((segments, (counted.result.unwrap_or_default().count as usize).max(limit)));
            }
        }
        let left = segments.len();
        Ok((segments, left))
    }

    /// Stores vectors of segments.
    pub(super) async fn embed(&self, whose: &Whose, space: &Space, vectors: Vec<(SegmentId, Vec<f32>)>) -> Result<(), DocumentsError> {
        let name = self.space(whose, space).await?;
        let point = |(id, vector): (SegmentId, Vec<f32>)| PointVectors {
            id: Some(point_id(id)),
            vectors: Some(NamedVectors::default().add_vector(name.clone(), vector).into()),
        };
        let points: Vec<PointVectors> = vectors.into_iter().map(point).collect();
        let update = UpdatePointVectorsBuilder::new(self.collection(whose), points).wait(true);
        match self.server.client.update_vectors(update).await {
            Ok(_) => Ok(()),
            // a file was replaced or removed meanwhile; the other segments come again
            Err(QdrantError::ResponseError { status }) if status.code() == Code::NotFound => Ok(()),
            Err(error) => Err(self.failed(whose, error).await),
        }
    }
}

/// The name of a space's vector.
pub(super) fn dense_name(space: &Space) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '.') { c } else { '_' };
    format!("dense-{}-{}", space.name.chars().map(plain).take(100).collect::<String>(), space.dimension)
}

//! Documents on this machine's disk.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_collections::{Collection, CollectionName, Collections, CollectionsError, Entry, Found, NewSegment, Opened, Space};
use autoact_service::{Setup, StartError};
use autoact_trajectory::Tenant;
use tokio_util::sync::CancellationToken;

use crate::documents::error::DocumentsError;
use crate::documents::request::Whose;
use crate::documents::shelf::Shelf;
use crate::documents::store::{Counts, DocumentStore, SegmentId, Unembedded};

/// How often collections are looked at that nobody changes.
const LOOK_EVERY: Duration = Duration::from_secs(20);
/// A collection that nobody has changed for so long gives back what changing it needs.
const IDLE: Duration = Duration::from_secs(60);

/// The collections in a directory.
pub(super) struct EmbeddedDocuments {
    shelf: Shelf,
}

impl EmbeddedDocuments {
    pub(super) async fn open(directory: &Path, setup: &mut Setup) -> Result<EmbeddedDocuments, StartError> {
        let path = directory.to_owned();
        let opened = tokio::task::spawn_blocking(move || Collections::open(&path)).await.map_err(StartError::new)?;
        let collections = opened.map_err(|error| {
            let fix = error.fix();
            StartError::new(error).fix(fix)
        })?;
        tracing::info!(documents_dir = %directory.display(), "the documents are open");
        let shelf = Shelf::new(Arc::new(collections));
        setup.tasks().spawn_until_stopped("documents at rest", |stopping| rest(shelf.clone(), stopping));
        Ok(EmbeddedDocuments { shelf })
    }
}

/// Work on one collection that is there.
fn on<T>(
    whose: &Whose,
    work: impl FnOnce(&Collection) -> Result<T, CollectionsError> + Send + 'static,
) -> impl FnOnce(&Collections) -> Result<T, CollectionsError> + Send + 'static {
    let Whose { tenant, collection } = whose.clone();
    move |collections| work(&*collections.get(&tenant, &collection)?)
}

/// Brings collections to rest that nobody changes, and all of them at the end.
async fn rest(shelf: Shelf, stopping: CancellationToken) {
    loop {
        let stop = tokio::time::timeout(LOOK_EVERY, stopping.cancelled()).await.is_ok();
        let idle = if stop { Duration::ZERO } else { IDLE };
        if let Err(error) = shelf.write("rest", move |collections| collections.rest(idle)).await {
            tracing::warn!(%error, "a collection could not be brought to rest");
        }
        if stop {
            return;
        }
    }
}

#[tonic::async_trait]
impl DocumentStore for EmbeddedDocuments {
    async fn all(&self) -> Result<Vec<Whose>, DocumentsError> {
        let all = self.shelf.read("collections", Collections::all).await?;
        Ok(all.into_iter().map(|(tenant, collection)| Whose { tenant, collection }).collect())
    }

    async fn names(&self, tenant: &Tenant) -> Result<Vec<CollectionName>, DocumentsError> {
        let tenant = tenant.clone();
        self.shelf.read("collections", move |collections| collections.names(&tenant)).await
    }

    async fn counts(&self, whose: &Whose, space: Option<&Space>) -> Result<Counts, DocumentsError> {
        let space = space.cloned();
        let counts = move |collection: &Collection| {
            let (files, segments) = collection.counts()?;
            let vectors = space.as_ref().map_or(Ok(0), |space| collection.with_vector(space))?;
            Ok(Counts { files, segments, vectors })
        };
        self.shelf.read("counts", on(whose, counts)).await
    }

    async fn put(&self, whose: &Whose, entry: Entry, segments: Vec<NewSegment>) -> Result<u64, DocumentsError> {
        let Whose { tenant, collection } = whose.clone();
        self.shelf.write("put", move |collections| collections.get_or_make(&tenant, &collection)?.put(&entry, segments)).await
    }

    async fn delete_files(&self, whose: &Whose, paths: Vec<String>) -> Result<u64, DocumentsError> {
        self.shelf.write("delete", on(whose, move |collection| collection.delete(&paths))).await
    }

    async fn delete_collection(&self, whose: &Whose) -> Result<bool, DocumentsError> {
        let Whose { tenant, collection } = whose.clone();
        self.shelf.write("delete_collection", move |collections| collections.delete(&tenant, &collection)).await
    }

    async fn entries(&self, whose: &Whose) -> Result<Vec<Entry>, DocumentsError> {
        self.shelf.read("list", on(whose, Collection::entries)).await
    }

    async fn words(&self, whose: &Whose, query: &str, limit: usize) -> Result<Vec<Found>, DocumentsError> {
        let query = query.to_owned();
        self.shelf.read("words", on(whose, move |collection| collection.words(&query, limit))).await
    }

    async fn near(&self, whose: &Whose, space: &Space, vector: &[f32], limit: usize) -> Result<Vec<Found>, DocumentsError> {
        let (space, vector) = (space.clone(), vector.to_vec());
        self.shelf.read("near", on(whose, move |collection| collection.near(&space, &vector, limit))).await
    }

    async fn named(&self, whose: &Whose, name: &str, similar: usize) -> Result<Opened, DocumentsError> {
        let name = name.to_owned();
        self.shelf.read("open", on(whose, move |collection| collection.named(&name, similar))).await
    }

    async fn without_vector(&self, whose: &Whose, space: &Space, limit: usize) -> Result<(Vec<Unembedded>, usize), DocumentsError> {
        let space = space.clone();
        let (segments, all) =
            self.shelf.write("without_vector", on(whose, move |collection| collection.without_vector(&space, limit))).await?;
        let unembedded = |segment: autoact_collections::Segment| Unembedded { id: segment.number.into(), text: segment.embedded() };
        Ok((segments.into_iter().map(unembedded).collect(), all))
    }

    async fn add_vectors(&self, whose: &Whose, space: &Space, vectors: Vec<(SegmentId, Vec<f32>)>) -> Result<(), DocumentsError> {
        let space = space.clone();
        // its numbers have 64 bits
        let numbered: Vec<(u64, Vec<f32>)> = vectors.into_iter().map(|(id, vector)| (id as u64, vector)).collect();
        self.shelf.write("vectors", on(whose, move |collection| collection.add_vectors(&space, &numbered))).await
    }
}

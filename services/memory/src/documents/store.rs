//! What keeps documents: files on this machine's disk, or a Qdrant server.

use autoact_collections::{CollectionName, Entry, Found, NewSegment, Opened, Space};
use autoact_trajectory::Tenant;

use crate::documents::error::DocumentsError;
use crate::documents::request::Whose;

/// What a store calls a segment.
pub(super) type SegmentId = u128;

/// What a collection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) segments: u64,
    /// Segments that have a vector in the space that was asked for.
    pub(super) vectors: u64,
}

/// A segment without a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unembedded {
    pub(super) id: SegmentId,
    /// What an embedder reads of it.
    pub(super) text: String,
}

/// Keeps documents, of every tenant for itself. None of its calls blocks an async thread.
#[tonic::async_trait]
pub(super) trait DocumentStore: Send + Sync + 'static {
    /// All collections of all tenants.
    async fn all(&self) -> Result<Vec<Whose>, DocumentsError>;
    /// A tenant's collections, sorted by name.
    async fn names(&self, tenant: &Tenant) -> Result<Vec<CollectionName>, DocumentsError>;
    /// How much a collection has.
    async fn counts(&self, whose: &Whose, space: Option<&Space>) -> Result<Counts, DocumentsError>;
    /// Replaces what a collection has of a file, and makes the collection if it is not there; how
    /// many segments the file has now. Returns once that survives a crash and is found.
    async fn put(&self, whose: &Whose, entry: Entry, segments: Vec<NewSegment>) -> Result<u64, DocumentsError>;
    /// Removes files; how many there were.
    async fn delete_files(&self, whose: &Whose, paths: Vec<String>) -> Result<u64, DocumentsError>;
    /// Removes a collection; whether there was one.
    async fn delete_collection(&self, whose: &Whose) -> Result<bool, DocumentsError>;
    /// All files, sorted by path.
    async fn entries(&self, whose: &Whose) -> Result<Vec<Entry>, DocumentsError>;
    /// The segments that match a query's words best, best first.
    async fn words(&self, whose: &Whose, query: &str, limit: usize) -> Result<Vec<Found>, DocumentsError>;
    /// The segments whose vectors are nearest to a query's, nearest first.
    async fn near(&self, whose: &Whose, space: &Space, vector: &[f32], limit: usize) -> Result<Vec<Found>, DocumentsError>;
    /// The segment that a name means, or up to `similar` titles like it.
    async fn named(&self, whose: &Whose, name: &str, similar: usize) -> Result<Opened, DocumentsError>;
    /// Some segments that have no vector in a space yet, and how many there are in all.
    async fn without_vector(&self, whose: &Whose, space: &Space, limit: usize) -> Result<(Vec<Unembedded>, usize), DocumentsError>;
    /// Stores vectors of segments, all of those that one [`without_vector`](Self::without_vector)
    /// gave, in its order.
    async fn add_vectors(&self, whose: &Whose, space: &Space, vectors: Vec<(SegmentId, Vec<f32>)>) -> Result<(), DocumentsError>;
}

//! Dense vectors, once something makes them.

/// Turns a text into a dense vector. Called off the async threads. The Qdrant store's layout and
/// queries know dense vectors already; no embedder is bundled yet, and the embedded store has none.
pub trait Embedder: Send + Sync + 'static {
    /// Which one it is: vectors of different embedders cannot be compared, so a store remembers the
    /// name.
    fn name(&self) -> &str;
    /// The length of its vectors.
    fn dimension(&self) -> usize;
    /// The vector of a text.
    fn embed(&self, text: &str) -> Result<Vec<f32>, EmbedError>;
}

/// A text without a vector.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the embedder `{embedder}` failed: {reason}")]
pub struct EmbedError {
    /// Its name.
    pub embedder: String,
    /// What it says.
    pub reason: String,
}

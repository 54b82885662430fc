//! The trait of all embedders.

use crate::EmbedError;

/// Turns texts into dense vectors. Called off the async threads (see the [crate](crate)).
pub trait Embedder: Send + Sync {
    /// Which model it is, and which revision of it. Vectors of different names are not comparable,
    /// so whoever stores vectors stores the name with them.
    fn name(&self) -> &str;

    /// The length of its vectors.
    fn dimension(&self) -> usize;

    /// The vector of each text, in their order. Vectors have the length 1, so their dot product is
    /// the cosine. No texts give no vectors. The end of a text that is too long does not count.
    ///
    /// # Errors
    /// All texts fail together; [`EmbedError::is_transient`] says whether to try again.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

//! What a tool returns for people, beside its text for the model.

use crate::digest::Digest;

/// A reference to bytes in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// `table`, `image`, `chart`, `passage` or `file`.
    pub kind: String,
    /// Its media type, such as `text/csv`.
    pub media_type: String,
    /// What people call it.
    pub name: String,
    /// Its name in the object store.
    pub object: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: Option<Digest>,
    /// A short description for the model.
    pub text: String,
}

//! SHA-256 of stored bytes.

use autoact_trajectory::Digest;
use sha2::{Digest as _, Sha256};

/// SHA-256 of stored bytes.
pub fn digest(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}

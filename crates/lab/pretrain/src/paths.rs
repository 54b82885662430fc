//! The files of a training run.

use std::path::PathBuf;

/// The inputs and outputs of a training run.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The recipe file. Its directory also contains `worlds.toml` and `nouns.txt`.
    pub recipe: PathBuf,
    /// The atlas's directory: its schema, and its tables for the spelling of invented names.
    pub atlas: PathBuf,
    /// The model directory; a training run writes its results there.
    pub model: PathBuf,
    /// Directory for checkpoints, with one subdirectory for each training run.
    pub work: PathBuf,
}

//! The files of a training run.

use std::path::PathBuf;

/// Where things are.
#[derive(Debug, Clone)]
pub struct Paths {
    /// The recipe file; the base's worlds lie beside it.
    pub recipe: PathBuf,
    /// The atlas: its schema and, for the spelling of invented names, its tables.
    pub atlas: PathBuf,
    /// The model directory that is written.
    pub model: PathBuf,
    /// Where checkpoints go.
    pub work: PathBuf,
}

//! Errors of training.

use std::path::{Path, PathBuf};

use autoact_checkpoint::{ConfigError, FileError};

/// An error of this crate. Messages name the file, what was expected and what was found.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// A setting is out of range or contradicts another one.
    #[error("bad setting: {0}")]
    Config(String),
    /// A file could not be read or written.
    #[error("cannot {action} `{path}`")]
    Io {
        /// What was being done (`read`, `write`, ...).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The content of a file is invalid.
    #[error("`{path}`: {message}")]
    Format {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        message: String,
    },
    /// An adapter could not be read or written.
    #[error(transparent)]
    Adapter(#[from] autoact_lora::AdapterError),
    /// A tensor of the model is not in the file.
    #[error("`{path}`: tensor `{name}` is missing")]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor has another shape.
    #[error("`{path}`: tensor `{name}` has shape {found:?}, expected {expected:?}")]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: String,
        /// The shape that the model needs.
        expected: Vec<usize>,
        /// The shape in the file.
        found: Vec<usize>,
    },
    /// A document is invalid.
    #[error("document {index}: {message}")]
    Document {
        /// The document's index in its source.
        index: u64,
        /// What is wrong with it.
        message: String,
    },
    /// The loss or the gradient is no longer a finite number.
    #[error("training diverged at step {step}: loss {loss}, gradient norm {grad_norm}")]
    Diverged {
        /// The optimiser step at which it was noticed.
        step: u64,
        /// The loss of that step.
        loss: f64,
        /// The gradient norm of that step.
        grad_norm: f64,
    },
    /// A worker thread panicked.
    #[error("the {0} thread ended unexpectedly")]
    Thread(&'static str),
}

impl From<FileError> for TrainError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { action, path, source } => Self::Io { action, path, source },
            FileError::Format { path, message } => Self::Format { path, message },
        }
    }
}

impl From<ConfigError> for TrainError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Read { path, source } => Self::Io { action: "read", path, source },
            ConfigError::Json { path, source } => Self::Format { path, message: source.to_string() },
            ConfigError::Unsupported { path, key, found, expected } => {
                Self::Format { path, message: format!("`{key}` is `{found}`, expected {expected}") }
            }
        }
    }
}

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, TrainError>;

impl TrainError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn format(path: &Path, message: impl std::fmt::Display) -> Self {
        Self::Format { path: path.to_path_buf(), message: message.to_string() }
    }
}

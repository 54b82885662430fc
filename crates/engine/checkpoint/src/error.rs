use std::path::{Path, PathBuf};

/// Why a `config.json` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// It is not what Hugging Face writes.
    #[error("`{}` is not a valid model configuration", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where the JSON went wrong.
        source: serde_json::Error,
    },
    /// It describes a model that nothing here computes.
    #[error("`{}` sets `{key}` to `{found}`, expected {expected}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The configuration key.
        key: &'static str,
        /// Its value.
        found: String,
        /// What would have been accepted.
        expected: String,
    },
}

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was being done (`read`, `write`, ...).
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The content is not what it should be.
    #[error("`{}`: {message}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        message: String,
    },
}

impl FileError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    pub(crate) fn format(path: &Path, message: impl std::fmt::Display) -> Self {
        Self::Format { path: path.to_path_buf(), message: message.to_string() }
    }
}

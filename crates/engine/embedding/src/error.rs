//! Errors of embedders.

use std::path::PathBuf;
use std::time::Duration;

use autoact_http_client::ClientError;

/// Why there is no embedder, or no vector.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// A file of the model cannot be read.
    #[error("cannot read `{}`; fix: run `scripts/fetch-embedder`, or name the directory of a model that is there", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file is not what a model of this kind has.
    #[error("`{}` cannot be used: {reason}; fix: {fix}", path.display())]
    Model {
        /// The file.
        path: PathBuf,
        /// What was expected, and what was found.
        reason: String,
        /// What to do.
        fix: &'static str,
    },
    /// A text cannot be split into word pieces.
    #[error("cannot split a text into word pieces: {reason}")]
    Pieces {
        /// The tokenizer's message.
        reason: String,
    },
    /// The model failed.
    #[error("the model cannot compute vectors: {reason}")]
    Compute {
        /// Its message.
        reason: String,
    },
    /// An option of the HTTP client cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server has too much to do.
    #[error("`{url}` is busy: {reason}")]
    Busy {
        /// What was asked for.
        url: String,
        /// Its message.
        reason: String,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The server is away, broken or too slow.
    #[error("no vectors from `{url}`: {reason}")]
    Unavailable {
        /// What was asked for.
        url: String,
        /// The failure of the last attempt.
        reason: String,
    },
    /// The server will not do it, or cannot be trusted.
    #[error("`{url}` refuses: {reason}")]
    Refused {
        /// What was asked for.
        url: String,
        /// Its message.
        reason: String,
    },
    /// The server's reply is not what the API promises.
    #[error("`{url}` answered something else than the vectors: {reason}")]
    Reply {
        /// What was asked for.
        url: String,
        /// What was expected, and what was found.
        reason: String,
    },
}

impl EmbedError {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(self, EmbedError::Busy { .. } | EmbedError::Unavailable { .. })
    }
}

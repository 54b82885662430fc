//! Why a server cannot be spoken to. What goes wrong later, in one completion, is a `GenerateError`.

use std::path::PathBuf;
use std::time::Duration;

/// Why a server cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The address is none.
    #[error("`{url}` is no address of an API ({reason}); expected one such as `http://vllm:8000/v1`")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The key cannot be sent in a header.
    #[error("the API key holds characters that a header cannot carry")]
    Key,
    /// A file of certificates cannot be read.
    #[error("cannot read certificates from `{}`: {reason}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing to check the server's certificate against.
    #[error("this system has no certificate authorities to check `{url}` against; name a file of them in `ca_file`")]
    NoAuthorities {
        /// The server.
        url: String,
    },
    /// No answer, or no good one, however long we waited.
    #[error("no answer from `{url}` within `{waited:?}`: {reason}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// How long.
        waited: Duration,
        /// The last attempt's trouble.
        reason: String,
    },
    /// The server refuses, and will refuse again.
    #[error("`{url}` {reason}")]
    Refused {
        /// What was asked for.
        url: String,
        /// What it says.
        reason: String,
    },
    /// The served name is none.
    #[error("the server at `{url}` serves no `{model}`; it serves `{}`", served.join("`, `"))]
    UnknownModel {
        /// The server.
        url: String,
        /// The name asked for.
        model: String,
        /// Those there are.
        served: Vec<String>,
    },
    /// Neither the server nor the settings say how long a prompt may be.
    #[error("the server at `{url}` does not say how many tokens `{model}` reads; set the context length")]
    NoContextLength {
        /// The server.
        url: String,
        /// The model.
        model: String,
    },
    /// The spellings of control tokens cannot be searched for.
    #[error("cannot prepare the spellings of `{count}` control tokens: {reason}")]
    ControlTokens {
        /// How many.
        count: usize,
        /// What is wrong.
        reason: String,
    },
    /// The grammar engine did not start.
    #[error("cannot prepare grammars: {reason}")]
    Grammars {
        /// What it says.
        reason: String,
    },
}

//! Errors of connecting to a server. Errors of a completion are `GenerateError`.

use std::path::PathBuf;
use std::time::Duration;

use autoact_http_client::ClientError;

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// An option of the HTTP client cannot be used.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server did not answer in time.
    #[error("no answer from `{url}` within `{waited:?}`: {reason}")]
    Unreachable {
        /// What was asked for.
        url: String,
        /// The waiting time.
        waited: Duration,
        /// The failure of the last attempt.
        reason: String,
    },
    /// The server refuses permanently.
    #[error("`{url}` {reason}")]
    Refused {
        /// What was asked for.
        url: String,
        /// The server's message.
        reason: String,
    },
    /// The server does not serve the name: it is not in its list, and a request with it fails.
    #[error("the server at `{url}` serves no `{model}`; it serves {}", names(served))]
    UnknownModel {
        /// The server.
        url: String,
        /// The requested name.
        model: String,
        /// The served names.
        served: Vec<String>,
    },
    /// The served adapter is activated, and the server applies it to all tokens, without an error.
    #[error(
        "`{model}` of the server at `{url}` is an activated adapter (`alora_invocation_tokens` in `{}`), which the server is not known to \
         apply",
        path.display()
    )]
    Activated {
        /// The server.
        url: String,
        /// The requested name.
        model: String,
        /// The adapter's configuration.
        path: PathBuf,
    },
    /// The server completes nothing, neither as a text nor as a chat.
    #[error("the server at `{url}` completes nothing as `{model}`: {reason}")]
    Mute {
        /// The server.
        url: String,
        /// The requested name.
        model: String,
        /// Its answers.
        reason: String,
    },
    /// The spellings of control tokens cannot be searched for.
    #[error("cannot prepare the spellings of `{count}` control tokens: {reason}")]
    ControlTokens {
        /// Number of spellings.
        count: usize,
        /// What is wrong.
        reason: String,
    },
    /// The grammar engine could not be initialised.
    #[error("cannot prepare grammars: {reason}")]
    Grammars {
        /// Its message.
        reason: String,
    },
}

fn names(served: &[String]) -> String {
    if served.is_empty() { "nothing by name".to_owned() } else { format!("`{}`", served.join("`, `")) }
}

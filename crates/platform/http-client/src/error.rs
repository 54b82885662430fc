//! Errors of options. Errors of requests are [`HttpError`](crate::HttpError).

use std::path::PathBuf;

/// Why there can be no client with these options.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The address is invalid.
    #[error("`{url}` is no address of an API ({reason}); expected one such as `http://vllm:8000/v1`")]
    Url {
        /// The address.
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
    /// There are no certificate authorities to verify the server's certificate.
    #[error("this system has no certificate authorities to check `{url}` against; name a file of them in `ca_file`")]
    NoAuthorities {
        /// The server.
        url: String,
    },
}

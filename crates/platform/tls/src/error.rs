//! Why certificates cannot be used: the file, the cause, and what to do.

use std::path::PathBuf;

/// Why certificates cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Only some of the three files are named, or none where TLS is needed.
    #[error("{0}")]
    Settings(String),
    /// A file cannot be read, or is no PEM.
    #[error("cannot read `{path}` (`{setting}`): {reason}; fix: make it with `autoact certs init`, or name another file", path = .path.display())]
    File {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A file holds nothing of what it is for.
    #[error("there is no {what} in `{path}` (`{setting}`); fix: name a PEM file that holds one", path = .path.display())]
    Empty {
        /// The setting that names the file.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What it should hold.
        what: &'static str,
    },
    /// The key is not the certificate's, or of a kind that is not known.
    #[error("the key `{key}` does not fit the certificate `{cert}`: {source}; fix: name the key that belongs to it", key = .key.display(), cert = .cert.display())]
    Key {
        /// The key.
        key: PathBuf,
        /// The certificate.
        cert: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The certificate is not valid now: it has expired, or its time has not begun.
    #[error("the certificate `{cert}` is not valid now: {source}; fix: `autoact certs renew`, or check the clock", cert = .cert.display())]
    NotValidNow {
        /// The certificate.
        cert: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// An authority cannot be used.
    #[error("`{ca}` (`tls.ca`) cannot be used: {reason}; fix: name a PEM file of certificate authorities", ca = .ca.display())]
    Authority {
        /// The authorities.
        ca: PathBuf,
        /// Why.
        reason: String,
    },
}

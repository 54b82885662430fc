//! What may go wrong with certificates on disk.

use std::path::PathBuf;

/// Why certificates could not be made, renewed or read.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// There are certificates already.
    #[error("`{dir}` has an authority already; fix: `autoact certs renew` renews its certificates, `--force` replaces everything", dir = .dir.display())]
    Exists {
        /// The directory.
        dir: PathBuf,
    },
    /// There is no authority to make certificates with.
    #[error("`{path}` is missing: there is no authority to make certificates with; fix: `autoact certs init`, or name another directory with `--dir`", path = .path.display())]
    NoAuthority {
        /// What is missing.
        path: PathBuf,
    },
    /// The authority was made by something else, or its key is not its own.
    #[error("the authority in `{dir}` is not one that `autoact certs init` made, or `ca.key` is not its key; fix: renew with what made it", dir = .dir.display())]
    NotOurs {
        /// The directory.
        dir: PathBuf,
    },
    /// The authority ends before the certificates would.
    #[error("the authority in `{dir}` ends in {days} days; fix: fewer `--days`, or a new one: `autoact certs init --force`", dir = .dir.display())]
    AuthorityEnds {
        /// The directory.
        dir: PathBuf,
        /// How long it is still valid.
        days: u64,
    },
    /// A name that no certificate can have.
    #[error("`{name}` is no DNS name and no IP address; fix: names such as `gateway.example.org` or `10.0.0.1`")]
    Name {
        /// The name.
        name: String,
    },
    /// A lifetime that cannot be.
    #[error("`--days` must be between 1 and {most}, found {days}")]
    Days {
        /// What was asked for.
        days: u32,
        /// The most.
        most: u32,
    },
    /// A file that is no certificate or no key.
    #[error("`{path}` is not {expected}: {reason}; fix: name a PEM file, or a directory that `autoact certs init` made", path = .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What it should be.
        expected: &'static str,
        /// Why it is not.
        reason: String,
    },
    /// The file system refuses.
    #[error("cannot {what} `{path}`: {source}", path = .path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// Keys or certificates cannot be made.
    #[error("cannot make a certificate: {0}")]
    Make(String),
}

impl CertificateError {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> CertificateError {
        let path = path.into();
        move |source| CertificateError::Io { what, path, source }
    }

    pub(crate) fn make(error: rcgen::Error) -> CertificateError {
        CertificateError::Make(error.to_string())
    }
}

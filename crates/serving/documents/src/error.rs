//! Why a file is not a document.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Why nothing can be imported from a path.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The path cannot be read.
    #[error("cannot read `{}`; expected a directory or a file", path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why one file is not a document. The others of its directory are not concerned.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read the file")]
    #[serde(skip)]
    Read(#[source] io::Error),
    /// The file has become something else since it was found.
    #[error("not a regular file")]
    NotAFile,
    /// The file is too large.
    #[error("larger than {limit} bytes; fix: raise the limit, or split the file")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file has no text.
    #[error("the file has no text; fix: if its pages are scanned, recognise their characters (OCR) first")]
    NoText,
    /// There is too much text.
    #[error("more than {limit} bytes of text; fix: split the file")]
    TooMuchText {
        /// The limit.
        limit: usize,
    },
    /// The bytes are not in the encoding that they should be in.
    #[error("not {encoding} at byte {offset}; fix: convert the file to UTF-8, or declare its encoding where the format can (HTML)")]
    Encoding {
        /// The encoding.
        encoding: Cow<'static, str>,
        /// The first byte that does not fit.
        offset: usize,
    },
    /// The file declares an encoding that nobody knows.
    #[error("declares the unknown encoding `{label}`; fix: convert the file to UTF-8")]
    UnknownEncoding {
        /// What it declares.
        label: String,
    },
    /// A PDF that asks for a password.
    #[error("encrypted; fix: save a copy without a password")]
    Encrypted,
    /// The file breaks the rules of its format.
    #[error("broken: {message}")]
    Broken {
        /// What the parser says.
        message: String,
    },
    /// The file decompresses to too much.
    #[error("decompresses to more than {limit} bytes; it may be a decompression bomb")]
    Decompressed {
        /// The limit.
        limit: usize,
    },
    /// Reading takes too long.
    #[error("not read within {limit:?}; fix: split the file")]
    Time {
        /// The limit.
        limit: Duration,
    },
    /// The parser panicked: a mistake in it, which costs this file alone.
    #[error("the parser failed: {message}")]
    Panicked {
        /// The panic's message.
        message: String,
    },
    /// There is no thread to read it on.
    #[error("cannot start a thread")]
    #[serde(skip)]
    Thread(#[source] io::Error),
    /// Reading takes too much memory.
    #[error("not read within {limit} bytes of memory; it may be made to take more; fix: split the file")]
    Memory {
        /// The limit.
        limit: u64,
    },
    /// There is no confined process to read it in.
    #[error("cannot read it in a process of its own: {message}")]
    Process {
        /// Why.
        message: String,
    },
}

impl ReadError {
    /// A stable word for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            ReadError::Read(_) | ReadError::NotAFile | ReadError::Thread(_) | ReadError::Process { .. } => "unreadable",
            ReadError::TooLarge { .. } => "too_large",
            ReadError::Empty => "empty",
            ReadError::NoText => "no_text",
            ReadError::TooMuchText { .. } => "too_much_text",
            ReadError::Encoding { .. } | ReadError::UnknownEncoding { .. } => "encoding",
            ReadError::Encrypted => "encrypted",
            ReadError::Broken { .. } | ReadError::Panicked { .. } => "broken",
            ReadError::Decompressed { .. } => "decompressed",
            ReadError::Time { .. } => "time",
            ReadError::Memory { .. } => "memory",
        }
    }
}

//! Errors of reading data sets.

use std::fmt;
use std::path::PathBuf;

use crate::format::Format;

/// A mistake in one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMistake {
    /// Its position: `line 3`, `record 3` or `problem 12`.
    pub place: String,
    /// What is wrong with it.
    pub message: String,
}

/// An error in reading a data set.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    /// The file cannot be read.
    #[error("cannot read the data set `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is larger than any published set.
    #[error("the data set `{}` has {bytes} bytes, more than the `{limit}` that are read; fix: give a part of it", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The maximum size in bytes.
        limit: u64,
    },
    /// The file is not JSON.
    #[error("`{origin}` is no JSON array, no JSON object of problems, and has no JSON object a line")]
    NotJson {
        /// The file's name.
        origin: String,
        /// The position and the cause.
        source: serde_json::Error,
    },
    /// Records are invalid; up to 20 mistakes are reported.
    #[error("{}", Told { origin, format: *format, mistakes, more: *more })]
    Mistakes {
        /// The file's name.
        origin: String,
        /// What was expected.
        format: Format,
        /// The mistakes.
        mistakes: Vec<RecordMistake>,
        /// Number of further mistakes.
        more: usize,
    },
    /// The file has no records.
    #[error("the data set `{origin}` has no records; expected one JSON object a line: {}", format.example())]
    Empty {
        /// The file's name.
        origin: String,
        /// What was expected.
        format: Format,
    },
}

struct Told<'a> {
    origin: &'a str,
    format: Format,
    mistakes: &'a [RecordMistake],
    more: usize,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` has {} record(s) that are not `{}`:", self.origin, self.mistakes.len() + self.more, self.format)?;
        for mistake in self.mistakes {
            write!(f, "\n  {}: {}", mistake.place, mistake.message)?;
        }
        if self.more > 0 {
            write!(f, "\n  and {} more", self.more)?;
        }
        write!(f, "\nexpected {}", self.format.example())
    }
}

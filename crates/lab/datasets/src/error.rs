//! Why there are no records.

use std::fmt;
use std::path::PathBuf;

use crate::format::Format;

/// A mistake in one record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordMistake {
    /// Where it stands: `line 3`, `record 3` or `problem 12`.
    pub place: String,
    /// What is wrong with it.
    pub message: String,
}

/// Why a file gives no records.
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
        /// What is read.
        limit: u64,
    },
    /// It is no JSON at all.
    #[error("`{origin}` is no JSON array, no JSON object of problems, and has no JSON object a line")]
    NotJson {
        /// The file's name.
        origin: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Some records have mistakes; up to 20 are told.
    #[error("{}", Told { origin, format: *format, mistakes, more: *more })]
    Mistakes {
        /// The file's name.
        origin: String,
        /// What was expected.
        format: Format,
        /// What is wrong where.
        mistakes: Vec<RecordMistake>,
        /// How many mistakes are not told.
        more: usize,
    },
    /// There is no record at all.
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

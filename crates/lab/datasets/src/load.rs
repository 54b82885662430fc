//! Reading records from files and texts.

use std::path::Path;

use crate::error::DatasetError;
use crate::file::{read, records};
use crate::format::Format;
use crate::record::Record;
use crate::{hotpotqa, scienceqa};

impl Format {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read or has invalid records; up to 20 mistakes are reported together.
    pub fn load(self, path: impl AsRef<Path>) -> Result<Vec<Record>, DatasetError> {
        let path = path.as_ref();
        self.parse(&read(path)?, &path.display().to_string())
    }

    /// Parses a text; `origin` is its name in error messages.
    ///
    /// # Errors
    /// The text has no records or invalid ones.
    pub fn parse(self, text: &str, origin: &str) -> Result<Vec<Record>, DatasetError> {
        match self {
            Format::HotpotQa => records(text, origin, self, hotpotqa::record),
            Format::ScienceQa => records(text, origin, self, scienceqa::record),
        }
    }
}

//! Importing a directory, file by file.

use std::path::Path;

use crate::document::Document;
use crate::error::{OpenError, ReadError};
use crate::parse::{bytes, sha256};
use crate::reader::Reader;
use crate::walk::{FileEntry, Ignored, walk};

/// The files of a directory, and what reads them.
#[derive(Debug)]
pub struct Importer {
    files: Vec<FileEntry>,
    ignored: Ignored,
    reader: Reader,
}

impl Importer {
    /// Finds the files below a directory, or takes one file.
    pub fn open(path: &Path, reader: Reader) -> Result<Importer, OpenError> {
        let (files, ignored) = walk(path)?;
        Ok(Importer { files, ignored, reader })
    }

    /// The files that can be read, sorted.
    pub fn files(&self) -> &[FileEntry] {
        &self.files
    }

    /// What was passed over.
    pub fn ignored(&self) -> &Ignored {
        &self.ignored
    }

    /// SHA-256 of a file's bytes, in hexadecimal, without parsing it.
    pub fn digest(&self, file: &FileEntry) -> Result<String, ReadError> {
        Ok(sha256(&self.bytes(file)?))
    }

    /// Reads a file.
    pub fn read(&self, file: &FileEntry) -> Result<Document, ReadError> {
        self.reader.read(&file.path, file.kind, self.bytes(file)?)
    }

    fn bytes(&self, file: &FileEntry) -> Result<Vec<u8>, ReadError> {
        bytes(&file.location, self.reader.limits().file_bytes)
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;

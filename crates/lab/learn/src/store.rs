//! Append-only files of JSON lines. Every line is written by one call. An incomplete last line (the
//! process was killed, or the disk was full) is removed on opening.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::LearnError;

/// An open file of JSON lines.
#[derive(Debug)]
pub(crate) struct Store<T> {
    path: PathBuf,
    file: File,
    line: PhantomData<fn(T)>,
}

impl<T: Serialize + DeserializeOwned> Store<T> {
    /// Opens or creates the file and returns its lines.
    ///
    /// # Errors
    /// The file cannot be read, or a line other than the last is not a valid `T`.
    pub(crate) fn open(path: &Path) -> Result<(Store<T>, Vec<T>), LearnError> {
        let io = |action| LearnError::io(action, path);
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).map_err(io("make the directory of"))?;
        }
        let (lines, whole) = read_whole(path)?;
        let mut file = OpenOptions::new().create(true).append(true).open(path).map_err(io("open"))?;
        let length = file.metadata().map_err(io("read"))?.len();
        if length > whole {
            file.set_len(whole).map_err(io("cut the torn last line of"))?;
            file.flush().map_err(io("write"))?;
        }
        Ok((Store { path: path.to_owned(), file, line: PhantomData }, lines))
    }

    /// Appends a line; it is written to the file before this returns.
    ///
    /// # Errors
    /// The file cannot be written, for example because the disk is full.
    pub(crate) fn push(&mut self, line: &T) -> Result<(), LearnError> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| LearnError::io("write", &self.path)(error.into()))?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).map_err(LearnError::io("write", &self.path))
    }

    /// Flushes the file to disk, so that its lines survive a power failure.
    ///
    /// # Errors
    /// The file system fails.
    pub(crate) fn sync(&self) -> Result<(), LearnError> {
        self.file.sync_data().map_err(LearnError::io("write", &self.path))
    }
}

/// The lines of a file, without an incomplete last one; empty if the file does not exist.
///
/// # Errors
/// As [`Store::open`].
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LearnError> {
    Ok(read_whole(path)?.0)
}

/// The lines, and the number of bytes that complete lines take.
fn read_whole<T: DeserializeOwned>(path: &Path) -> Result<(Vec<T>, u64), LearnError> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), 0)),
        Err(error) => return Err(LearnError::io("read", path)(error)),
    };
    let mut lines = Vec::new();
    let mut whole = 0;
    for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let parsed = serde_json::from_slice::<T>(line);
        let last = whole + line.len() == bytes.len();
        match parsed {
            Ok(value) if line.ends_with(b"\n") => lines.push(value),
            _ if last => break,
            Ok(_) => break,
            Err(error) => return Err(LearnError::Line { path: path.to_owned(), line: at + 1, reason: error.to_string() }),
        }
        whole += line.len();
    }
    Ok((lines, whole as u64))
}

/// Replaces a file atomically: a reader sees either the old or the new content.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), LearnError> {
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(LearnError::io("make the directory of", path))?;
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let written = File::create(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(LearnError::io("write", path))?;
    std::fs::rename(&temporary, path).map_err(LearnError::io("write", path))
}

/// [`write_atomic`] of a value as indented JSON.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), LearnError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|error| LearnError::io("write", path)(error.into()))?;
    text.push('\n');
    write_atomic(path, text.as_bytes())
}

/// The value in a JSON file; `None` if the file does not exist.
///
/// # Errors
/// The file cannot be read, or is not a valid `T`.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, LearnError> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| LearnError::Line {
            path: path.to_owned(),
            line: error.line(),
            reason: error.to_string(),
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LearnError::io("read", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_round_trip_and_an_incomplete_one_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/lines.jsonl");
        let (mut store, lines) = Store::<String>::open(&path).unwrap();
        assert!(lines.is_empty());
        store.push(&"one".to_owned()).unwrap();
        store.push(&"two\nlines".to_owned()).unwrap();
        drop(store);
        for torn in ["\"thr", "\"whole but without its line break\"", "\u{0}\u{0}"] {
            let mut file = OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(torn.as_bytes()).unwrap();
            let (mut store, lines) = Store::<String>::open(&path).unwrap();
            assert_eq!(lines[..2], ["one", "two\nlines"]);
            store.push(&"after".to_owned()).unwrap();
            assert_eq!(read::<String>(&path).unwrap().last().unwrap(), "after");
        }
        assert_eq!(read::<String>(&path).unwrap().len(), 5);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_an_error_with_its_number() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lines.jsonl");
        std::fs::write(&path, "1\nx\n3\n").unwrap();
        assert!(matches!(read::<u32>(&path), Err(LearnError::Line { line: 2, .. })));
        assert!(read::<u32>(&dir.path().join("absent")).unwrap().is_empty());
    }
}

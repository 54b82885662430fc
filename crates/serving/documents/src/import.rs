//! Importing a directory, file by file.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Instant;

use autoact_base::lines::one_line;

use crate::document::{Document, Extracted, Kind};
use crate::error::{OpenError, ReadError};
use crate::limits::Limits;
use crate::read::{self, Digest};
use crate::walk::{FileEntry, Ignored, walk};

/// The stack of the thread that reads a file: parsers bound their nesting, and the deepest that
/// they allow fits well. Only what is used takes memory.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// The name of the threads that read files: a program may leave their panics to [`ReadError`].
pub const READER_THREAD: &str = "document";

/// What reads files now: another version may make other segments of the same bytes. Change it with
/// what is extracted, and with how segments are cut.
pub const READER: &str = "documents-1";

/// How much longer than its time limit a parser may take to notice it.
const GRACE: u32 = 2;

/// The files of a directory, and what reading each may cost.
#[derive(Debug)]
pub struct Importer {
    files: Vec<FileEntry>,
    ignored: Ignored,
    limits: Limits,
}

impl Importer {
    /// Finds the files below a directory, or takes one file.
    pub fn open(path: &Path, limits: Limits) -> Result<Importer, OpenError> {
        let (files, ignored) = walk(path)?;
        Ok(Importer { files, ignored, limits })
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
        Ok(read::digest(file, &self.limits)?.sha256)
    }

    /// Reads a file. A parser that panics or does not end costs this file alone.
    pub fn read(&self, file: &FileEntry) -> Result<Document, ReadError> {
        let limits = self.limits;
        let entry = file.clone();
        let read = guarded(limits, move || read::read(&entry, &limits, Instant::now() + limits.time))?;
        document(file.path.clone(), file.kind, read)
    }
}

/// Reads bytes that are no file, such as those of a web page; `path` is what the document calls
/// them. A parser that panics or does not end costs this document alone.
///
/// # Errors
/// They are no document of this format, or a limit is reached.
pub fn read_bytes(path: &str, kind: Kind, bytes: Vec<u8>, limits: Limits) -> Result<Document, ReadError> {
    match bytes.len() as u64 {
        0 => return Err(ReadError::Empty),
        length if length > limits.file_bytes => return Err(ReadError::TooLarge { limit: limits.file_bytes }),
        _ => {}
    }
    let read = guarded(limits, move || read::parse(&bytes, kind, &limits, Instant::now() + limits.time))?;
    document(path.to_owned(), kind, read)
}

fn document(path: String, kind: Kind, (digest, extracted): (Digest, Extracted)) -> Result<Document, ReadError> {
    if extracted.sections.is_empty() {
        return Err(ReadError::NoText);
    }
    Ok(Document {
        title: extracted.title.unwrap_or_else(|| title(&path)),
        path,
        sha256: digest.sha256,
        bytes: digest.bytes,
        kind,
        pages: extracted.pages,
        text: extracted.text,
        sections: extracted.sections,
    })
}

/// The title of a file that has none: its name without the ending.
fn title(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let words = one_line(&stem.replace('_', " "));
    if words.is_empty() { one_line(name) } else { words }
}

/// Runs a parser on a thread of its own. Parsers look at the clock themselves; one that hangs in a
/// library is left alone, and its thread ends with the process.
fn guarded<T: Send + 'static>(limits: Limits, parse: impl FnOnce() -> Result<T, ReadError> + Send + 'static) -> Result<T, ReadError> {
    let (sender, receiver) = sync_channel(1);
    let run = move || {
        let result = catch_unwind(AssertUnwindSafe(parse)).unwrap_or_else(|panic| Err(ReadError::Panicked { message: message(&*panic) }));
        let _ = sender.send(result);
    };
    thread::Builder::new().name(READER_THREAD.to_owned()).stack_size(STACK_BYTES).spawn(run).map_err(ReadError::Thread)?;
    match receiver.recv_timeout(limits.time.saturating_mul(GRACE)) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(ReadError::Time { limit: limits.time }),
        Err(RecvTimeoutError::Disconnected) => Err(ReadError::Panicked { message: "its thread ended".to_owned() }),
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.map_or_else(|| "no message".to_owned(), |text| one_line(&text))
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;

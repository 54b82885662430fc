//! Who reads a document: this process, or a confined one for each document.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Instant;

use autoact_base::lines::one_line;
use autoact_sandbox::{Sandbox, SandboxError};

use crate::document::{Document, Extracted, Kind};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::parse::{parse, sha256};
use crate::process;

/// The stack of the thread that parses: parsers bound their nesting, and the deepest that they
/// allow fits well. Only what is used takes memory.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// The name of the threads that parse: a program may leave their panics to [`ReadError`].
pub const READER_THREAD: &str = "document";

/// What reads files now: another version may make other segments of the same bytes. Change it with
/// what is extracted, and with how segments are cut.
pub const READER: &str = "documents-1";

/// How much longer than its time limit a parser may take to notice it.
pub(crate) const GRACE: u32 = 2;

/// Reads documents within [`Limits`].
#[derive(Debug, Clone)]
pub struct Reader {
    limits: Limits,
    sandbox: Option<Sandbox>,
}

impl Reader {
    /// One that parses in this process. [`Limits::memory_bytes`] does not bound it.
    pub fn here(limits: Limits) -> Reader {
        Reader { limits, sandbox: None }
    }

    /// One that parses each document in a process of its own, in the stronger tier that is
    /// available: without files, network and other processes, and with bounded memory. The `main` of
    /// this executable has to begin with [`autoact_sandbox::run_if_launcher`] and
    /// [`crate::run_if_reader`].
    ///
    /// # Errors
    /// No tier is available here.
    pub fn confined(limits: Limits) -> Result<Reader, SandboxError> {
        let sandbox = Sandbox::default();
        autoact_sandbox::Tier::probe()?.choose(sandbox.tier, true)?;
        Ok(Reader::within(limits, sandbox))
    }

    /// Like [`Reader::confined`], in the sandbox's tier or a lesser one, and without a look whether
    /// any is available. Nothing else that the sandbox says counts: a parser needs no path, no
    /// network, and what `limits` say.
    pub fn within(limits: Limits, sandbox: Sandbox) -> Reader {
        let sandbox = Sandbox { limits: process::limits(&limits), read: Vec::new(), network: false, allow_lesser: true, ..sandbox };
        Reader { limits, sandbox: Some(sandbox) }
    }

    /// The sandbox of its processes, if it has any.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        self.sandbox.as_ref()
    }

    /// The same with another bound on time.
    #[must_use]
    pub fn within_time(&self, time: std::time::Duration) -> Reader {
        Reader { limits: Limits { time, ..self.limits }, ..self.clone() }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Reads bytes, such as those of a web page; `path` is what the document calls them. A parser
    /// that panics, does not end or wants too much costs this document alone.
    ///
    /// # Errors
    /// They are no document of this format, or a limit is reached.
    pub fn read(&self, path: &str, kind: Kind, bytes: Vec<u8>) -> Result<Document, ReadError> {
        match bytes.len() as u64 {
            0 => return Err(ReadError::Empty),
            length if length > self.limits.file_bytes => return Err(ReadError::TooLarge { limit: self.limits.file_bytes }),
            _ => {}
        }
        let (sha256, length) = (sha256(&bytes), bytes.len() as u64);
        let extracted = match &self.sandbox {
            Some(sandbox) => process::parsed(sandbox, kind, &bytes, self.limits),
            None => parsed_here(kind, bytes, self.limits),
        }?;
        if extracted.sections.is_empty() {
            return Err(ReadError::NoText);
        }
        let Extracted { title, pages, text, sections } = extracted;
        let title = title.unwrap_or_else(|| name(path));
        Ok(Document { path: path.to_owned(), sha256, bytes: length, title, kind, pages, text, sections })
    }
}

/// Parses in this process.
pub(crate) fn parsed_here(kind: Kind, bytes: Vec<u8>, limits: Limits) -> Result<Extracted, ReadError> {
    guarded(limits, move || parse(&bytes, kind, &limits, Instant::now() + limits.time))
}

/// The title of a file that has none: its name without the ending.
fn name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    let words = one_line(&stem.replace('_', " "));
    if words.is_empty() { one_line(name) } else { words }
}

/// Runs a parser on a thread of its own. Parsers look at the clock themselves; one that hangs in a
/// library is left alone, and its thread ends with the process.
pub(crate) fn guarded<T: Send + 'static>(
    limits: Limits,
    parse: impl FnOnce() -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
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

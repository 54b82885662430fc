//! The files of a backup: messages one after the other, each with its length before it. A file is
//! written once, and then only read.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use autoact_trajectory::Digest;
use autoact_wire::store_v2::StoredMessage;
use prost::Message;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::backup::error::BackupError;

/// A file that has so much is followed by another.
const MAX_BYTES: u64 = 64 << 20;
/// No message is longer: artifacts have up to 4 MiB.
const MAX_MESSAGE: usize = 64 << 20;

/// A file as the manifest names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Segment {
    /// Its name.
    pub(super) file: String,
    /// Messages in it.
    pub(super) messages: u64,
    /// Its length.
    pub(super) bytes: u64,
    /// SHA-256 of its bytes, in hexadecimal.
    pub(super) sha256: String,
}

/// Writes messages of one kind into as many files as they need.
pub(super) struct Writer {
    dir: PathBuf,
    kind: &'static str,
    /// Part of the files' names: no two runs have the same.
    run: u64,
    open: Option<Open>,
    done: Vec<Segment>,
}

struct Open {
    path: PathBuf,
    file: BufWriter<File>,
    hash: Sha256,
    segment: Segment,
}

impl Writer {
    pub(super) fn new(dir: &Path, kind: &'static str, run: u64) -> Writer {
        Writer { dir: dir.to_owned(), kind, run, open: None, done: Vec::new() }
    }

    pub(super) fn add(&mut self, message: &StoredMessage) -> Result<(), BackupError> {
        let open = match self.open.take() {
            Some(open) => self.open.insert(open),
            None => {
                let file = format!("{}-{:06}-{:03}.seg", self.kind, self.run, self.done.len());
                let path = self.dir.join(&file);
                let made = File::create(&path).map_err(BackupError::io(&path))?;
                let segment = Segment { file, messages: 0, bytes: 0, sha256: String::new() };
                self.open.insert(Open { path, file: BufWriter::new(made), hash: Sha256::new(), segment })
            }
        };
        let bytes = message.encode_length_delimited_to_vec();
        open.file.write_all(&bytes).map_err(BackupError::io(&open.path))?;
        open.hash.update(&bytes);
        open.segment.messages += 1;
        open.segment.bytes += bytes.len() as u64;
        if open.segment.bytes >= MAX_BYTES {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), BackupError> {
        let Some(Open { path, file, hash, mut segment }) = self.open.take() else { return Ok(()) };
        let file = file.into_inner().map_err(|error| BackupError::io(&path)(error.into_error()))?;
        file.sync_all().map_err(BackupError::io(&path))?;
        segment.sha256 = Digest(hash.finalize().into()).to_string();
        self.done.push(segment);
        Ok(())
    }

    /// The files; they are on the disk.
    pub(super) fn finish(mut self) -> Result<Vec<Segment>, BackupError> {
        self.close()?;
        Ok(self.done)
    }
}

/// Reads a file, and compares it with what the manifest says once it is read.
pub(super) struct Reader {
    path: PathBuf,
    file: BufReader<File>,
    hash: Sha256,
    bytes: u64,
    messages: u64,
    segment: Segment,
}

impl Reader {
    pub(super) fn open(dir: &Path, segment: &Segment) -> Result<Reader, BackupError> {
        let path = dir.join(&segment.file);
        // a manifest names files beside it, and nothing else
        if segment.file.contains('/') {
            return Err(BackupError::damaged(&path, "is not a file of the backup"));
        }
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(BackupError::damaged(&path, "is not there")),
            Err(error) => return Err(BackupError::io(&path)(error)),
        };
        Ok(Reader { path, file: BufReader::new(file), hash: Sha256::new(), bytes: 0, messages: 0, segment: segment.clone() })
    }

    /// The next message; `None` at the end of a file that is as it was written.
    pub(super) fn next(&mut self) -> Result<Option<StoredMessage>, BackupError> {
        if self.bytes == self.segment.bytes {
            self.check_end()?;
            return Ok(None);
        }
        let length = self.length()?;
        let mut bytes = vec![0; length];
        self.take(&mut bytes)?;
        self.messages += 1;
        let message = StoredMessage::decode(bytes.as_slice());
        message.map(Some).map_err(|_| BackupError::damaged(&self.path, "holds something that is no message"))
    }

    /// A varint.
    fn length(&mut self) -> Result<usize, BackupError> {
        let mut length: usize = 0;
        for shift in 0..4 {
            let mut byte = [0];
            self.take(&mut byte)?;
            length |= usize::from(byte[0] & 0x7f) << (7 * shift);
            if byte[0] & 0x80 == 0 {
                break;
            }
        }
        if length > MAX_MESSAGE || length as u64 > self.segment.bytes.saturating_sub(self.bytes) {
            return Err(BackupError::damaged(&self.path, "holds a length that cannot be"));
        }
        Ok(length)
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<(), BackupError> {
        match self.file.read_exact(bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                return Err(BackupError::damaged(&self.path, "is too short"));
            }
            Err(error) => return Err(BackupError::io(&self.path)(error)),
        }
        self.hash.update(&*bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn check_end(&mut self) -> Result<(), BackupError> {
        let more = self.file.read(&mut [0]).map_err(BackupError::io(&self.path))?;
        let hash = Digest(std::mem::take(&mut self.hash).finalize().into()).to_string();
        if more > 0 || hash != self.segment.sha256 || self.messages != self.segment.messages {
            return Err(BackupError::damaged(&self.path, "is not as it was written: its SHA-256 is another"));
        }
        Ok(())
    }
}

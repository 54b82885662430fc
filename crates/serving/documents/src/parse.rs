//! One file: from its bytes to its text.

use std::fs::OpenOptions;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Instant;

use nix::fcntl::OFlag;
use sha2::{Digest as _, Sha256};

use crate::document::{Extracted, Kind};
use crate::encoding::{decode, decode_html};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::walk::FileEntry;
use crate::{html, markdown, pdf, plain};

/// The bytes that were read: what tells whether a file has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Digest {
    /// SHA-256, in hexadecimal.
    pub(crate) sha256: String,
    pub(crate) bytes: u64,
}

impl Digest {
    fn of(bytes: &[u8]) -> Digest {
        let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        Digest { sha256, bytes: bytes.len() as u64 }
    }
}

/// Reads a file; a PDF is given up at the deadline.
pub(crate) fn read(file: &FileEntry, limits: &Limits, deadline: Instant) -> Result<(Digest, Extracted), ReadError> {
    parse(&bytes(&file.location, limits.file_bytes)?, file.kind, limits, deadline)
}

/// Reads the bytes of a file.
pub(crate) fn parse(bytes: &[u8], kind: Kind, limits: &Limits, deadline: Instant) -> Result<(Digest, Extracted), ReadError> {
    let extracted = match kind {
        Kind::Pdf => pdf::read(bytes, limits, deadline),
        Kind::Html => html::read(&decode_html(bytes)?, limits),
        Kind::Markdown => markdown::read(&decode(bytes)?, limits),
        Kind::Text => plain::read(&decode(bytes)?, limits),
    }?;
    Ok((Digest::of(bytes), extracted))
}

/// The digest of a file that is not parsed.
pub(crate) fn digest(file: &FileEntry, limits: &Limits) -> Result<Digest, ReadError> {
    Ok(Digest::of(&bytes(&file.location, limits.file_bytes)?))
}

/// The bytes of a regular file. The file may have changed since it was found: a pipe must not
/// block, and a growing file must not fill the memory.
fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let flags = OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let file = OpenOptions::new().read(true).custom_flags(flags.bits()).open(path).map_err(ReadError::Read)?;
    let metadata = file.metadata().map_err(ReadError::Read)?;
    if !metadata.is_file() {
        return Err(ReadError::NotAFile);
    }
    if metadata.len() > limit {
        return Err(ReadError::TooLarge { limit });
    }
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(ReadError::Read)?;
    match bytes.len() as u64 {
        0 => Err(ReadError::Empty),
        read if read > limit => Err(ReadError::TooLarge { limit }),
        _ => Ok(bytes),
    }
}

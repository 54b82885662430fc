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
use crate::{html, markdown, pdf, plain};

/// What tells whether a file has changed: SHA-256 of its bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads the bytes of a file; a PDF is given up at the deadline.
pub(crate) fn parse(bytes: &[u8], kind: Kind, limits: &Limits, deadline: Instant) -> Result<Extracted, ReadError> {
    match kind {
        Kind::Pdf => pdf::read(bytes, limits, deadline),
        Kind::Html => html::read(&decode_html(bytes)?, limits),
        Kind::Markdown => markdown::read(&decode(bytes)?, limits),
        Kind::Text => plain::read(&decode(bytes)?, limits),
    }
}

/// The bytes of a regular file. The file may have changed since it was found: a pipe must not
/// block, and a growing file must not fill the memory.
pub(crate) fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
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

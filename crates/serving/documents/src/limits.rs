//! What reading one file may cost.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Larger files are rarely text: 64 MiB of PDF is a scanned book.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes that the content of one PDF may decompress to. Pages of text need less than 1 MiB each.
const MAX_DECOMPRESSED_BYTES: usize = 256 * 1024 * 1024;

/// The text of one file: ten times the Bible.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// A parser holds the file, its objects, and what a page decompresses to.
const MEMORY_PER_FILE_BYTE: u64 = 4;

/// A book of a thousand pages takes a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What reading one file may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The size of the file.
    pub file_bytes: u64,
    /// What the streams of a PDF may decompress to, each while it is loaded and all pages together.
    pub decompressed_bytes: usize,
    /// The extracted text.
    pub text_bytes: usize,
    /// The memory of a confined process that reads the file ([`crate::Reader::confined`]).
    pub memory_bytes: u64,
    /// The time.
    pub time: Duration,
}

impl Limits {
    /// The usual limits for files of up to this size.
    pub fn of_files(file_bytes: u64) -> Limits {
        let usual = Limits::default();
        let memory_bytes = file_bytes.saturating_mul(MEMORY_PER_FILE_BYTE).max(usual.memory_bytes);
        Limits { file_bytes, memory_bytes, ..usual }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            file_bytes: MAX_FILE_BYTES,
            decompressed_bytes: MAX_DECOMPRESSED_BYTES,
            text_bytes: MAX_TEXT_BYTES,
            memory_bytes: MAX_FILE_BYTES * MEMORY_PER_FILE_BYTE,
            time: TIME_LIMIT,
        }
    }
}

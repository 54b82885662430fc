//! What reading one file may cost.

use std::time::Duration;

/// Larger files are rarely text: 64 MiB of PDF is a scanned book.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes that the content of one PDF may decompress to. Pages of text need less than 1 MiB each.
const MAX_DECOMPRESSED_BYTES: usize = 256 * 1024 * 1024;

/// The text of one file: ten times the Bible.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// A book of a thousand pages takes a few seconds.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What reading one file may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of the file.
    pub file_bytes: u64,
    /// What the streams of a PDF may decompress to, each while it is loaded and all pages together.
    pub decompressed_bytes: usize,
    /// The extracted text.
    pub text_bytes: usize,
    /// The time.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { file_bytes: MAX_FILE_BYTES, decompressed_bytes: MAX_DECOMPRESSED_BYTES, text_bytes: MAX_TEXT_BYTES, time: TIME_LIMIT }
    }
}

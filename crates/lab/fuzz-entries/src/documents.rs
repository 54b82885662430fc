//! Users' documents: PDF, HTML, Markdown, text.

use std::time::Duration;

use autoact_documents::{Kind, Limits, ReadError, Reader, SEGMENT_CHARS, Titles};

/// Small enough that a file that wants more than its share is told so within a fuzzer's patience.
const LIMITS: Limits = Limits {
    file_bytes: 1 << 20,
    decompressed_bytes: 16 << 20,
    text_bytes: 4 << 20,
    memory_bytes: 256 << 20,
    time: Duration::from_secs(5),
};

/// The first byte chooses the format, the rest is the file.
pub fn documents(data: &[u8]) {
    let Some((kind, bytes)) = data.split_first() else { return };
    let (kind, path) = match kind % 4 {
        0 => (Kind::Pdf, "a.pdf"),
        1 => (Kind::Html, "a.html"),
        2 => (Kind::Markdown, "a.md"),
        _ => (Kind::Text, "a.txt"),
    };
    let document = match Reader::here(LIMITS).read(path, kind, bytes.to_vec()) {
        Ok(document) => document,
        Err(ReadError::Panicked { message }) => panic!("a parser panicked: {message}"),
        Err(ReadError::Time { limit }) => panic!("a parser does not end within {limit:?}"),
        Err(_) => return,
    };
    let mut titles = Titles::default();
    for segment in document.segments(SEGMENT_CHARS) {
        let _ = titles.of(&document, &segment);
    }
    for section in &document.sections {
        let _ = document.section_text(section);
    }
}

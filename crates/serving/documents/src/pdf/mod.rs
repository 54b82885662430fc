//! PDF: the text layer, in reading order.
//!
//! lopdf reads objects, streams and encodings, and bounds them. Where the text stands on the page,
//! and in which order it is read, is worked out here: [`content`] runs the page's operators,
//! [`layout`] makes columns and lines, [`flow`] makes paragraphs and headings.

mod content;
mod flow;
mod font;
mod layout;

use std::time::Instant;

use lopdf::{DecompressError, Document, Error, LoadOptions, Object};

use crate::document::{Builder, Extracted};
use crate::error::ReadError;
use crate::limits::Limits;

/// The header stands within the first bytes (the rule of common readers).
const HEADER_BYTES: usize = 1024;

/// What one stream may decompress to while objects are loaded. Object streams hold a few hundred
/// small objects; what they hold takes many times its bytes in memory.
const LOADED_STREAM_BYTES: usize = 16 * 1024 * 1024;

pub(crate) fn read(bytes: &[u8], limits: &Limits, deadline: Instant) -> Result<Extracted, ReadError> {
    let head = &bytes[..bytes.len().min(HEADER_BYTES)];
    if !head.windows(5).any(|window| window == b"%PDF-") {
        return Err(ReadError::Broken { message: "no PDF header".to_owned() });
    }
    let options = LoadOptions::with_max_decompressed_size(limits.decompressed_bytes.min(LOADED_STREAM_BYTES));
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| failure(&error, limits))?;
    if document.is_encrypted() {
        return Err(ReadError::Encrypted);
    }
    let mut reader = content::Reader::new(&document, limits, deadline);
    let mut pages = Vec::new();
    for page in document.page_iter() {
        reader.check_time()?;
        pages.push(layout::lines(reader.page(page)?));
    }
    if pages.is_empty() {
        return Err(ReadError::Broken { message: "no pages".to_owned() });
    }
    let mut builder = Builder::new(limits.text_bytes);
    if let Some(title) = title(&document) {
        builder.title(&title);
    }
    flow::build(pages, &mut builder)?;
    Ok(builder.finish())
}

/// The title of the document's information, unless a program put a file's name there.
fn title(document: &Document) -> Option<String> {
    let (_, info) = document.dereference(document.trailer.get(b"Info").ok()?).ok()?;
    let (_, title) = document.dereference(info.as_dict().ok()?.get(b"Title").ok()?).ok()?;
    let title = lopdf::decode_text_string(title).ok()?;
    let lower = title.trim().to_lowercase();
    let is_name = lower.is_empty()
        || lower.starts_with("microsoft ")
        || lower.starts_with("untitled")
        || [".doc", ".docx", ".dvi", ".tex", ".indd", ".odt", ".pdf", ".qxd", ".rtf", ".ps"].iter().any(|end| lower.ends_with(end));
    (!is_name).then_some(title)
}

fn failure(error: &Error, limits: &Limits) -> ReadError {
    match error {
        Error::Decompress(DecompressError::MemoryLimitExceeded { .. }) => ReadError::Decompressed { limit: limits.decompressed_bytes },
        Error::InvalidPassword | Error::Decryption(_) | Error::UnsupportedSecurityHandler(_) => ReadError::Encrypted,
        error => ReadError::Broken { message: autoact_base::error::chain(error) },
    }
}

/// A number of either kind.
fn number(object: &Object) -> Option<f32> {
    object.as_float().ok().filter(|number| number.is_finite())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;

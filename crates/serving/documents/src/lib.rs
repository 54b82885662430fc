//! Users' files as documents: the text of PDF, HTML, Markdown and plain text files, with
//! sections and segments.
//!
//! [`Importer::open`] walks a directory, or takes one file. [`Importer::read`] reads one of its
//! files into a [`Document`], whose [`Document::segments`] are groups of whole sentences that name
//! file, page, heading and bytes. [`read_bytes`] reads what is no file.
//!
//! Files are not trusted. Size, decompressed bytes, extracted text and time are bounded
//! ([`Limits`]), links are not followed, and a parser that panics costs its file alone.

mod document;
mod encoding;
mod error;
mod html;
mod import;
mod limits;
mod markdown;
mod pdf;
mod plain;
mod read;
mod segment;
mod titles;
mod walk;

pub use document::{Document, Kind, Section};
pub use error::{OpenError, ReadError};
pub use import::{Importer, READER, READER_THREAD, read_bytes};
pub use limits::Limits;
pub use segment::{SEGMENT_CHARS, Segment};
pub use titles::Titles;
pub use walk::{FileEntry, Ignored};

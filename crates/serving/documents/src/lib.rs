//! Users' files as documents: the text of PDF, HTML, Markdown and plain text files, with
//! sections and segments.
//!
//! [`Importer::open`] walks a directory, or takes one file. [`Importer::read`] reads one of its
//! files into a [`Document`], whose [`Document::segments`] are groups of whole sentences that name
//! file, page, heading and bytes. [`Reader::read`] reads what is no file.
//!
//! Files are not trusted. Size, decompressed bytes, extracted text and time are bounded
//! ([`Limits`]), links are not followed, and a parser that panics costs its file alone. With
//! [`Reader::confined`] each file is parsed in a process of its own, which has no files, no network
//! and bounded memory.

mod document;
mod encoding;
mod error;
mod html;
mod import;
mod limits;
mod markdown;
mod parse;
mod pdf;
mod plain;
mod process;
mod reader;
mod segment;
mod titles;
mod walk;

pub use document::{Document, Kind, Section};
pub use error::{OpenError, ReadError};
pub use import::Importer;
pub use limits::Limits;
pub use process::run_if_reader;
pub use reader::{READER, READER_THREAD, Reader};
pub use segment::{SEGMENT_CHARS, Segment};
pub use titles::Titles;
pub use walk::{FileEntry, Ignored};

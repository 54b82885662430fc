//! Readers of published evaluation data in its original format: HotpotQA (distractor setting) and
//! ScienceQA.
//!
//! The data is not part of this project: users download it and name the file. A file is a JSON
//! array or has one JSON object per line. ScienceQA's `problems.json`, an object of problems by id,
//! is supported as well. Every error names its record.

mod error;
mod file;
mod format;
mod hotpotqa;
mod load;
mod record;
mod scienceqa;

pub use error::{DatasetError, RecordMistake};
pub use format::{Format, UnknownFormat};
pub use record::Record;

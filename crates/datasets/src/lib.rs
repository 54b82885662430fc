//! Readers of published evaluation data, in the fields it is published in: HotpotQA (distractor setting) and ScienceQA.
//!
//! The data is not part of this project: users download their own and name the file. A file is a JSON array or has one JSON object a line;
//! ScienceQA's own `problems.json`, an object of problems by their ids, is read as well. Every mistake names its record.

mod error;
mod file;
mod hotpotqa;
mod record;
mod scienceqa;

pub use error::{DatasetError, RecordMistake};
pub use record::{Format, Record, UnknownFormat};

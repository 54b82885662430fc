//! `report.json` and `report.html`.

use crate::error::LearnError;
use crate::report::compute;
use crate::report_html::html;
use crate::run::Run;
use crate::store::{write_atomic, write_json};
use crate::workplace::Workplace;

/// Computes the report and writes its two files.
///
/// # Errors
/// A file cannot be read or written.
pub(crate) fn write_report(work: &Workplace, run: &Run) -> Result<(), LearnError> {
    let report = compute(work, run)?;
    write_json(&run.path("report.json"), &report)?;
    write_atomic(&run.path("report.html"), html(&report).as_bytes())
}

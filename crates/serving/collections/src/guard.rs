//! The engine's panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs tantivy; its panics come back as errors. It panics on some damaged files.
///
/// # Errors
/// What the engine says.
pub fn guarded<T>(work: impl FnOnce() -> tantivy::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("the engine gave up: {}", text.unwrap_or("no reason given")))
        }
    }
}

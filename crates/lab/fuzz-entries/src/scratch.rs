//! Files for what reads directories.

use std::path::PathBuf;

thread_local! {
    /// One directory of each thread, used again for every input.
    static DIRECTORY: Option<tempfile::TempDir> = tempfile::tempdir().ok();
}

/// A directory of this thread's own; `None` where there is no room for one.
pub(crate) fn directory() -> Option<PathBuf> {
    DIRECTORY.with(|directory| directory.as_ref().map(|directory| directory.path().to_owned()))
}

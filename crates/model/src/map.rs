//! The one place with `unsafe`: mapping a weight file into memory.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::LoadError;

/// Maps `path` read-only. Processes that map the same file share its pages.
#[allow(unsafe_code)] // the workspace denies it; this is the documented exception
pub(crate) fn map(path: &Path, fix: &'static str) -> Result<Mmap, LoadError> {
    let read = |source| LoadError::Read { path: path.to_owned(), fix, source };
    let file = File::open(path).map_err(read)?;
    // SAFETY: the map is read-only and lives as long as the `Mmap`. What remains is that another process truncates
    // or rewrites the file while we read it: a truncated page raises SIGBUS, a rewritten one gives other numbers.
    // Weight files are written once and replaced by rename (which leaves our mapping on the old file), so we accept
    // that risk, as every safetensors reader does; copying instead would cost a second copy of the base per process.
    unsafe { Mmap::map(&file) }.map_err(read)
}

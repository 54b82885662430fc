//! The `unsafe` code of this crate: memory maps of weight files, and returning freed memory.

use std::fs::File;
use std::path::Path;

use memmap2::Mmap;

use crate::LoadError;

/// Maps `path` read-only. Processes that map the same file share its pages.
#[allow(unsafe_code)] // the workspace denies it; this is the documented exception
pub(crate) fn map(path: &Path, fix: &'static str) -> Result<Mmap, LoadError> {
    let read = |source| LoadError::Read { path: path.to_owned(), fix, source };
    let file = File::open(path).map_err(read)?;
    // SAFETY: the map is read-only and lives as long as the `Mmap`. The remaining risk is that
    // another process truncates or rewrites the file: a truncated page raises SIGBUS, a rewritten
    // one has other numbers. Weight files are written once and replaced by rename, which leaves the
    // mapping on the old file. So the risk is accepted, as in every safetensors reader; a copy
    // would need the base model's size again in each process.
    unsafe { Mmap::map(&file) }.map_err(read)
}

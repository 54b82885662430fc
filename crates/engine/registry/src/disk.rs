//! Atomic file operations: a reader sees a complete file or none.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::RegistryError;

pub(crate) fn io<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> RegistryError + 'a {
    move |source| RegistryError::Io { action, path: path.to_owned(), source }
}

pub(crate) fn create_dir(path: &Path) -> Result<(), RegistryError> {
    fs::create_dir_all(path).map_err(io("create", path))
}

/// Flushes a directory to disk, so that its entries survive a power failure.
pub(crate) fn sync_dir(path: &Path) -> Result<(), RegistryError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(io("sync", path))
}

/// Writes a file and flushes it to disk.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), RegistryError> {
    let mut file = File::create(path).map_err(io("create", path))?;
    file.write_all(bytes).map_err(io("write", path))?;
    file.sync_all().map_err(io("sync", path))
}

/// Replaces a file atomically: a reader sees the old content or the new one. Only one writer at a
/// time may use the directory of `path`.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), RegistryError> {
    let new = path.with_extension("new");
    let written = write_synced(&new, bytes).and_then(|()| fs::rename(&new, path).map_err(io("replace", path)));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// The writers' file lock; released when its process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(path: &Path) -> Result<Lock, RegistryError> {
        let file = File::options().create(true).append(true).open(path).map_err(io("open", path))?;
        match file.lock() {
            Ok(()) => {}
            // some network file systems have no locks; users must then allow only one writer
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) => return Err(io("lock", path)(error)),
        }
        Ok(Lock { _file: file })
    }
}

/// SHA-256 digest (hex) of bytes.
pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// SHA-256 digest (hex) of a file, as in [`DataRecord::sha256`](crate::DataRecord::sha256).
pub fn sha256_file(path: &Path) -> Result<String, RegistryError> {
    let mut sha = Sha256::new();
    let mut file = File::open(path).map_err(io("open", path))?;
    io::copy(&mut file, &mut sha).map_err(io("read", path))?;
    Ok(format!("{:x}", sha.finalize()))
}

//! What can go wrong with a backup.

use std::path::{Path, PathBuf};

use crate::error::BusError;

/// Why a backup was not made, or not restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The bus.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A file or directory.
    #[error("cannot use `{}`", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is no backup.
    #[error("`{}` holds no backup: there is no `manifest.json`; fix: name a directory that `autoact backup` wrote", dir.display())]
    None {
        /// The directory.
        dir: PathBuf,
    },
    /// A file is not as it was written.
    #[error("the backup is damaged: `{}` {what}; fix: use another copy of it; nothing was restored", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A later release wrote it.
    #[error("the backup has format {found}, and this release reads up to {known}; fix: use a newer autoact")]
    Newer {
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Another run writes to it.
    #[error("another `autoact backup` writes to `{}`; fix: wait for it", dir.display())]
    Busy {
        /// The directory.
        dir: PathBuf,
    },
    /// It belongs to another bus, or to the same before its streams were made anew.
    #[error("the backup in `{}` is of another bus ({why}); fix: back up into a new directory", dir.display())]
    OtherBus {
        /// The directory.
        dir: PathBuf,
        /// How that shows.
        why: String,
    },
    /// The bus to restore into is in use.
    #[error("the bus holds {events} events and {records} records of {whose}; fix: restore into an empty bus")]
    NotEmpty {
        /// Whose.
        whose: String,
        /// Its events.
        events: u64,
        /// Its records in the index.
        records: u64,
    },
}

impl BackupError {
    pub(super) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
        let path = path.to_owned();
        move |source| BackupError::Io { path, source }
    }

    pub(super) fn damaged(path: &Path, what: impl Into<String>) -> BackupError {
        BackupError::Damaged { path: path.to_owned(), what: what.into() }
    }
}

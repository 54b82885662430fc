//! The embedded store's directory: whose it is and what it was made for.
//!
//! ```text
//! data_dir/lock            held by the process that uses it
//! data_dir/manifest.json   the layout's version, what the terms are, which embedder
//! data_dir/shard/          qdrant-edge's files
//! ```

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::encode::{Encoder, TERMS};

/// The version of this directory's layout.
const LAYOUT: u32 = 1;
const LOCK: &str = "lock";
const MANIFEST: &str = "manifest.json";
pub(super) const SHARD: &str = "shard";

/// Why the embedded store did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory cannot be used.
    #[error("cannot use the memory directory `{}`: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has it.
    #[error("the memory directory `{}` is in use by another process", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// It holds something else.
    #[error("`{}` is not a memory directory: it holds `{found}` and no `{MANIFEST}`", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// It was made by another version or for another embedder.
    #[error("the memory directory `{}` was made with {found}; this is {expected}", path.display())]
    Layout {
        /// The directory.
        path: PathBuf,
        /// What it was made with.
        found: String,
        /// What we have.
        expected: String,
    },
    /// Its files are damaged.
    #[error("the memory directory `{}` is damaged: {reason}", path.display())]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// What the engine says.
        reason: String,
    },
}

impl OpenError {
    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            OpenError::Directory { .. } => "make it writable, or set `data_dir` to another directory",
            OpenError::Locked { .. } => "stop the other memory service, or set `data_dir` to another directory",
            OpenError::Foreign { .. } => "set `data_dir` to an empty directory or to one of an earlier memory service",
            OpenError::Layout { .. } => "use the version and embedder it was made with, or set `data_dir` to an empty directory",
            OpenError::Damaged { .. } => "restore it from a backup, or move it away and start with an empty one",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    layout: u32,
    terms: String,
    #[serde(default)]
    embedder: Option<String>,
    #[serde(default)]
    dimension: Option<usize>,
}

impl Manifest {
    fn of(encoder: &Encoder) -> Manifest {
        let dense = encoder.dense();
        Manifest {
            layout: LAYOUT,
            terms: TERMS.to_owned(),
            embedder: dense.map(|(name, _)| name.to_owned()),
            dimension: dense.map(|(_, dimension)| dimension),
        }
    }

    fn told(&self) -> String {
        let dense = match (&self.embedder, self.dimension) {
            (Some(embedder), Some(dimension)) => format!("embedder `{embedder}` ({dimension} numbers)"),
            _ => "no embedder".to_owned(),
        };
        format!("layout {}, terms `{}`, {dense}", self.layout, self.terms)
    }
}

/// A directory that is ours alone as long as this lives.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// Closing the file unlocks it, even when the process is killed.
    _lock: File,
}

impl Directory {
    /// Makes or takes the directory, and checks that it is for us.
    pub(super) fn take(path: &Path, encoder: &Encoder) -> Result<Directory, OpenError> {
        let failed = |source| OpenError::Directory { path: path.to_owned(), source };
        std::fs::create_dir_all(path).map_err(failed)?;
        let manifest = path.join(MANIFEST);
        let text = match std::fs::read_to_string(&manifest) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        if text.is_none() {
            for entry in std::fs::read_dir(path).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name().display().to_string();
                if name != LOCK && name != MANIFEST && !name.ends_with(".tmp") && name != "lost+found" {
                    return Err(OpenError::Foreign { path: path.to_owned(), found: name });
                }
            }
        }
        let lock = File::options().create(true).truncate(false).write(true).open(path.join(LOCK)).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(OpenError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let expected = Manifest::of(encoder);
        match text {
            Some(text) => {
                let found: Manifest = serde_json::from_str(&text)
                    .map_err(|error| OpenError::Damaged { path: path.to_owned(), reason: format!("`{MANIFEST}`: {error}") })?;
                if found != expected {
                    return Err(OpenError::Layout { path: path.to_owned(), found: found.told(), expected: expected.told() });
                }
            }
            None => {
                let text = serde_json::to_string_pretty(&expected).map_err(|error| failed(error.into()))?;
                // renamed into place: whoever finds it finds all of it
                let draft = path.join(format!("{MANIFEST}.tmp"));
                std::fs::write(&draft, text + "\n").and_then(|()| std::fs::rename(&draft, &manifest)).map_err(failed)?;
            }
        }
        Ok(Directory { path: path.to_owned(), _lock: lock })
    }

    /// Where the engine keeps its files; made when it is not there.
    pub(super) fn shard(&self) -> Result<PathBuf, OpenError> {
        let path = self.path.join(SHARD);
        std::fs::create_dir_all(&path).map_err(|source| OpenError::Directory { path: path.clone(), source })?;
        Ok(path)
    }

    pub(super) fn damaged(&self, reason: impl std::fmt::Display) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }
}

//! The embedded store's directory: whose it is and what it was made for.
//!
//! ```text
//! data_dir/lock            held by the process that uses it
//! data_dir/manifest.json   the layout's version and what the words are
//! data_dir/index/          tantivy's files
//! ```
//!
//! Layout 1 was qdrant-edge's, in `shard/`.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::words::WORDS;

/// The version of this directory's layout: its files and the index's schema.
const LAYOUT: u32 = 2;
/// The layout of the versions that kept memories in qdrant-edge.
const QDRANT_EDGE: u32 = 1;
const LOCK: &str = "lock";
const MANIFEST: &str = "manifest.json";
const INDEX: &str = "index";

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
    /// It was made by a version that kept memories in qdrant-edge.
    #[error("the memory directory `{}` is one of an earlier version (qdrant-edge); this version cannot read it", path.display())]
    QdrantEdge {
        /// The directory.
        path: PathBuf,
    },
    /// It was made by another version.
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
            OpenError::QdrantEdge { .. } => {
                "move it away, or set `data_dir` to another directory: memories start anew, finished tasks are not in it"
            }
            OpenError::Layout { .. } => "use the version it was made with, or set `data_dir` to an empty directory",
            OpenError::Damaged { .. } => "restore it from a backup, or move it away and start with an empty one",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    layout: u32,
    /// [`WORDS`] of the version that made it. Layout 1 called them terms.
    #[serde(alias = "terms")]
    words: String,
}

impl std::fmt::Display for Manifest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "layout {}, words `{}`", self.layout, self.words)
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
    pub(super) fn take(path: &Path) -> Result<Directory, OpenError> {
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
        let expected = Manifest { layout: LAYOUT, words: WORDS.to_owned() };
        match text {
            Some(text) => {
                let found: Manifest = serde_json::from_str(&text)
                    .map_err(|error| OpenError::Damaged { path: path.to_owned(), reason: format!("`{MANIFEST}`: {error}") })?;
                if found.layout == QDRANT_EDGE {
                    return Err(OpenError::QdrantEdge { path: path.to_owned() });
                }
                if found != expected {
                    return Err(OpenError::Layout { path: path.to_owned(), found: found.to_string(), expected: expected.to_string() });
                }
            }
            None => {
                let text = serde_json::to_string_pretty(&expected).map_err(|error| failed(error.into()))?;
                // renamed into place: whoever finds it finds all of it, also after a crash
                let draft = path.join(format!("{MANIFEST}.tmp"));
                let write = || {
                    let mut file = File::create(&draft)?;
                    file.write_all((text + "\n").as_bytes())?;
                    file.sync_all()?;
                    std::fs::rename(&draft, &manifest)?;
                    File::open(path)?.sync_all()
                };
                write().map_err(failed)?;
            }
        }
        Ok(Directory { path: path.to_owned(), _lock: lock })
    }

    /// Where the engine keeps its files; made when it is not there.
    pub(super) fn index(&self) -> Result<PathBuf, OpenError> {
        let path = self.path.join(INDEX);
        std::fs::create_dir_all(&path).and_then(|()| File::open(&self.path)?.sync_all()).map_err(|source| self.failed(source))?;
        Ok(path)
    }

    pub(super) fn failed(&self, source: io::Error) -> OpenError {
        OpenError::Directory { path: self.path.clone(), source }
    }

    pub(super) fn damaged(&self, reason: impl std::fmt::Display) -> OpenError {
        OpenError::Damaged { path: self.path.clone(), reason: reason.to_string() }
    }
}

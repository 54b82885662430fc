//! Why a collection could not be read or changed.

use std::io;
use std::path::PathBuf;

use crate::name::CollectionName;

/// Why a collection could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum CollectionsError {
    /// The directory cannot be used.
    #[error("cannot use the documents directory `{}`: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another process has it.
    #[error("the documents directory `{}` is in use by another process", path.display())]
    Locked {
        /// The directory.
        path: PathBuf,
    },
    /// There is no collection of this name.
    #[error("there is no collection `{name}`{}", listed(known))]
    Unknown {
        /// The name.
        name: CollectionName,
        /// Those that there are.
        known: Vec<CollectionName>,
    },
    /// It was made by another version.
    #[error("the collection `{name}` has layout {found}; this version reads {expected}")]
    Layout {
        /// The collection.
        name: CollectionName,
        /// What it has.
        found: u32,
        /// What we read.
        expected: u32,
    },
    /// The engine cannot read or write its files.
    #[error("the collection `{name}` is damaged, or cannot be written: {reason}")]
    Engine {
        /// The collection.
        name: CollectionName,
        /// What the engine says.
        reason: String,
    },
}

fn listed(known: &[CollectionName]) -> String {
    if known.is_empty() {
        return "; none has been imported".to_owned();
    }
    let names: Vec<&str> = known.iter().map(CollectionName::as_str).collect();
    format!("; there are `{}`", names.join("`, `"))
}

impl CollectionsError {
    /// What to do about it.
    pub fn fix(&self) -> &'static str {
        match self {
            CollectionsError::Directory { .. } => "make it writable, or set `documents_dir` to another directory",
            CollectionsError::Locked { .. } => "stop the other memory service, or set `documents_dir` to another directory",
            CollectionsError::Unknown { .. } => "import it with `autoact corpus import`",
            CollectionsError::Layout { .. } => "delete the collection and import it again",
            CollectionsError::Engine { .. } => "see that there is room on the disk; otherwise delete the collection and import it again",
        }
    }
}

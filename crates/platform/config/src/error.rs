//! What can be wrong with a configuration, and where it was said.

use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The built-in default.
    Default,
    /// A key of a configuration file; an empty key is the file as a whole.
    File {
        /// The file.
        path: PathBuf,
        /// The key with its section, dotted.
        key: String,
    },
    /// A variable of the environment.
    Variable(String),
    /// A command-line flag, without its dashes.
    Flag(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Default => f.write_str("default"),
            Source::File { path, key } if key.is_empty() => write!(f, "file `{}`", path.display()),
            Source::File { path, key } => write!(f, "file `{}`, key `{key}`", path.display()),
            Source::Variable(name) => write!(f, "variable `{name}`"),
            Source::Flag(name) => write!(f, "flag `--{name}`"),
        }
    }
}

/// One thing wrong: where it was said, what was expected and what was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{source_of}: {message}")]
pub struct Mistake {
    /// Where the wrong value comes from.
    pub source_of: Source,
    /// What was expected and what was found.
    pub message: String,
}

/// Every mistake of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// At least one, in the order of the layers.
    pub mistakes: Vec<Mistake>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [only] = self.mistakes.as_slice() {
            return write!(f, "bad configuration: {only}");
        }
        write!(f, "bad configuration, {} mistakes:", self.mistakes.len())?;
        for mistake in &self.mistakes {
            write!(f, "\n  - {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

//! What the kinds of this directory share in reading the keys of an entry.

use std::path::{Path, PathBuf};

use autoact_base::error::line;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::command::DEFAULT_PATH;

/// One path or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Paths {
    One(PathBuf),
    Several(Vec<PathBuf>),
}

impl Paths {
    /// The paths, from the library's directory.
    pub(super) fn from(self, base: Option<&Path>) -> Vec<PathBuf> {
        let all = match self {
            Paths::One(path) => vec![path],
            Paths::Several(paths) => paths,
        };
        all.iter().map(|path| from(base, path)).collect()
    }
}

/// A path from the library's directory.
pub(super) fn from(base: Option<&Path>, path: &Path) -> PathBuf {
    base.map_or_else(|| path.to_owned(), |base| base.join(path))
}

/// The keys of an entry's `run`.
pub(super) fn keys<T: DeserializeOwned>(run: toml::Table) -> Result<T, Vec<String>> {
    toml::Value::Table(run).try_into().map_err(|error: toml::de::Error| vec![line(&error)])
}

/// A program of an entry: a path from the library's directory, or a name that is looked for where
/// programs are. `fix` says what to do where there is none.
pub(super) fn program(name: &str, base: Option<&Path>, fix: &str) -> Result<String, String> {
    if name.contains('/') {
        return match std::path::absolute(from(base, Path::new(name))) {
            Ok(path) if path.is_file() => Ok(path.display().to_string()),
            _ => Err(format!("the program `{name}` is not a file; {fix}")),
        };
    }
    match std::env::split_paths(DEFAULT_PATH).any(|directory| !name.is_empty() && directory.join(name).is_file()) {
        true => Ok(name.to_owned()),
        false => Err(format!("there is no program `{name}` in {DEFAULT_PATH}; {fix}")),
    }
}

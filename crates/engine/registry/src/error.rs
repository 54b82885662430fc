use std::path::PathBuf;

use autoact_lora::AdapterError;

use crate::VersionId;

/// An error of the registry.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file or directory of the registry.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The registry's directory is a file.
    #[error("`{}` is not a directory; fix: name the adapter registry's directory, such as `adapters`", path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// An invalid version id.
    #[error(
        "`{found}` is not a version; expected letters, digits, `.`, `_` and `-`, at most 64 of them, beginning with a letter or a digit"
    )]
    InvalidId {
        /// The text.
        found: String,
    },
    /// No version of that id is published.
    #[error("no version `{id}` in `{}`; published: {}", root.display(), listed(known))]
    UnknownVersion {
        /// What was asked for.
        id: VersionId,
        /// The registry.
        root: PathBuf,
        /// What there is.
        known: Vec<String>,
    },
    /// The version is in service.
    #[error("version `{id}` is in service; fix: promote another one, or roll back, then remove it")]
    InService {
        /// The version.
        id: VersionId,
    },
    /// `manifest.json` cannot be used.
    #[error("`{}` is not a manifest; fix: publish the version again after removing its directory", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Where the JSON went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A manifest lies in another version's directory.
    #[error("`{}` is the manifest of version `{found}`; fix: a version's directory keeps the name it was published under", path.display())]
    Misplaced {
        /// The file.
        path: PathBuf,
        /// The version it describes.
        found: VersionId,
    },
    /// `current.json` cannot be used.
    #[error("`{}` does not say which version is in service; fix: remove the file and promote a version", path.display())]
    Pointer {
        /// The file.
        path: PathBuf,
        /// Where the JSON went wrong.
        #[source]
        source: serde_json::Error,
    },
    /// No version was ever promoted, or all of them were rolled back.
    #[error("nothing to roll back in `{}`: no version is in service; fix: `autoact adapters promote VERSION`", root.display())]
    NothingToRollBack {
        /// The registry.
        root: PathBuf,
    },
    /// The base of a new version is not named by a digest.
    #[error("`{found}` is not the sha256 of a base model's weights; expected 64 hexadecimal digits")]
    InvalidBase {
        /// What was given.
        found: String,
    },
    /// An adapter of a version cannot be used.
    #[error("the {role} adapter in `{}` cannot be used", path.display())]
    Adapter {
        /// Whose adapter.
        role: String,
        /// Its directory.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: Box<AdapterError>,
    },
    /// A version has no adapter for an agent.
    #[error("version `{version}` has no {role} adapter; fix: promote a version with the adapters `plan`, `tool` and `reflect`")]
    MissingRole {
        /// The version.
        version: VersionId,
        /// The agent.
        role: String,
    },
    /// A version was trained on another base model.
    #[error(
        "version `{version}` was trained on the base `{base}` with sha256 `{expected}`, the base here has `{found}`; fix: promote a version of this base, or run the agents on that one"
    )]
    BaseMismatch {
        /// The version.
        version: VersionId,
        /// Its base's name.
        base: String,
        /// Its base's digest.
        expected: String,
        /// The digest of the base it was to run on.
        found: String,
    },
    /// An adapter says of itself that it was trained on another base than the version's.
    #[error("the {role} adapter in `{}` was trained on a base with sha256 `{found}`, the version's base has `{expected}`; fix: train the three adapters on one base", path.display())]
    AdapterBase {
        /// Whose adapter.
        role: String,
        /// Its directory.
        path: PathBuf,
        /// The version's base.
        expected: String,
        /// The adapter's base.
        found: String,
    },
    /// An adapter's bytes are not those that were published.
    #[error(
        "the {role} adapter of version `{version}` has changed since it was published: sha256 `{found}`, the manifest says `{expected}`; fix: restore `{}` from a copy, or promote another version",
        path.display()
    )]
    Changed {
        /// The version.
        version: VersionId,
        /// Whose adapter.
        role: String,
        /// Its directory.
        path: PathBuf,
        /// What the manifest says.
        expected: String,
        /// What is there.
        found: String,
    },
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { format!("`{}`", known.join("`, `")) }
}

//! What a tool returns for people, beside its text for the model.

use crate::bounds::{MAX_ARTIFACT_BYTES, MAX_ARTIFACT_NAME_BYTES, MAX_ARTIFACT_TEXT_BYTES, MAX_ARTIFACTS};
use crate::digest::Digest;

/// A reference to bytes in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// `table`, `image`, `chart`, `passage` or `file`.
    pub kind: String,
    /// Its media type, such as `text/csv`.
    pub media_type: String,
    /// What people call it.
    pub name: String,
    /// Its name in the object store.
    pub object: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its bytes.
    pub sha256: Option<Digest>,
    /// A short description for the model.
    pub text: String,
}

/// An artifact on its way to the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewArtifact {
    /// `table`, `image`, `chart`, `passage` or `file`.
    pub kind: String,
    /// Its media type, such as `text/csv`.
    pub media_type: String,
    /// What people call it: see [`artifact_name`].
    pub name: String,
    /// A short description for the model.
    pub text: String,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// Artifacts that are more, larger or named otherwise than an observation may have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidArtifacts {
    /// Too many.
    #[error("{0} artifacts came with one observation; at most {MAX_ARTIFACTS} are stored")]
    Many(usize),
    /// Too large in total.
    #[error("the artifacts of one observation have {0} bytes; at most {MAX_ARTIFACT_BYTES} are stored")]
    Large(usize),
    /// A name that is none.
    #[error("`{}` is not an artifact's name; expected something like `{}`", .0.escape_debug(), artifact_name(.0))]
    Name(String),
    /// A label that is too long: the kind, the media type or the text.
    #[error("the labels of artifact `{0}` are too long; at most {MAX_ARTIFACT_TEXT_BYTES} bytes are stored")]
    Labels(String),
}

/// Whether an observation may have these artifacts.
///
/// # Errors
/// Names the first mistake.
pub fn check_artifacts(artifacts: &[NewArtifact]) -> Result<(), InvalidArtifacts> {
    if artifacts.len() > MAX_ARTIFACTS {
        return Err(InvalidArtifacts::Many(artifacts.len()));
    }
    let bytes = artifacts.iter().map(|artifact| artifact.data.len()).sum();
    if bytes > MAX_ARTIFACT_BYTES {
        return Err(InvalidArtifacts::Large(bytes));
    }
    for artifact in artifacts {
        if artifact_name(&artifact.name) != artifact.name {
            return Err(InvalidArtifacts::Name(artifact.name.clone()));
        }
        if artifact.kind.len() + artifact.media_type.len() > MAX_ARTIFACT_NAME_BYTES || artifact.text.len() > MAX_ARTIFACT_TEXT_BYTES {
            return Err(InvalidArtifacts::Labels(artifact.name.clone()));
        }
    }
    Ok(())
}

/// `name` as an artifact may be called: letters, digits, `.`, `-` and `_`, not beginning with a dot
/// or a dash, of a bounded length. So it is one word, harmless as a file's name and on a terminal.
pub fn artifact_name(name: &str) -> String {
    let word: String = name.chars().map(|c| if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' }).collect();
    let word = word.trim_start_matches(['.', '-']);
    let word = &word[..word.floor_char_boundary(MAX_ARTIFACT_NAME_BYTES)];
    if word.is_empty() { "artifact".to_owned() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_words() {
        assert_eq!(artifact_name("rivers.csv"), "rivers.csv");
        assert_eq!(artifact_name("../../etc/passwd"), "_.._etc_passwd");
        assert_eq!(artifact_name("-rf\n\u{1b}[2J"), "rf___2J");
        assert_eq!(artifact_name("..."), "artifact");
    }

    proptest! {
        #[test]
        fn a_name_is_a_word_and_stays_one(name in ".{0,200}") {
            let word = artifact_name(&name);
            prop_assert!(!word.is_empty() && word.len() <= MAX_ARTIFACT_NAME_BYTES && !word.starts_with(['.', '-']));
            prop_assert!(!word.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/'));
            prop_assert_eq!(artifact_name(&word), word);
        }
    }
}

//! Version ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::RegistryError;

/// Maximum length of an id: it is a directory name, and people type it.
const MAX_LENGTH: usize = 64;
/// Maximum length of the task's name in an id.
const MAX_SLUG: usize = 40;
/// Hexadecimal digits of the content's digest.
const DIGITS: usize = 10;

/// A version's id, such as `atlas-3fa9c1d2e0`: safe as a directory's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct VersionId(String);

impl VersionId {
    /// The id of a version's content: the same content of the same task always has the same id.
    pub(crate) fn of(task: &str, base_sha256: &str, adapters: impl IntoIterator<Item = (String, String)>) -> VersionId {
        let mut sha = Sha256::new();
        sha.update(format!("autoact adapters 1\nbase {base_sha256}\n"));
        for (role, digest) in adapters {
            sha.update(format!("{role} {digest}\n"));
        }
        let digest = format!("{:x}", sha.finalize());
        VersionId(format!("{}-{}", slug(task), &digest[..DIGITS]))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lower-case letters and digits of a name, other runs as one `-`.
fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars() {
        match c {
            'a'..='z' | '0'..='9' => slug.push(c),
            'A'..='Z' => slug.push(c.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
        if slug.len() >= MAX_SLUG {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "version".to_owned() } else { slug.to_owned() }
}

impl FromStr for VersionId {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<VersionId, RegistryError> {
        let first = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let all = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        if first && all && text.len() <= MAX_LENGTH {
            return Ok(VersionId(text.to_owned()));
        }
        Err(RegistryError::InvalidId { found: text.chars().take(2 * MAX_LENGTH).collect() })
    }
}

impl TryFrom<String> for VersionId {
    type Error = RegistryError;

    fn try_from(text: String) -> Result<VersionId, RegistryError> {
        text.parse()
    }
}

impl From<VersionId> for String {
    fn from(id: VersionId) -> String {
        id.0
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_path_is_no_id() {
        for bad in ["", ".", "..", "../x", "a/b", "-a", ".a", "a b", "ä", "a\0", &"a".repeat(65)] {
            assert!(matches!(bad.parse::<VersionId>(), Err(RegistryError::InvalidId { .. })), "{bad}");
        }
        assert!("atlas-3fa9c1d2e0".parse::<VersionId>().is_ok());
        assert!(serde_json::from_str::<VersionId>("\"../x\"").is_err());
    }

    proptest! {
        #[test]
        fn what_is_made_can_be_read(task in ".{0,80}", base in "[0-9a-f]{64}", digest in "[0-9a-f]{64}") {
            let id = VersionId::of(&task, &base, [("plan".to_owned(), digest.clone())]);
            let read: VersionId = id.as_str().parse().unwrap();
            prop_assert_eq!(&read, &id);
            prop_assert_ne!(VersionId::of(&task, &base, [("tool".to_owned(), digest)]), id);
        }
    }
}

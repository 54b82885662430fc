//! What a collection may be called.

use std::fmt;
use std::str::FromStr;

use autoact_tools::text::fold;

/// The longest name: that of a knowledge base in a task's context.
const MAX_BYTES: usize = 64;

/// The name of a collection: letters, digits, `.`, `-` and `_`, beginning with a letter or a digit.
/// So it is a name in a task's context, and a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CollectionName(String);

impl CollectionName {
    /// It as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that a text suggests, such as a directory's.
    pub fn suggested(text: &str) -> Option<CollectionName> {
        let words = fold(text);
        let words: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let name: String = words.join("-").chars().take(MAX_BYTES).collect();
        name.trim_end_matches('-').parse().ok()
    }
}

impl fmt::Display for CollectionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no name of a collection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name for a collection; expected up to 64 letters, digits, `.`, `-` and `_`, the first a letter or a digit")]
pub struct InvalidName(String);

impl FromStr for CollectionName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if begins && text.len() <= MAX_BYTES && text.bytes().all(plain) {
            Ok(CollectionName(text.to_owned()))
        } else {
            Err(InvalidName(text.chars().take(MAX_BYTES + 1).collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_never_a_path() {
        for bad in ["", ".", "..", ".hidden", "-x", "a/b", "a b", "é", &"a".repeat(65), "a\0"] {
            assert!(bad.parse::<CollectionName>().is_err(), "{bad}");
        }
        for good in ["a", "Handbook-2.1_x", "9"] {
            assert_eq!(good.parse::<CollectionName>().map(|name| name.to_string()), Ok(good.to_owned()));
        }
    }

    #[test]
    fn directories_suggest_names() {
        let name = |text: &str| CollectionName::suggested(text).map(|name| name.to_string());
        assert_eq!(name("Employee Handbook (2026)").as_deref(), Some("employee-handbook-2026"));
        assert_eq!(name("Übersicht Köln_v2.1").as_deref(), Some("ubersicht-koln-v2-1"));
        assert_eq!(name(".docs").as_deref(), Some("docs"));
        assert_eq!((name("…"), name("")), (None, None));
    }
}

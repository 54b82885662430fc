//! Names of tools and of arguments.

use std::collections::BTreeSet;

use autoact_trajectory::{FINISH, NOT_FOUND};

/// The longest name of a tool, as `tools.toml` has it.
const LONGEST: usize = 64;

/// Gives each tool a name of its own.
#[derive(Debug, Default)]
pub struct Names(BTreeSet<String>);

impl Names {
    /// A name made of an operation's id, or of its method and path.
    pub(crate) fn tool(&mut self, prefix: &str, id: Option<&str>, method: &str, path: &str) -> String {
        let id = id.map(plain).filter(|id| !id.is_empty());
        let name = id.unwrap_or_else(|| plain(&format!("{}_{path}", method.to_ascii_lowercase())));
        let mut name = format!("{prefix}{name}");
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            name.insert_str(0, "Op_");
        }
        self.unique(name, LONGEST, &[FINISH, NOT_FOUND])
    }

    /// A name made of what another protocol calls the tool.
    pub fn of(&mut self, prefix: &str, name: &str) -> String {
        self.tool(prefix, Some(name), "tool", "")
    }

    /// A name that is not taken, at most `longest` bytes long.
    pub(crate) fn unique(&mut self, mut name: String, longest: usize, reserved: &[&str]) -> String {
        name.truncate(longest);
        let mut free = name.clone();
        let mut number = 2_usize;
        while reserved.contains(&free.as_str()) || self.0.contains(&free) {
            let suffix = format!("_{number}");
            free = format!("{}{suffix}", &name[..name.len().min(longest.saturating_sub(suffix.len()))]);
            number += 1;
        }
        self.0.insert(free.clone());
        free
    }
}

/// Letters, digits and single `_` alone.
fn plain(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("_")
}

/// The name of an argument: letters, digits, `_`, `-` and `.`, which every model API takes.
pub(crate) fn argument(wire: &str) -> String {
    let kept: String = wire.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' }).collect();
    let kept = kept.trim_matches('_');
    // `_` may be the beginning of the real name
    let kept = if wire.starts_with('_') && !kept.is_empty() { format!("_{kept}") } else { kept.to_owned() };
    if kept.is_empty() { "argument".to_owned() } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_and_unique() {
        let mut names = Names::default();
        assert_eq!(names.tool("", Some("pets.list-all"), "get", "/"), "pets_list_all");
        assert_eq!(names.tool("", Some("pets/list all"), "get", "/"), "pets_list_all_2");
        assert_eq!(names.tool("", None, "GET", "/a/{id}/b.json"), "get_a_id_b_json");
        assert_eq!(names.tool("", Some("2fa"), "get", "/"), "Op_2fa");
        assert_eq!(names.tool("", Some("Finish"), "get", "/"), "Finish_2");
        assert_eq!(names.tool("git_", Some("é"), "get", "/x"), "git_get_x");
        let long = "x".repeat(100);
        let (first, second) = (names.tool("", Some(&long), "get", "/"), names.tool("", Some(&long), "get", "/"));
        assert!(first.len() == 64 && second.len() == 64 && first != second);
        assert_eq!(argument("filter[name]"), "filter_name");
        assert_eq!(argument("_id"), "_id");
        assert_eq!(argument("é"), "argument");
    }
}

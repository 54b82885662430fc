//! Changes of the user's own library. The file keeps its comments, and has the new text or the old
//! one, never half of it.

use std::path::Path;

use anyhow::Context as _;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table};

use crate::replace::{directory, replace};

/// The sections that entries stand in.
const SECTIONS: [&str; 3] = ["tool", "openapi", "mcp"];

/// The file, empty where there is none.
pub(super) fn read(path: &Path) -> anyhow::Result<DocumentMut> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    };
    text.parse().with_context(|| format!("`{}` is not TOML", path.display()))
}

pub(super) fn write(path: &Path, document: &DocumentMut) -> anyhow::Result<()> {
    let cannot = || format!("cannot write `{}`", path.display());
    std::fs::create_dir_all(directory(path)).with_context(cannot)?;
    replace(path, document.to_string().as_bytes()).with_context(cannot)
}

/// Adds an entry at the end of a section, its name first. Tables in it are written in line, so that no
/// other entry's header comes between.
pub(super) fn add(document: &mut DocumentMut, section: &str, mut fields: Table) -> anyhow::Result<()> {
    let mut entry = Table::new();
    let name = fields.remove("name").map(|name| ("name".into(), name));
    for (key, mut item) in name.into_iter().chain(fields) {
        item.make_value();
        entry.insert(&key, item);
    }
    let entries = document.entry(section).or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let entries = entries.as_array_of_tables_mut().with_context(|| format!("`{section}` is not a list of entries `[[{section}]]`"))?;
    entries.push(entry);
    Ok(())
}

/// Sets the digest that a set's entry accepts; whether there is such an entry.
pub(super) fn accept(document: &mut DocumentMut, section: &str, name: &str, digest: &str) -> bool {
    let entries = document.get_mut(section).and_then(Item::as_array_of_tables_mut);
    match entries.and_then(|entries| entries.iter_mut().find(|entry| is_named(entry, name))) {
        Some(entry) => {
            entry["digest"] = toml_edit::value(digest);
            true
        }
        None => false,
    }
}

/// Takes out every entry of this name; whether there was one.
pub(super) fn remove(document: &mut DocumentMut, name: &str) -> bool {
    let mut found = false;
    for section in SECTIONS {
        let Some(entries) = document.get_mut(section).and_then(Item::as_array_of_tables_mut) else { continue };
        let before = entries.len();
        entries.retain(|entry| !is_named(entry, name));
        found |= entries.len() < before;
    }
    found
}

fn is_named(entry: &Table, name: &str) -> bool {
    entry.get("name").and_then(Item::as_str) == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_other_entries_stay() {
        let text = "# mine\n[[openapi]]\nname = \"a\" # the first\nsource = \"a.yaml\"\n\n[[mcp]]\nname = \"b\"\ncommand = \"b\"\n";
        let mut document: DocumentMut = text.parse().unwrap();
        assert!(accept(&mut document, "mcp", "b", "12"));
        assert!(!accept(&mut document, "mcp", "a", "12"));
        assert_eq!(document.to_string(), format!("{text}digest = \"12\"\n"));
        for name in ["c", "d"] {
            let entry: DocumentMut = format!("name = \"{name}\"\n[env]\nA = \"1\"\n").parse().unwrap();
            add(&mut document, "mcp", entry.as_table().clone()).unwrap();
        }
        let read: toml::Table = toml::from_str(&document.to_string()).unwrap();
        assert_eq!((read["mcp"][2]["name"].as_str(), read["mcp"][1]["env"]["A"].as_str()), (Some("d"), Some("1")));
        assert!(remove(&mut document, "b") && !remove(&mut document, "b"));
        let text = document.to_string();
        assert!(text.starts_with("# mine\n[[openapi]]\nname = \"a\" # the first\n"), "{text}");
        assert!(text.contains("name = \"c\"") && !text.contains("name = \"b\""), "{text}");
    }
}

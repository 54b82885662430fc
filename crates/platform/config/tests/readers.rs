//! The variables that are no settings, against the programs that read them.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use autoact_config::{OTHER_VARIABLES, VARIABLE_PREFIX};

fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_none_or(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The name of ours that `text` begins with.
fn name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')).unwrap_or(text.len());
    &text[..end]
}

/// Variables of ours that a source file reads by name.
fn read_in(text: &str) -> BTreeSet<String> {
    let reads = ["env = \"", "env::var(\"", "env::var_os(\"", "VARIABLE: &str = \"", "${", "$"];
    let mut names = BTreeSet::new();
    for read in reads {
        let pattern = format!("{read}{VARIABLE_PREFIX}");
        names.extend(text.match_indices(&pattern).map(|(at, _)| name(&text[at + read.len()..]).to_owned()));
    }
    names
}

#[test]
fn the_list_is_what_is_read() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|dir| dir.join("Cargo.lock").is_file()).unwrap();
    let mut sources = vec![root.join("quickstart"), root.join("test")];
    for dir in ["crates", "services", "scripts", "tests/tests"] {
        files(&root.join(dir), &mut sources);
    }
    // this crate's own tests name variables that nobody reads
    sources.retain(|path| !path.starts_with(env!("CARGO_MANIFEST_DIR")) || path.ends_with("src/variables.rs"));
    assert!(sources.len() > 100, "{}", sources.len());
    let texts = sources.iter().map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned());
    let mut read: BTreeSet<String> = texts.flat_map(|text| read_in(&text)).collect();
    // of more than one part: a setting, which the `autoact` command reads as well
    read.retain(|name| !name.contains("__"));
    let listed: BTreeSet<String> = OTHER_VARIABLES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(read, listed, "`OTHER_VARIABLES` in crates/platform/config lists every variable that is read by its name");
}

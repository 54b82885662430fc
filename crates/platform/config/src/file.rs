//! A configuration file as settings.

use std::path::Path;

use toml::{Table, Value};

use crate::error::{Mistake, Source};
use crate::setting::{Given, Setting};
use crate::{COMMON_SECTION, Common, SECTIONS};

/// Reads the settings of `section` (and of the common one, first) from a file; what is wrong goes
/// to `mistakes`.
pub(crate) fn read(path: &Path, section: &str, mistakes: &mut Vec<Mistake>) -> Vec<Setting> {
    let source = |key: &str| Source::File { path: path.to_owned(), key: key.to_owned() };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            mistakes.push(Mistake { source_of: source(""), message: format!("cannot read it: {error}") });
            return Vec::new();
        }
    };
    let table = match text.parse::<Table>() {
        Ok(table) => table,
        Err(error) => {
            let (line, column) = place(&text, error.span().map_or(0, |span| span.start));
            let message = format!("line {line}, column {column}: not TOML: {}", one_line(error.message()));
            mistakes.push(Mistake { source_of: source(""), message });
            return Vec::new();
        }
    };
    for (name, value) in &table {
        if !SECTIONS.contains(&name.as_str()) {
            let message = format!("unknown section; expected one of `{}`", SECTIONS.join("`, `"));
            mistakes.push(Mistake { source_of: source(name), message });
        } else if !value.is_table() {
            let message = format!("expected a section, found {}; write `[{name}]`", value.type_str());
            mistakes.push(Mistake { source_of: source(name), message });
        }
    }
    let mut settings = Vec::new();
    for name in [COMMON_SECTION, section] {
        let Some(Value::Table(table)) = table.get(name) else { continue };
        for (path, value) in leaves(table) {
            let source_of = source(&format!("{name}.{}", path.join(".")));
            if name == COMMON_SECTION && !Common::KEYS.contains(&path[0].as_str()) {
                let message =
                    format!("`[common]` holds only `{}`; other settings belong to a service's section", Common::KEYS.join("`, `"));
                mistakes.push(Mistake { source_of, message });
            } else {
                settings.push(Setting { path, value: Given::Typed(value), source: source_of, for_all: false });
            }
        }
    }
    settings
}

/// Every value below a table with its path. An empty table has none.
pub(crate) fn leaves(table: &Table) -> Vec<(Vec<String>, Value)> {
    let mut out = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                for (mut path, value) in leaves(inner) {
                    path.insert(0, key.clone());
                    out.push((path, value));
                }
            }
            other => out.push((vec![key.clone()], other.clone())),
        }
    }
    out
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (line, column)
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

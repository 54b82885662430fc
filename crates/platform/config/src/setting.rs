//! One value said in one place, and how it is put into a table.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::{Mistake, Source};

/// A value for a key, from a file, a variable or a flag.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) path: Vec<String>,
    pub(crate) value: Given,
    pub(crate) source: Source,
    /// For every service that has the setting: those that have not pass it over.
    pub(crate) for_all: bool,
}

/// A value as it was given.
#[derive(Debug, Clone)]
pub(crate) enum Given {
    /// From a file: its type is known.
    Typed(Value),
    /// From a variable or a flag: the type is what the setting asks for.
    Text(String),
}

impl Given {
    /// The values this may stand for, best first.
    fn candidates(&self) -> Vec<Value> {
        let text = match self {
            Given::Typed(value) => return vec![value.clone()],
            Given::Text(text) => text,
        };
        let mut candidates = vec![Value::String(text.clone())];
        if let Ok(table) = format!("value = {text}").parse::<Table>()
            && let Some(value) = table.get("value").filter(|value| !value.is_str() && table.len() == 1)
        {
            candidates.push(value.clone());
        }
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
        candidates.push(Value::Array(items.map(|item| Value::String(item.to_owned())).collect()));
        candidates
    }

    fn text(&self) -> Option<&str> {
        match self {
            Given::Typed(value) => value.as_str(),
            Given::Text(text) => Some(text),
        }
    }

    /// Which candidate's error says most: the one a person meant.
    fn meant(&self) -> usize {
        match self {
            Given::Typed(_) => 0,
            Given::Text(_) => usize::from(self.candidates().len() > 2),
        }
    }
}

/// A configuration struct under construction: its table is deserialised after every setting, so
/// that each mistake is found by itself.
pub(crate) struct Target<T> {
    table: Table,
    pub(crate) value: T,
    pub(crate) sources: BTreeMap<String, Source>,
}

impl<T: DeserializeOwned> Target<T> {
    pub(crate) fn new(table: Table, value: T) -> Target<T> {
        Target { table, value, sources: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, setting: &Setting) -> Result<(), Mistake> {
        let mut problems = Vec::new();
        for candidate in setting.value.candidates() {
            let mut table = self.table.clone();
            let outcome = match insert(&mut table, &setting.path, candidate) {
                Ok(()) => table.clone().try_into::<T>().map_err(|error| in_words(error.message().trim())),
                Err(message) => Err(message),
            };
            match outcome {
                Ok(value) => {
                    self.table = table;
                    self.value = value;
                    self.sources.insert(setting.path.join("."), setting.source.clone());
                    return Ok(());
                }
                Err(message) => problems.push(message),
            }
        }
        let mut message = problems.into_iter().nth(setting.value.meant()).unwrap_or_default();
        if let Some(found) = setting.value.text().filter(|text| !message.contains(*text) && !message.starts_with("unknown field")) {
            message.push_str(&format!(", found `{found}`"));
        }
        Err(Mistake { source_of: setting.source.clone(), message })
    }
}

/// What serde says of a value, with words for Rust's types: `invalid type: string "many", expected
/// a whole number, 0 or more`.
fn in_words(message: &str) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else { return message.to_owned() };
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "`true` or `false`",
        _ => return message.to_owned(),
    };
    format!("{before}expected {words}")
}

fn insert(table: &mut Table, path: &[String], value: Value) -> Result<(), String> {
    let Some((last, parents)) = path.split_last() else { return Err("expected a key, found none".to_owned()) };
    let mut here = table;
    for parent in parents {
        let next = here.entry(parent.clone()).or_insert_with(|| Value::Table(Table::new()));
        here = next.as_table_mut().ok_or_else(|| format!("`{parent}` is a value, it has no key `{last}`"))?;
    }
    here.insert(last.clone(), value);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn no_type_of_rust_is_in_a_message() {
        assert_eq!(
            in_words("invalid type: string \"many\", expected u64"),
            "invalid type: string \"many\", expected a whole number, 0 or more"
        );
        assert_eq!(in_words("invalid type: map, expected a boolean"), "invalid type: map, expected `true` or `false`");
        assert_eq!(in_words("unknown field `x`, expected one of `a`, `b`"), "unknown field `x`, expected one of `a`, `b`");
    }
}

//! A table as a model or a person writes it: CSV, tabs, bars or JSON.

use serde_json::Value;

use crate::records::{Format, Mistake};
use crate::table::{Table, header_mistakes};

/// A text that holds no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrittenError {
    /// Its rows are broken.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Rows(Vec<Mistake>),
    /// It begins as JSON and is none, or is no list of rows.
    #[error("{0}; expected a JSON list of rows, such as `[{{\"name\": \"Loire\", \"km\": 1006}}]`")]
    Json(String),
}

/// Reads a table from a text. A text that begins with `[` or `{` is JSON: a list of objects, or a
/// list of lists whose first has the names of the columns. Otherwise the first line says what
/// separates cells: a tab, a bar or a comma.
///
/// # Errors
/// The mistakes of its rows.
pub fn written(text: &str) -> Result<Table, WrittenError> {
    let text = text.trim_matches(['\n', '\r', ' ', '\u{feff}']);
    if text.starts_with(['[', '{']) {
        return json(text);
    }
    let first = text.lines().next().unwrap_or_default();
    let table = if first.contains('\t') {
        Table::parse("", text, Format::Tsv)
    } else if first.contains('|') {
        Table::parse("", &bars(text), Format::Tsv)
    } else {
        Table::parse("", text, Format::Csv)
    };
    table.map_err(WrittenError::Rows)
}

/// `a | b`, also with bars around it and a line of dashes below the header, with tabs. Every line
/// stays a line, so that mistakes name the right one.
fn bars(text: &str) -> String {
    let rule = |line: &str| line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\r'));
    let row = |line: &str| {
        let line = line.trim().replace('\t', " ");
        let inner = line.strip_prefix('|').unwrap_or(&line);
        inner.strip_suffix('|').unwrap_or(inner).replace('|', "\t")
    };
    text.lines().map(|line| if rule(line) { String::new() } else { row(line) }).collect::<Vec<_>>().join("\n")
}

fn json(text: &str) -> Result<Table, WrittenError> {
    let refused = |reason: String| WrittenError::Json(reason);
    let value: Value = serde_json::from_str(text).map_err(|error| refused(format!("it is not JSON: {error}")))?;
    let Value::Array(rows) = value else { return Err(refused("it is not a list".to_owned())) };
    let mut columns: Vec<String> = Vec::new();
    let mut cells: Vec<Vec<String>> = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        match row {
            Value::Object(fields) => {
                let new = fields.keys().filter(|name| !columns.contains(name)).cloned().collect::<Vec<_>>();
                columns.extend(new);
                cells.push(columns.iter().map(|name| fields.get(name).map(cell).unwrap_or_default()).collect());
            }
            Value::Array(names) if at == 0 => columns = names.iter().map(cell).collect(),
            Value::Array(values) if values.len() == columns.len() => cells.push(values.iter().map(cell).collect()),
            Value::Array(values) => return Err(refused(format!("row {} has {} cells, not {}", at + 1, values.len(), columns.len()))),
            _ => return Err(refused(format!("row {} is neither an object nor a list", at + 1))),
        }
    }
    let mut mistakes = header_mistakes(1, &columns);
    if columns.is_empty() {
        mistakes.push(Mistake::new(1, "it has no columns"));
    }
    if !mistakes.is_empty() {
        return Err(WrittenError::Rows(mistakes));
    }
    // a field that only a later row has
    cells.iter_mut().for_each(|row| row.resize(columns.len(), String::new()));
    Ok(Table { name: String::new(), columns, rows: cells })
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn four_ways_to_write_a_table() {
        for text in [
            "name,km\nLoire,1006\nNile,",
            "name\tkm\nLoire\t1006\nNile",
            "| name | km |\n|---|--:|\n| Loire | 1006 |\n| Nile | |",
            "name | km\nLoire | 1006\nNile |",
            r#"[{"name": "Loire", "km": 1006}, {"name": "Nile", "km": null}]"#,
            r#"[["name", "km"], ["Loire", "1006"], ["Nile", ""]]"#,
            r#"[{"name": "Loire", "km": 1006}, {"name": "Nile"}]"#,
        ] {
            let table = written(text).unwrap();
            assert_eq!(
                (table.columns, table.rows),
                (
                    vec!["name".into(), "km".into()],
                    vec![vec!["Loire".to_owned(), "1006".to_owned()], vec!["Nile".to_owned(), String::new()],]
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in ["", "{}", "[1]", "[", "[]", r#"[["a"], ["b", "c"]]"#, "a,b\nc", r#"[["a", "a"]]"#] {
            assert!(written(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_and_rows_fit(text in r#"[\[\]{}:,"ab|\t\n\-1 é]{0,40}"#) {
            if let Ok(table) = written(&text) {
                prop_assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
            }
        }
    }
}

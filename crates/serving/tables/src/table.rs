//! A table of texts.

use crate::records::{Format, Mistake, records};

/// The most columns of a table: what SQLite allows.
const MAX_COLUMNS: usize = 2000;
/// More mistakes of one file help nobody.
const SHOWN_MISTAKES: usize = 20;

/// A table: its first row named the columns, and every row has a cell for each. An empty cell says
/// that the value is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// What it is called: the file's name without its ending.
    pub name: String,
    /// The names of its columns; no two are the same up to case.
    pub columns: Vec<String>,
    /// Its rows, each as long as `columns`.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Reads a table.
    ///
    /// # Errors
    /// The mistakes of its rows, at most 20.
    pub fn parse(name: &str, text: &str, format: Format) -> Result<Table, Vec<Mistake>> {
        let mut records = records(text, format).map_err(|mistake| vec![mistake])?.into_iter();
        let Some(header) = records.next() else {
            return Err(vec![Mistake::new(1, "it is empty; expected a first row with the names of its columns")]);
        };
        let mut mistakes = header_mistakes(header.line, &header.cells);
        let columns = header.cells;
        let mut rows = Vec::new();
        for mut record in records {
            if format == Format::Tsv && record.cells.len() < columns.len() {
                record.cells.resize(columns.len(), String::new());
            }
            if record.cells.len() != columns.len() {
                let (found, expected) = (record.cells.len(), columns.len());
                mistakes.push(Mistake::new(record.line, format!("it has {found} cells; expected {expected}, one for each column")));
            } else if record.cells.iter().any(|cell| cell.contains('\0')) {
                mistakes.push(Mistake::new(record.line, "it has a NUL character, which is no text"));
            } else {
                rows.push(record.cells);
            }
            if mistakes.len() >= SHOWN_MISTAKES {
                break;
            }
        }
        if mistakes.is_empty() { Ok(Table { name: name.to_owned(), columns, rows }) } else { Err(mistakes) }
    }
}

pub(crate) fn header_mistakes(line: usize, columns: &[String]) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    if columns.len() > MAX_COLUMNS {
        mistakes.push(Mistake::new(line, format!("it has {} columns; expected at most {MAX_COLUMNS}", columns.len())));
    }
    let mut seen = std::collections::HashSet::new();
    for (at, name) in columns.iter().enumerate() {
        if name.is_empty() || name.contains(|c: char| c.is_control()) {
            mistakes.push(Mistake::new(line, format!("column {} has no name, or one that is not one line; name it", at + 1)));
        } else if !seen.insert(name.to_lowercase()) {
            mistakes.push(Mistake::new(line, format!("two columns are called `{name}`, up to case; rename one")));
        }
        if mistakes.len() >= SHOWN_MISTAKES {
            break;
        }
    }
    mistakes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_broken_row_is_named() {
        let found = Table::parse("t", "name,km\nLoire,1006\nNile\n\nRhine,1230,DE\n", Format::Csv).unwrap_err();
        assert_eq!(found.iter().map(|mistake| mistake.line).collect::<Vec<_>>(), [3, 5]);
        let found = Table::parse("t", "name,,Name\na,b,c\n", Format::Csv).unwrap_err();
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!(Table::parse("t", "", Format::Tsv).unwrap_err().len(), 1);
    }

    #[test]
    fn a_row_of_tabs_may_end_early_but_not_late() {
        let table = Table::parse("t", "name\tkm\taliases\nLoire\t1006\nNile\n", Format::Tsv).unwrap();
        assert_eq!(table.rows, [["Loire", "1006", ""], ["Nile", "", ""]]);
        assert_eq!(Table::parse("t", "name\nLoire\t1006\n", Format::Tsv).unwrap_err()[0].line, 2);
    }

    proptest! {
        #[test]
        fn no_text_panics_and_rows_fit(text in "[a\",\t\n\r\\x00é ]{0,60}") {
            for format in [Format::Csv, Format::Tsv] {
                if let Ok(table) = Table::parse("t", &text, format) {
                    prop_assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
                }
            }
        }
    }
}

//! Tables that users import or models write, and templates that fill in their rows.

use autoact_tables::{Database, Format, Table, Template, written};

use crate::parts::parts;

/// A table, and perhaps a template for its rows; the first byte chooses the format.
pub fn tables(data: &[u8]) {
    let Some((kind, rest)) = data.split_first() else { return };
    let parts = parts(rest, 2);
    let text = String::from_utf8_lossy(parts[0]);
    let table = match kind % 3 {
        0 => Table::parse("table", &text, Format::Csv).ok(),
        1 => Table::parse("table", &text, Format::Tsv).ok(),
        _ => written(&text).ok(),
    };
    let Some(table) = table else { return };
    assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "a row has another length than its table: {table:?}");
    // a database costs a millisecond, and large tables are no other matter to it
    if table.columns.len() <= 16 && table.rows.len() <= 16 && !table.name.is_empty() {
        let _ = Database::of(std::slice::from_ref(&table));
    }
    let template = parts.get(1).and_then(|text| Template::parse(&String::from_utf8_lossy(text)).ok());
    let template = template.filter(|template| template.check(&table).is_ok());
    for row in table.rows.iter().take(16) {
        let _ = (Template::plain(&table, row), template.as_ref().and_then(|template| template.fill(&table, row)));
    }
}

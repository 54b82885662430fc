//! What is told of a database: its tables, a result, a mistake.

use autoact_tables::{Cell, QueryError, Rows, TableInfo};
use autoact_trajectory::{MAX_ARTIFACT_TEXT_BYTES, NewArtifact, cut};

use crate::file::LONGEST_TEXT;
use crate::names::similar;
use crate::text::{fold, one_line, quoted};
use crate::tool::ToolOutput;

/// A longer value is cut for the model.
const SHOWN_VALUE_BYTES: usize = 300;
/// What the last line of a cut result may take.
const LAST_LINE_BYTES: usize = 120;
/// More tables are not listed in a mistake.
const LISTED_TABLES: usize = 30;

/// The definition with the tables and their columns, as far as a definition may be long: of the
/// last tables only the names, if need be.
pub(super) fn definition(said: &str, tables: &[TableInfo]) -> String {
    let shown = |full: usize, named: usize| {
        let list = tables.iter().take(named).enumerate();
        let list: Vec<String> = list.map(|(at, table)| if at < full { with_columns(table) } else { table.name.clone() }).collect();
        let more = if named < tables.len() { format!(" and {} more (see sqlite_schema)", tables.len() - named) } else { String::new() };
        format!("{said} Tables: {}{more}.", list.join(", "))
    };
    let all = tables.len();
    // with all names and most columns first; then with fewer names
    let choices = (0..=all).rev().map(|full| (full, all)).chain((0..all).rev().map(|named| (0, named)));
    let mut texts = choices.map(|(full, named)| one_line(&shown(full, named)));
    texts.find(|text| text.len() <= LONGEST_TEXT && !text.contains(|c: char| c.is_control())).unwrap_or_else(|| said.to_owned())
}

/// A query of these very tables.
pub(super) fn example(tables: &[TableInfo]) -> Option<String> {
    let plain = |name: &&String| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let table = tables.iter().find(|table| plain(&&table.name) && table.columns.iter().any(|name| plain(&name)))?;
    let column = table.columns.iter().find(plain)?;
    Some(format!("SELECT {column} FROM {} LIMIT 3", table.name))
}

fn with_columns(table: &TableInfo) -> String {
    format!("{}({})", table.name, table.columns.join(", "))
}

/// A result: rows as `a | b` below the names of the columns, as many as fit, and all that were kept
/// as CSV for people.
pub(super) fn output(result: &Rows, max_bytes: usize) -> ToolOutput {
    let Rows { columns, rows, complete } = result;
    if rows.is_empty() {
        // a row that does not fit the bounds is not none
        return if *complete { "no rows".to_owned() } else { "the first row is too long; select fewer or shorter columns".to_owned() }
            .into();
    }
    let mut text = columns.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(" | ");
    let mut shown = 0;
    for row in rows {
        let line = row.iter().map(|cell| cut(one_line(&cell.to_string()), SHOWN_VALUE_BYTES).0).collect::<Vec<_>>().join(" | ");
        if shown > 0 && text.len() + line.len() + LAST_LINE_BYTES > max_bytes {
            break;
        }
        text.push('\n');
        // a blank line would be lost
        text.push_str(if line.is_empty() { "''" } else { &line });
        shown += 1;
    }
    if shown < rows.len() || !complete {
        let more = if *complete { "" } else { "more than " };
        text.push_str(&format!("\n({shown} of {more}{} rows; use WHERE, LIMIT or an aggregate)", rows.len()));
    }
    let about = format!("{}{} rows of {}", if *complete { "" } else { "the first " }, rows.len(), columns.join(", "));
    let artifact = NewArtifact {
        kind: "table".to_owned(),
        media_type: "text/csv".to_owned(),
        name: "result.csv".to_owned(),
        text: cut(one_line(&about), MAX_ARTIFACT_TEXT_BYTES).0,
        data: csv(result).into_bytes(),
    };
    ToolOutput { text, artifacts: vec![artifact], ..ToolOutput::default() }
}

fn csv(Rows { columns, rows, .. }: &Rows) -> String {
    let cell = |text: &str| match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let line = |cells: Vec<String>| format!("{}\r\n", cells.join(","));
    let mut text = line(columns.iter().map(|name| cell(name)).collect());
    for row in rows {
        let shown = |value: &Cell| if *value == Cell::Null { String::new() } else { cell(&value.to_string()) };
        text.push_str(&line(row.iter().map(shown).collect()));
    }
    text
}

/// What is wrong with a query, and what was probably meant.
pub(super) fn wrong(error: &QueryError, query: &str, tables: &[TableInfo]) -> String {
    match error {
        QueryError::NoTable(name) => {
            let folded: Vec<String> = tables.iter().map(|table| fold(&table.name)).collect();
            let meant = similar(name, folded.iter().map(String::as_str), 2);
            let meant: Vec<String> = meant.into_iter().map(|at| with_columns(&tables[at])).collect();
            let names: Vec<&str> = tables.iter().take(LISTED_TABLES).map(|table| table.name.as_str()).collect();
            match meant.is_empty() {
                false => format!("there is no table `{}`; did you mean {}?", quoted(name), meant.join(" or ")),
                true => format!("there is no table `{}`; the tables are {}", quoted(name), names.join(", ")),
            }
        }
        QueryError::NoColumn(name) => no_column(name, query, tables),
        QueryError::Wrong(message) => {
            let said = quoted(message);
            let mentioned = mentioned(query, tables);
            match mentioned.is_empty() || said.contains("the query") {
                true => format!("{said}; expected one SELECT statement of SQLite"),
                false => format!("{said}; expected one SELECT statement over {}", listed(&mentioned)),
            }
        }
        other => one_line(&other.to_string()),
    }
}

fn no_column(written: &str, query: &str, tables: &[TableInfo]) -> String {
    // `c.capitl` may stand behind the name that the query gave a table
    let name = written.rsplit('.').next().unwrap_or(written);
    let used = mentioned(query, tables);
    let of_query: Vec<(&str, &str)> =
        used.iter().flat_map(|table| table.columns.iter().map(|column| (column.as_str(), table.name.as_str()))).collect();
    let folded: Vec<String> = of_query.iter().map(|(column, _)| fold(column)).collect();
    let meant: Vec<String> = similar(name, folded.iter().map(String::as_str), 2)
        .into_iter()
        .map(|at| format!("`{}` of `{}`", of_query[at].0, of_query[at].1))
        .collect();
    let elsewhere: Vec<String> = tables
        .iter()
        .filter(|table| table.columns.iter().any(|column| column.eq_ignore_ascii_case(name)))
        .map(|table| format!("`{}`", table.name))
        .collect();
    let mut text = format!("there is no column `{}` here", quoted(written));
    if !meant.is_empty() {
        text.push_str(&format!("; did you mean {}?", meant.join(" or ")));
    } else if !elsewhere.is_empty() {
        text.push_str(&format!("; it is in {}", elsewhere.join(", ")));
    }
    if !used.is_empty() {
        text.push_str(&format!(" The query's tables: {}", listed(&used)));
    }
    text
}

fn listed(tables: &[&TableInfo]) -> String {
    tables.iter().map(|table| with_columns(table)).collect::<Vec<_>>().join(", ")
}

/// The tables whose names stand in a query.
fn mentioned<'a>(query: &str, tables: &'a [TableInfo]) -> Vec<&'a TableInfo> {
    let words: Vec<String> =
        query.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    tables.iter().filter(|table| words.contains(&table.name.to_lowercase())).take(LISTED_TABLES).collect()
}

//! `database`: one SELECT over the tables of an SQLite file, or of files of values.

mod told;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_base::error::chain;
use autoact_tables::{Bounds, Database, QueryError, read_tables};
use autoact_trajectory::{Effect, MAX_ARTIFACT_BYTES, ToolSpec};
use serde::Deserialize;

use self::told::{definition, example, output, wrong};
use crate::local::settings::{Paths, from, keys};
use crate::preset::{Key, Preset};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "database",
    name: "Database",
    definition: "Answers one SQL SELECT statement (SQLite) over these tables.",
    schema: Some(
        r#"{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":4096,"description":"one SELECT statement of SQLite"}},"required":["query"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &["SELECT name FROM sqlite_schema LIMIT 5"],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 2048,
    multiline: true,
    keys: &[
        Key { name: "file", meaning: "an SQLite file, from the library's directory", required: false },
        Key {
            name: "tables",
            meaning: "instead: a `.csv` or `.tsv` file, a directory of them, or a list of both; the first row names the columns",
            required: false,
        },
        Key { name: "max_rows", meaning: "how many rows are kept for people, 1000 without it", required: false },
    ],
    data: &["tables"],
};

/// Rows that are kept for people.
const MAX_ROWS: usize = 1000;
/// Nobody reads more.
const MOST_ROWS: usize = 100_000;
/// The values of a result: room is left for quotes and commas.
const MAX_RESULT_BYTES: usize = MAX_ARTIFACT_BYTES / 2;

#[derive(Deserialize)]
struct Keys {
    file: Option<std::path::PathBuf>,
    tables: Option<Paths>,
    max_rows: Option<usize>,
}

pub(super) fn make(run: toml::Table, mut spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let Keys { file, tables, max_rows } = keys(run)?;
    let rows = max_rows.unwrap_or(MAX_ROWS);
    if !(1..=MOST_ROWS).contains(&rows) {
        return Err(vec![format!("`max_rows` is {rows}; expected 1 to {MOST_ROWS}")]);
    }
    let database = match (file, tables) {
        (Some(file), None) => Database::open(&from(base, &file)),
        (None, Some(tables)) => Database::of(&read_tables(&tables.from(base)).map_err(|mistakes| mistakes.0)?),
        _ => return Err(vec!["expected one of `file` (an SQLite file) and `tables` (files of comma- or tab-separated values)".to_owned()]),
    };
    let database = database.map_err(|error| vec![chain(&error)])?;
    spec.definition = definition(&spec.definition, database.tables());
    if spec.examples.iter().map(String::as_str).eq(PRESET.examples.iter().copied()) {
        spec.examples = example(database.tables()).into_iter().collect();
    }
    Ok(Arc::new(DatabaseTool { spec, database, bounds: Bounds { rows, bytes: MAX_RESULT_BYTES } }))
}

struct DatabaseTool {
    spec: ToolSpec,
    database: Database,
    bounds: Bounds,
}

impl Tool for DatabaseTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        match self.database.query(call.params, Instant::now() + self.spec.timeout, self.bounds) {
            Ok(rows) => Ok(output(&rows, self.spec.max_observation_bytes)),
            Err(QueryError::TooLong) => Err(ToolError::Timeout { after: self.spec.timeout, written: String::new() }),
            Err(QueryError::Unreadable(why)) => Err(ToolError::Internal(format!("the database cannot be read: {why}"))),
            Err(error) => Err(ToolError::Params(wrong(&error, call.params, self.database.tables()))),
        }
    }
}

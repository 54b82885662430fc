//! `table_verbalizer`: a table as sentences, by a template. No model writes them: every word stands
//! in the template or in the table.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_tables::{Table, Template, read_tables, written};
use autoact_trajectory::{Effect, MAX_ARTIFACT_BYTES, NewArtifact, ToolSpec};
use serde::Deserialize;

use crate::local::settings::{Paths, keys};
use crate::names::similar;
use crate::preset::{Key, Preset};
use crate::text::{fold, one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "table_verbalizer",
    name: "TableVerbalizer",
    definition: "Turns the rows of a `table` (CSV, tabs, bars or JSON) into sentences. A `template` such as \
                 `{name} is in {country}[ on the {river}].` says how; a part in brackets is left out where a cell in it is empty.",
    schema: Some(
        r#"{"type":"object","properties":{"table":{"type":"string","contentMediaType":"text/csv","minLength":1,"maxLength":16384,"description":"the table as text, or the name of a known one"},"template":{"type":"string","minLength":1,"maxLength":500,"description":"the sentence of a row"},"row":{"type":"string","minLength":1,"maxLength":200,"description":"only rows whose first cell is this"}},"required":["table"],"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"table":"name,length\nLoire,1006\nRhine,1230","template":"The {name} is {length} km long."}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 2048,
    multiline: true,
    keys: &[
        Key {
            name: "tables",
            meaning: "tables that are known by name: a `.csv` or `.tsv` file, a directory of them, or a list of both",
            required: false,
        },
        Key { name: "template", meaning: "the template of calls that have none", required: false },
    ],
    data: &["tables"],
};

/// Sentences for people.
const MAX_ROWS: usize = 1000;
/// What the last line of a cut result may take.
const LAST_LINE_BYTES: usize = 80;

#[derive(Deserialize)]
struct Keys {
    tables: Option<Paths>,
    template: Option<String>,
}

pub(super) fn make(run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let Keys { tables, template } = keys(run)?;
    let tables = tables.map_or_else(|| Ok(Vec::new()), |paths| read_tables(&paths.from(base)));
    let template = template.map(|text| Template::parse(&text)).transpose();
    match (tables, template) {
        (Ok(tables), Ok(template)) => Ok(Arc::new(TableVerbalizer { spec, tables, template })),
        (tables, template) => {
            let mut mistakes = tables.err().map(|mistakes| mistakes.0).unwrap_or_default();
            mistakes.extend(template.err().map(|error| error.to_string()));
            Err(mistakes)
        }
    }
}

struct TableVerbalizer {
    spec: ToolSpec,
    tables: Vec<Table>,
    template: Option<Template>,
}

impl Tool for TableVerbalizer {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let argument = |name: &str| call.arguments.and_then(|all| all.get(name)).and_then(|value| value.as_str());
        self.sentences(argument("table").unwrap_or_default(), argument("template"), argument("row")).map_err(ToolError::Params)
    }
}

impl TableVerbalizer {
    fn sentences(&self, text: &str, template: Option<&str>, row: Option<&str>) -> Result<ToolOutput, String> {
        let read;
        let table = match self.known(text)? {
            Some(table) => table,
            None => {
                read = written(text).map_err(|error| one_line(&error.to_string()))?;
                &read
            }
        };
        let given = template.map(Template::parse).transpose().map_err(|error| error.to_string())?;
        if let Some(template) = &given {
            template.check(table).map_err(|error| error.to_string())?;
        }
        // the entry's template is for its own tables: others may lack its columns
        let template = given.as_ref().or(self.template.as_ref().filter(|template| template.check(table).is_ok()));
        let wanted = row.map(fold);
        let chosen = |cells: &&Vec<String>| wanted.as_ref().is_none_or(|wanted| cells.first().is_some_and(|cell| fold(cell) == *wanted));
        let rows: Vec<&Vec<String>> = table.rows.iter().filter(chosen).collect();
        if rows.is_empty() {
            return Err(match row {
                Some(row) => no_row(table, row),
                None => "the table has no rows below the names of its columns".to_owned(),
            });
        }
        let sentence = |cells: &&Vec<String>| match template {
            Some(template) => template.fill(table, cells),
            None => Template::plain(table, cells),
        };
        let all: Vec<String> = rows.iter().take(MAX_ROWS).filter_map(sentence).map(|text| one_line(&text)).collect();
        if all.is_empty() {
            return Err("no row has a cell in every column that the template names; put parts that may be left out in brackets".to_owned());
        }
        Ok(shown(&all, rows.len(), self.spec.max_observation_bytes))
    }

    /// A known table, where the text is a name and not a table.
    fn known(&self, text: &str) -> Result<Option<&Table>, String> {
        let name = text.trim();
        if let Some(table) = self.tables.iter().find(|table| fold(&table.name) == fold(name)) {
            return Ok(Some(table));
        }
        if name.contains(['\n', ',', '|', '\t', '[', '{']) {
            return Ok(None);
        }
        let names: Vec<String> = self.tables.iter().map(|table| fold(&table.name)).collect();
        let near: Vec<&str> =
            similar(name, names.iter().map(String::as_str), 3).into_iter().map(|at| self.tables[at].name.as_str()).collect();
        Err(match (self.tables.is_empty(), near.is_empty()) {
            (true, _) => "expected a table: a line with the names of the columns, and a line for each row".to_owned(),
            (false, true) => format!("there is no table `{}`; expected a table as text, or the name of a known one", quoted(name)),
            (false, false) => format!("there is no table `{}`; did you mean `{}`?", quoted(name), near.join("`, `")),
        })
    }
}

fn no_row(table: &Table, row: &str) -> String {
    let names: Vec<String> = table.rows.iter().filter_map(|cells| cells.first()).map(|cell| fold(cell)).collect();
    let near: Vec<&str> = similar(row, names.iter().map(String::as_str), 3).into_iter().map(|at| table.rows[at][0].as_str()).collect();
    let hint = if near.is_empty() { String::new() } else { format!("; did you mean `{}`?", near.join("`, `")) };
    format!("no row begins with `{}`{hint}", quoted(row))
}

/// As many sentences as fit, and all that were made for people.
fn shown(all: &[String], rows: usize, max_bytes: usize) -> ToolOutput {
    let mut text = all[0].clone();
    let mut shown = 1;
    while shown < all.len() && text.len() + all[shown].len() + LAST_LINE_BYTES < max_bytes {
        text.push('\n');
        text.push_str(&all[shown]);
        shown += 1;
    }
    if shown == rows {
        return text.into();
    }
    text.push_str(&format!("\n({shown} of {rows} rows)"));
    let mut data = String::new();
    for sentence in all.iter().take_while(|sentence| sentence.len() < MAX_ARTIFACT_BYTES) {
        if data.len() + sentence.len() >= MAX_ARTIFACT_BYTES {
            break;
        }
        data.push_str(sentence);
        data.push('\n');
    }
    let artifact = NewArtifact {
        kind: "passage".to_owned(),
        media_type: "text/plain".to_owned(),
        name: "sentences.txt".to_owned(),
        text: format!("{} sentences", data.lines().count()),
        data: data.into_bytes(),
    };
    ToolOutput { text, artifacts: vec![artifact], ..ToolOutput::default() }
}

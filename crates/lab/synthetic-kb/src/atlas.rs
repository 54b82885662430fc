//! The atlas: a knowledge base of real facts, read from a schema and one TSV file for each type.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;

use crate::base::{Entity, EntityId, Fact, KnowledgeBase};
use crate::exam::{dev_set, held_out_set, phrasing_set, typed_set};
use crate::page::PageStyle;
use crate::question::{Kind, Question};
use crate::schema::{Relation, Schema, SchemaError, TypeId};

/// Fixed, because it determines the order and wording of the sentences in `corpora/atlas`.
const ATLAS_SEED: u64 = 1;

/// The optional column with an entity's other names, separated by semicolons.
const ALIASES: &str = "aliases";

/// A mistake in a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableMistake {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 for the file as a whole.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for TableMistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// An atlas that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AtlasError {
    /// Its schema has mistakes.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// Its tables have mistakes; every one is listed.
    #[error("the atlas `{dir}` has {} mistakes:\n{}", mistakes.len(), mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Tables {
        /// The directory.
        dir: String,
        /// The mistakes.
        mistakes: Vec<TableMistake>,
    },
    /// A generated line cannot be written as JSON.
    #[error("cannot write a line of `{file}` as JSON: {source}")]
    Encode {
        /// The file.
        file: &'static str,
        /// Why not.
        source: serde_json::Error,
    },
}

/// The atlas: a knowledge base of real facts and its fixed sets of questions.
#[derive(Debug, Clone)]
pub struct Atlas {
    base: KnowledgeBase,
}

impl Atlas {
    /// Reads `dir/schema.toml` and `dir/data/*.tsv`. All mistakes in the tables are reported
    /// together.
    pub fn load(dir: &Path) -> Result<Atlas, AtlasError> {
        let schema = Arc::new(Schema::load(&dir.join("schema.toml"))?);
        let mut reader =
            Reader { schema: &schema, rows: Vec::new(), by_name: vec![HashMap::new(); schema.types.len()], mistakes: Vec::new() };
        for (kind, entity_type) in schema.types.iter().enumerate() {
            let file = format!("{}.tsv", entity_type.name);
            match std::fs::read_to_string(dir.join("data").join(&file)) {
                Ok(text) => reader.table(kind, &file, &text),
                Err(error) => reader.mistake(&file, 0, format!("cannot be read: {error}")),
            }
        }
        reader.check_aliases();
        let Reader { rows, by_name, mistakes, .. } = reader;
        if !mistakes.is_empty() {
            return Err(AtlasError::Tables { dir: dir.display().to_string(), mistakes });
        }
        let entities = link(&schema, rows, &by_name);
        Ok(Atlas { base: KnowledgeBase::new(schema, entities, ATLAS_SEED, PageStyle::default()) })
    }

    /// Its facts and pages.
    pub fn base(&self) -> &KnowledgeBase {
        &self.base
    }

    /// Its facts and pages.
    pub fn into_base(self) -> KnowledgeBase {
        self.base
    }

    /// The held-out questions, on which results are reported. Apart from questions about a single
    /// relation, [`crate::Split::Train`] never contains their forms.
    pub fn held_out(&self) -> Vec<Question> {
        held_out_set(&self.base)
    }

    /// Questions for tuning, of forms that [`crate::Split::Train`] contains.
    pub fn dev(&self) -> Vec<Question> {
        dev_set(&self.base)
    }

    /// Questions of forms that training contains, in wordings of families that it never makes. Only
    /// the phrasing is new.
    pub fn phrasings(&self) -> Vec<Question> {
        phrasing_set(&self.base)
    }

    /// Questions as people type them, in the wordings of training, for calibration.
    pub fn typed(&self) -> Vec<Question> {
        typed_set(&self.base)
    }

    /// The atlas with permuted facts: see [`KnowledgeBase::counterfactual`].
    pub fn counterfactual(&self, seed: u64) -> KnowledgeBase {
        self.base.counterfactual(seed)
    }

    /// The generated files: the name within the atlas's directory, and the content.
    pub fn files(&self) -> Result<Vec<(&'static str, String)>, AtlasError> {
        let pages = self.base.pages();
        let pages = pages.iter().enumerate().map(|(id, (title, text))| PageLine { title, text, aliases: self.base.aliases(id) });
        let (held_out, dev, phrasings) = (self.held_out(), self.dev(), self.phrasings());
        Ok(vec![
            lines("pages.jsonl", pages)?,
            lines("questions/held-out.jsonl", held_out.iter())?,
            lines("questions/dev.jsonl", dev.iter())?,
            lines("questions/phrasings.jsonl", phrasings.iter())?,
            lines("questions/typed.jsonl", self.typed().iter().map(TypedLine::from))?,
        ])
    }
}

#[derive(Serialize)]
struct PageLine<'a> {
    title: &'a str,
    text: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    aliases: &'a [String],
}

/// A question whose answer is `null` if it has none.
#[derive(Serialize)]
struct TypedLine<'a> {
    id: &'a str,
    question: &'a str,
    answer: Option<&'a str>,
    kind: Kind,
    #[serde(skip_serializing_if = "Option::is_none")]
    form: Option<&'a str>,
    hops: usize,
}

impl<'a> From<&'a Question> for TypedLine<'a> {
    fn from(question: &'a Question) -> Self {
        TypedLine {
            id: &question.id,
            question: &question.text,
            answer: question.is_answerable().then_some(question.answer.as_str()),
            kind: question.kind,
            form: question.family.as_deref(),
            hops: question.hops,
        }
    }
}

fn lines(file: &'static str, items: impl Iterator<Item = impl Serialize>) -> Result<(&'static str, String), AtlasError> {
    let mut text = String::new();
    for item in items {
        text.push_str(&serde_json::to_string(&item).map_err(|source| AtlasError::Encode { file, source })?);
        text.push('\n');
    }
    Ok((file, text))
}

struct Row {
    kind: TypeId,
    name: String,
    aliases: Vec<String>,
    cells: Vec<Option<String>>,
}

struct Reader<'a> {
    schema: &'a Schema,
    rows: Vec<Row>,
    by_name: Vec<HashMap<String, EntityId>>,
    mistakes: Vec<TableMistake>,
}

impl Reader<'_> {
    fn mistake(&mut self, file: &str, line: usize, message: String) {
        self.mistakes.push(TableMistake { file: file.to_owned(), line, message });
    }

    fn table(&mut self, kind: TypeId, file: &str, text: &str) {
        let relations = &self.schema.types[kind].relations;
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim_end_matches('\r')));
        let header: Vec<&str> = lines.next().map(|(_, line)| line.split('\t').map(str::trim).collect()).unwrap_or_default();
        if header.first() != Some(&"name") {
            return self.mistake(file, 1, "the first column must be `name`".to_owned());
        }
        let mut columns = Vec::new();
        for column in &header[1..] {
            match relations.iter().position(|relation| relation.name == *column) {
                Some(index) => columns.push(Some(index)),
                None if *column == ALIASES => columns.push(None),
                None => return self.mistake(file, 1, format!("the column `{column}` is no relation of the schema")),
            }
        }
        for relation in relations.iter().filter(|relation| !header.contains(&relation.name.as_str())) {
            self.mistake(file, 1, format!("the column `{}` is missing", relation.name));
        }
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let cells: Vec<&str> = line.split('\t').map(str::trim).collect();
            let name = cells[0].to_owned();
            if name.is_empty() {
                self.mistake(file, number, "the name is empty".to_owned());
                continue;
            }
            if cells.len() > header.len() {
                self.mistake(file, number, format!("`{name}` has {} cells, the table has {} columns", cells.len(), header.len()));
                continue;
            }
            let mut row = Row { kind, name: name.clone(), aliases: Vec::new(), cells: vec![None; relations.len()] };
            for (cell, index) in cells[1..].iter().zip(&columns).filter(|(cell, _)| !cell.is_empty()) {
                let Some(index) = index else {
                    row.aliases = cell.split(';').map(|alias| alias.trim().to_owned()).filter(|alias| !alias.is_empty()).collect();
                    continue;
                };
                let relation = &relations[*index];
                if relation.target.is_none() && relation.range != "word" && parse_number(cell).is_none() {
                    self.mistake(file, number, format!("`{name}`: the {} `{cell}` is no number", relation.noun));
                }
                row.cells[*index] = Some((*cell).to_owned());
            }
            if self.by_name[kind].insert(name.clone(), self.rows.len()).is_some() {
                self.mistake(file, number, format!("`{name}` is in this table twice"));
            }
            self.rows.push(row);
        }
    }
}

impl Reader<'_> {
    /// A name in a table, or another entity's alias, cannot be an alias: the tools would open
    /// another page.
    fn check_aliases(&mut self) {
        let mut owners: HashMap<String, String> = self.rows.iter().map(|row| (row.name.to_lowercase(), row.name.clone())).collect();
        let mut taken = Vec::new();
        for row in &self.rows {
            for alias in &row.aliases {
                if let Some(owner) = owners.insert(alias.to_lowercase(), row.name.clone()) {
                    taken.push((row.kind, format!("`{}`: the alias `{alias}` already means `{owner}`", row.name)));
                }
            }
        }
        for (kind, message) in taken {
            let file = format!("{}.tsv", self.schema.types[kind].name);
            self.mistake(&file, 0, message);
        }
    }
}

fn parse_number(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// Converts rows to entities. A name that occurs in several tables is the title of the first
/// table's entity. The others' titles include their type, and no page refers to them: running text
/// would use the same name for both, and a reader would open the wrong page.
fn link(schema: &Schema, rows: Vec<Row>, by_name: &[HashMap<String, EntityId>]) -> Vec<Entity> {
    let mut owner: HashMap<String, usize> = HashMap::new();
    for (index, row) in rows.iter().enumerate() {
        owner.entry(row.name.to_lowercase()).or_insert(index);
    }
    let owns = |index: usize| owner.get(&rows[index].name.to_lowercase()) == Some(&index);
    let fact = |relation: &Relation, cell: &String| {
        let number = if relation.target.is_none() && relation.range != "word" { parse_number(cell) } else { None };
        let target = relation.target.and_then(|kind| by_name[kind].get(cell)).copied().filter(|id| owns(*id));
        let text = if number.is_some() && !relation.unit.is_empty() { format!("{cell} {}", relation.unit) } else { cell.clone() };
        Fact { text, target, number }
    };
    rows.iter()
        .enumerate()
        .map(|(index, row)| {
            let kind = &schema.types[row.kind];
            let facts =
                kind.relations.iter().zip(&row.cells).map(|(relation, cell)| cell.as_ref().map(|cell| fact(relation, cell))).collect();
            let title = if owns(index) { row.name.clone() } else { format!("{} ({})", row.name, kind.noun) };
            Entity { title, kind: row.kind, aliases: row.aliases.clone(), facts }
        })
        .collect()
}

//! `knowledge_graph`: what is known of an entity, one of its relations, and the way back from a
//! value.

mod finding;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_tables::{EntityId, Graph, read_tables, read_triples};
use autoact_trajectory::{Effect, MAX_ARTIFACT_BYTES, MAX_ARTIFACTS, NewArtifact, ToolSpec, artifact_name};
use serde::Deserialize;
use serde_json::json;

use self::finding::{Found, Names};
use crate::local::settings::{Paths, from, keys};
use crate::preset::{Key, Preset};
use crate::text::{fold, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

pub(super) static PRESET: Preset = Preset {
    kind: "knowledge_graph",
    name: "KnowledgeGraph",
    definition: "Facts of a knowledge graph: all relations of an `entity`, the values of one `relation` of it, or the entities that have \
                 an `object` as the value of a `relation`.",
    schema: Some(
        r#"{"type":"object","properties":{"entity":{"type":"string","minLength":1,"maxLength":200,"description":"whose facts are wanted"},"relation":{"type":"string","minLength":1,"maxLength":100,"description":"the relation, such as capital"},"object":{"type":"string","minLength":1,"maxLength":200,"description":"a value, to ask which entities have it"}},"minProperties":1,"additionalProperties":false}"#,
    ),
    usage: None,
    examples: &[r#"{"entity":"France","relation":"capital"}"#, r#"{"entity":"France"}"#, r#"{"relation":"capital","object":"Paris"}"#],
    effect: Effect::ReadOnly,
    timeout: Duration::from_secs(5),
    max_observation_bytes: 2048,
    multiline: true,
    keys: &[
        Key {
            name: "tables",
            meaning: "a `.csv` or `.tsv` file, a directory of them, or a list of both: the column `name` is the subject, other columns \
                      are relations, `aliases` holds other names",
            required: false,
        },
        Key { name: "triples", meaning: "a file of subject, relation and object, separated by tabs", required: false },
        Key { name: "several", meaning: "columns whose cells hold several values, separated by semicolons", required: false },
    ],
    data: &["tables", "triples"],
};

/// So many entities are listed; the rest is for people.
const LISTED: usize = 40;
/// So many entities are listed of each relation in which another one names this one.
const LISTED_OF_RELATION: usize = 8;
/// What one list for people may take: an observation has up to 16.
const MAX_LIST_BYTES: usize = MAX_ARTIFACT_BYTES / MAX_ARTIFACTS / 2;

#[derive(Deserialize)]
struct Keys {
    tables: Option<Paths>,
    triples: Option<PathBuf>,
    #[serde(default)]
    several: Vec<String>,
}

pub(super) fn make(run: toml::Table, spec: ToolSpec, base: Option<&Path>) -> Result<Arc<dyn Tool>, Vec<String>> {
    let Keys { tables, triples, several } = keys(run)?;
    if tables.is_none() && triples.is_none() {
        return Err(vec!["expected `tables` (files with a column `name`), `triples` (subject, relation, object), or both".to_owned()]);
    }
    let tables = tables.map_or_else(|| Ok(Vec::new()), |paths| read_tables(&paths.from(base)));
    let triples = triples.map_or_else(|| Ok(Vec::new()), |path| read_triples(&from(base, &path)));
    let (tables, triples) = match (tables, triples) {
        (Ok(tables), Ok(triples)) => (tables, triples),
        (tables, triples) => {
            let wrong = [tables.err(), triples.err()];
            return Err(wrong.into_iter().flatten().flat_map(|mistakes| mistakes.0).collect());
        }
    };
    let unknown = |name: &&String| !tables.iter().any(|table| table.columns.iter().any(|column| column.eq_ignore_ascii_case(name)));
    if let Some(name) = several.iter().find(unknown) {
        return Err(vec![format!("`several` names `{}`, which is no column of the tables", quoted(name))]);
    }
    let graph = Graph::of(&tables, triples, &several)?;
    let names = Names::of(&graph);
    Ok(Arc::new(KnowledgeGraph { spec, graph, names }))
}

struct KnowledgeGraph {
    spec: ToolSpec,
    graph: Graph,
    names: Names,
}

impl Tool for KnowledgeGraph {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let argument = |name: &str| call.arguments.and_then(|all| all.get(name)).and_then(|value| value.as_str());
        let answered = match (argument("entity"), argument("relation"), argument("object")) {
            (Some(entity), None, None) => self.about(entity).map(ToolOutput::from),
            (Some(entity), Some(relation), None) => self.values(entity, relation).map(ToolOutput::from),
            (Some(entity), relation, Some(object)) => self.holds(entity, relation, object).map(ToolOutput::from),
            (None, relation, Some(object)) => self.having(relation, object),
            (None, _, None) => Err("expected an `entity`, or an `object` with or without a `relation`".to_owned()),
        };
        answered.map_err(ToolError::Params)
    }
}

impl KnowledgeGraph {
    /// Everything that is known of an entity: its relations with their values, and the relations in
    /// which others name it.
    fn about(&self, written: &str) -> Result<String, String> {
        let Found { entities, note } = self.names.entity(&self.graph, written)?;
        let mut lines: Vec<String> = note.into_iter().collect();
        for &entity in &entities {
            lines.push(self.full_label(entity));
            for fact in self.graph.facts(entity).iter().filter(|fact| !fact.values.is_empty()) {
                lines.push(format!("{}: {}", self.graph.relations()[fact.relation], fact.values.join("; ")));
            }
        }
        let name = entities.first().map_or("", |entity| &self.graph.entities()[*entity].name);
        for (relation, of) in self.graph.relations().iter().enumerate() {
            let having = self.graph.having(relation, name);
            if !having.is_empty() {
                lines.push(format!("is the {of} of: {}", self.list(having, LISTED_OF_RELATION)));
            }
        }
        Ok(lines.join("\n"))
    }

    /// The values of a relation. Where several entities have the name, those count that have the
    /// relation.
    fn values(&self, entity: &str, written: &str) -> Result<String, String> {
        let Found { entities, note } = self.names.entity(&self.graph, entity)?;
        let (relation, having) = self.relation_of(&entities, written)?;
        let name = &self.graph.relations()[relation];
        let mut lines: Vec<String> = note.into_iter().collect();
        for entity in &having {
            let values = self.graph.values(*entity, relation).unwrap_or_default();
            lines.push(match (values.is_empty(), having.len()) {
                (true, _) => format!("the {name} of {} is not known here", self.full_label(*entity)),
                (false, 1) => values.join("; "),
                (false, _) => format!("{}: {}", self.full_label(*entity), values.join("; ")),
            });
        }
        Ok(lines.join("\n"))
    }

    /// The relation that is meant, and which of the entities have it.
    fn relation_of(&self, entities: &[EntityId], written: &str) -> Result<(usize, Vec<EntityId>), String> {
        let facts = entities.iter().flat_map(|entity| self.graph.facts(*entity));
        let mut known: Vec<usize> = Vec::new();
        facts.for_each(|fact| {
            if !known.contains(&fact.relation) {
                known.push(fact.relation)
            }
        });
        let relation = finding::relation(&self.graph, &known, written).ok_or_else(|| {
            let label = entities.first().map_or_else(String::new, |entity| self.full_label(*entity));
            let known: Vec<&str> = known.iter().map(|relation| self.graph.relations()[*relation].as_str()).collect();
            format!("{label} has no relation `{}`; its relations are {}", quoted(written), known.join(", "))
        })?;
        let with = |known: bool| {
            let has = |entity: &&EntityId| self.graph.values(**entity, relation).is_some_and(|values| !known || !values.is_empty());
            entities.iter().filter(has).copied().collect::<Vec<_>>()
        };
        // an empty cell of one table says nothing where the entity of another table has a value
        let having = with(true);
        Ok((relation, if having.is_empty() { with(false) } else { having }))
    }

    /// The entities that have a value.
    fn having(&self, relation: Option<&str>, object: &str) -> Result<ToolOutput, String> {
        let relations: Vec<usize> = (0..self.graph.relations().len()).collect();
        let asked = match relation {
            None => relations,
            Some(written) => vec![finding::relation(&self.graph, &relations, written).ok_or_else(|| {
                format!("there is no relation `{}`; the relations are {}", quoted(written), self.graph.relations().join(", "))
            })?],
        };
        let (value, note) = self.names.object(&self.graph, &asked, object)?;
        let mut lines: Vec<String> = note.into_iter().collect();
        let mut artifacts = Vec::new();
        for of in asked {
            let having = self.graph.having(of, &value);
            if having.is_empty() {
                continue;
            }
            let (name, list) = (&self.graph.relations()[of], self.list(having, LISTED));
            lines.push(if relation.is_some() { list } else { format!("is the {name} of: {list}") });
            if having.len() > LISTED && artifacts.len() < MAX_ARTIFACTS {
                artifacts.push(self.artifact(name, having));
            }
        }
        Ok(ToolOutput { text: lines.join("\n"), artifacts, ..ToolOutput::default() })
    }

    /// Whether an entity has a value.
    fn holds(&self, entity: &str, relation: Option<&str>, object: &str) -> Result<String, String> {
        let Found { entities, note } = self.names.entity(&self.graph, entity)?;
        let asked = match relation {
            Some(written) => vec![self.relation_of(&entities, written)?.0],
            None => (0..self.graph.relations().len()).collect(),
        };
        let mut wanted = vec![fold(object)];
        // `USA` stands for `United States` where the one is an alias of the other
        if let Ok(found) = self.names.entity(&self.graph, object) {
            wanted.extend(found.entities.iter().map(|entity| fold(&self.graph.entities()[*entity].name)));
        }
        let mut lines: Vec<String> = note.into_iter().collect();
        for &entity in &entities {
            for &relation in &asked {
                let values = self.graph.values(entity, relation).unwrap_or_default();
                let name = &self.graph.relations()[relation];
                match values.iter().find(|value| wanted.contains(&fold(value))) {
                    Some(value) => lines.push(format!("yes: the {name} of {} is {value}", self.full_label(entity))),
                    None if asked.len() == 1 && !values.is_empty() => {
                        lines.push(format!("no: the {name} of {} is {}", self.full_label(entity), values.join("; ")));
                    }
                    None => {}
                }
            }
        }
        if lines.is_empty() {
            let labels: Vec<String> = entities.iter().map(|entity| self.full_label(*entity)).collect();
            lines.push(format!("nothing here says so of {}", labels.join(" or ")));
        }
        Ok(lines.join("\n"))
    }

    /// `Georgia (film)`: the entity and its table.
    fn full_label(&self, entity: EntityId) -> String {
        let Some(found) = self.graph.entities().get(entity) else { return String::new() };
        if found.table.is_empty() { found.name.clone() } else { format!("{} ({})", found.name, found.table) }
    }

    /// The entity, with its table only where another one has the same name.
    fn label(&self, entity: EntityId) -> String {
        let Some(found) = self.graph.entities().get(entity) else { return String::new() };
        if self.graph.named(&found.name).len() > 1 { self.full_label(entity) } else { found.name.clone() }
    }

    /// The first of these entities, and how many there are.
    fn list(&self, entities: &[EntityId], most: usize) -> String {
        let shown: Vec<String> = entities.iter().take(most).map(|entity| self.label(*entity)).collect();
        let shown = shown.join("; ");
        if entities.len() > most { format!("{shown} … ({most} of {})", entities.len()) } else { shown }
    }

    /// All of these entities, for people.
    fn artifact(&self, relation: &str, entities: &[EntityId]) -> NewArtifact {
        let labels: Vec<String> = entities.iter().map(|entity| self.label(*entity)).collect();
        let (mut kept, mut bytes) = (0, 0);
        while kept < labels.len() && bytes < MAX_LIST_BYTES {
            bytes += 2 * labels[kept].len() + 4;
            kept += 1;
        }
        NewArtifact {
            kind: "file".to_owned(),
            media_type: "application/json".to_owned(),
            name: artifact_name(&format!("{relation}.json")),
            text: format!("{kept} entities"),
            data: json!(labels[..kept]).to_string().into_bytes(),
        }
    }
}

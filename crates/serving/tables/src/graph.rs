//! Facts about named entities.

use std::collections::{BTreeMap, HashMap};

use autoact_base::names::fold;

use crate::table::Table;

/// The column that names an entity.
const NAME: &str = "name";
/// The column of other names of an entity, separated by semicolons.
pub const ALIASES: &str = "aliases";
/// What separates several values of one cell.
const SEPARATOR: char = ';';

/// The position of an entity.
pub type EntityId = usize;

/// Something that facts are about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Its name. Entities of two tables may share one.
    pub name: String,
    /// The table that it stands in; empty for a subject of triples alone.
    pub table: String,
}

/// A fact as a file of triples has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triple {
    /// Whom it is about.
    pub subject: String,
    /// What it says of it.
    pub relation: String,
    /// The value.
    pub object: String,
}

/// A relation of an entity with its values, in the order in which they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The relation, by its position.
    pub relation: usize,
    /// Its values; none if the entity's table has the column and the cell is empty.
    pub values: Vec<String>,
}

/// Entities, their relations, and the way back from a value.
#[derive(Debug, Default)]
pub struct Graph {
    entities: Vec<Entity>,
    facts: Vec<Vec<Fact>>,
    relations: Vec<String>,
    numbers: HashMap<String, usize>,
    by_name: HashMap<String, Vec<EntityId>>,
    /// By relation: the entities that have a value, by the folded value.
    by_value: Vec<BTreeMap<String, Vec<EntityId>>>,
}

impl Graph {
    /// The graph of these tables and triples. Of each table the column `name` is the subject, every
    /// other column is a relation, and rows of the same name are one entity. Cells of `aliases` and
    /// of the columns `several` hold values that are separated by semicolons.
    ///
    /// # Errors
    /// A table without the column `name`, a row without a name, a triple whose subject is in two
    /// tables.
    pub fn of(tables: &[Table], triples: Vec<Triple>, several: &[String]) -> Result<Graph, Vec<String>> {
        let mut graph = Graph::default();
        let mut mistakes = Vec::new();
        for table in tables {
            graph.add_table(table, several, &mut mistakes);
        }
        for triple in triples {
            let entity = match graph.named(&triple.subject) {
                [] => graph.add(&triple.subject, ""),
                [entity] => *entity,
                _ => {
                    mistakes.push(format!("a triple is about `{}`, which is in two tables: add a column there instead", triple.subject));
                    continue;
                }
            };
            let relation = graph.relation_number(&triple.relation);
            graph.add_value(entity, relation, &triple.object);
        }
        if mistakes.is_empty() { Ok(graph) } else { Err(mistakes) }
    }

    fn add_table(&mut self, table: &Table, several: &[String], mistakes: &mut Vec<String>) {
        let Some(name) = table.columns.iter().position(|column| column.eq_ignore_ascii_case(NAME)) else {
            mistakes.push(format!("the table `{}` has no column `{NAME}`, which names its entities", table.name));
            return;
        };
        let before = self.entities.len();
        for row in &table.rows {
            if row[name].is_empty() {
                mistakes.push(format!("the table `{}` has a row without a `{NAME}`: {}", table.name, row.join(", ")));
                continue;
            }
            let here = self.named(&row[name]).iter().copied().find(|entity| *entity >= before);
            let entity = here.unwrap_or_else(|| self.add(&row[name], &table.name));
            for (at, cell) in row.iter().enumerate().filter(|(at, _)| *at != name) {
                let column = &table.columns[at];
                let relation = self.relation_number(column);
                self.fact(entity, relation);
                if column.eq_ignore_ascii_case(ALIASES) || several.iter().any(|name| name.eq_ignore_ascii_case(column)) {
                    cell.split(SEPARATOR).for_each(|value| self.add_value(entity, relation, value.trim()));
                } else {
                    self.add_value(entity, relation, cell);
                }
            }
        }
    }

    fn add(&mut self, name: &str, table: &str) -> EntityId {
        let entity = self.entities.len();
        self.entities.push(Entity { name: name.to_owned(), table: table.to_owned() });
        self.facts.push(Vec::new());
        self.by_name.entry(name.to_owned()).or_default().push(entity);
        entity
    }

    fn relation_number(&mut self, name: &str) -> usize {
        let folded = fold(name);
        if let Some(number) = self.numbers.get(&folded) {
            return *number;
        }
        self.numbers.insert(folded, self.relations.len());
        self.relations.push(name.to_owned());
        self.by_value.push(BTreeMap::new());
        self.relations.len() - 1
    }

    fn fact(&mut self, entity: EntityId, relation: usize) -> &mut Fact {
        let facts = &mut self.facts[entity];
        let at = facts.iter().position(|fact| fact.relation == relation).unwrap_or_else(|| {
            facts.push(Fact { relation, values: Vec::new() });
            facts.len() - 1
        });
        &mut facts[at]
    }

    fn add_value(&mut self, entity: EntityId, relation: usize, value: &str) {
        let fact = self.fact(entity, relation);
        if value.is_empty() || fact.values.iter().any(|known| known == value) {
            return;
        }
        fact.values.push(value.to_owned());
        let having = self.by_value[relation].entry(fold(value)).or_default();
        // two values of one entity may fold to the same
        if having.last() != Some(&entity) {
            having.push(entity);
        }
    }

    /// All entities, in the order in which they were read.
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The entities of exactly this name.
    pub fn named(&self, name: &str) -> &[EntityId] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }

    /// The names of all relations.
    pub fn relations(&self) -> &[String] {
        &self.relations
    }

    /// The relation of this name, up to case, blanks and punctuation.
    pub fn relation(&self, name: &str) -> Option<usize> {
        self.numbers.get(&fold(name)).copied()
    }

    /// What is known of an entity, and the columns of its table where nothing is.
    pub fn facts(&self, entity: EntityId) -> &[Fact] {
        self.facts.get(entity).map_or(&[], Vec::as_slice)
    }

    /// The values of a relation of an entity; `None` if it has no such relation.
    pub fn values(&self, entity: EntityId, relation: usize) -> Option<&[String]> {
        self.facts(entity).iter().find(|fact| fact.relation == relation).map(|fact| fact.values.as_slice())
    }

    /// The entities that have this value of a relation, up to case, blanks and punctuation.
    pub fn having(&self, relation: usize, value: &str) -> &[EntityId] {
        self.by_value.get(relation).and_then(|values| values.get(&fold(value))).map_or(&[], Vec::as_slice)
    }

    /// The folded values of a relation, in their order.
    pub fn values_of(&self, relation: usize) -> impl Iterator<Item = &str> {
        self.by_value.get(relation).into_iter().flatten().map(|(value, _)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Format;

    fn table(name: &str, text: &str) -> Table {
        Table::parse(name, text, Format::Csv).unwrap()
    }

    #[test]
    fn rows_of_one_name_are_one_entity_and_tables_are_apart() {
        let tables = [
            table("country", "name,capital,aliases\nGeorgia,Tbilisi,Sakartvelo; Gruzia\nFrance,Paris,\n"),
            table("film", "name,actor\nGeorgia,A; B\nGeorgia,C\n"),
        ];
        let triples = vec![
            Triple { subject: "France".into(), relation: "motto".into(), object: "Liberté".into() },
            Triple { subject: "Mars".into(), relation: "Capital".into(), object: "none".into() },
        ];
        let graph = Graph::of(&tables, triples, &["actor".into()]).unwrap();
        let capital = graph.relation("CAPITAL").unwrap();
        assert_eq!(graph.named("Georgia"), [0, 2]);
        assert_eq!(graph.values(0, graph.relation("aliases").unwrap()).unwrap(), ["Sakartvelo", "Gruzia"]);
        assert_eq!(graph.values(2, graph.relation("actor").unwrap()).unwrap(), ["A", "B", "C"]);
        assert_eq!(graph.values(2, capital), None);
        assert_eq!(graph.having(capital, "PARIS"), [1]);
        assert_eq!(graph.having(graph.relation("motto").unwrap(), "liberte"), [1]);
        assert_eq!(graph.values(3, capital).unwrap(), ["none"]);
        assert_eq!(graph.values_of(capital).collect::<Vec<_>>(), ["none", "paris", "tbilisi"]);
    }

    #[test]
    fn broken_tables_are_refused() {
        assert!(Graph::of(&[table("t", "title\nx\n")], Vec::new(), &[]).is_err());
        assert!(Graph::of(&[table("t", "name,a\n,1\n")], Vec::new(), &[]).is_err());
        let twice = [table("a", "name\nx\n"), table("b", "name\nx\n")];
        let triple = Triple { subject: "x".into(), relation: "r".into(), object: "o".into() };
        assert!(Graph::of(&twice, vec![triple], &[]).is_err());
    }
}

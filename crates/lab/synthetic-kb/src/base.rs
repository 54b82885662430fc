//! A knowledge base: typed entities and their facts. Real and synthetic ones are the same type.

use std::collections::HashMap;
use std::sync::Arc;

use crate::page::Page;
use crate::schema::{RelationId, RelationRef, Schema, TypeId};
use crate::text::contains_words;

/// Index into [`KnowledgeBase::entities`].
pub type EntityId = usize;

/// A fact: the value of one relation of an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The value as pages spell it; also the answer to a question for it: `1006 km`, `Lima`.
    pub text: String,
    /// The entity that the value names, if an entity has exactly this title.
    pub target: Option<EntityId>,
    /// The numeric value of a number or a year, in the relation's unit.
    pub number: Option<f64>,
}

impl Fact {
    /// A text value that names no entity.
    pub fn word(text: impl Into<String>) -> Fact {
        Fact { text: text.into(), target: None, number: None }
    }
}

/// An entity. Each entity has a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Its title, unique in the knowledge base.
    pub title: String,
    /// Its type.
    pub kind: TypeId,
    /// Other names that mean this entity alone; the most usual one first.
    pub aliases: Vec<String>,
    /// Its facts, indexed by relation of its type; `None` if unknown.
    pub facts: Vec<Option<Fact>>,
}

/// Typed entities, their facts and their pages. Immutable.
#[derive(Debug, Clone)]
pub struct KnowledgeBase {
    pub(crate) schema: Arc<Schema>,
    pub(crate) seed: u64,
    pub(crate) entities: Vec<Entity>,
    pub(crate) by_type: Vec<Vec<EntityId>>,
    by_title: HashMap<String, EntityId>,
    pub(crate) pages: Vec<Page>,
}

impl KnowledgeBase {
    pub(crate) fn without_pages(schema: Arc<Schema>, entities: Vec<Entity>, seed: u64) -> KnowledgeBase {
        let mut by_type = vec![Vec::new(); schema.types.len()];
        let mut by_title = HashMap::with_capacity(entities.len());
        for (id, entity) in entities.iter().enumerate() {
            by_type[entity.kind].push(id);
            by_title.entry(entity.title.clone()).or_insert(id);
        }
        KnowledgeBase { schema, seed, entities, by_type, by_title, pages: Vec::new() }
    }

    /// Its types and relations.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// All entities, indexed by [`EntityId`].
    pub fn entities(&self) -> &[Entity] {
        &self.entities
    }

    /// The entities of a type.
    pub fn of_type(&self, kind: TypeId) -> &[EntityId] {
        self.by_type.get(kind).map(Vec::as_slice).unwrap_or_default()
    }

    /// The entity with exactly this title.
    pub fn find(&self, title: &str) -> Option<EntityId> {
        self.by_title.get(title).copied()
    }

    /// The fact of an entity for a relation of its type; `None` if unknown.
    pub fn fact(&self, entity: EntityId, relation: RelationId) -> Option<&Fact> {
        self.entities.get(entity)?.facts.get(relation)?.as_ref()
    }

    /// The facts along a chain from an entity. `None` if one is unknown, or if an intermediate
    /// value is not an entity.
    pub fn follow(&self, start: EntityId, chain: &[RelationRef]) -> Option<Vec<&Fact>> {
        let mut at = Some(start);
        let mut facts = Vec::with_capacity(chain.len());
        for link in chain {
            let entity = self.entities.get(at?)?;
            if entity.kind != link.kind {
                return None;
            }
            let fact = entity.facts.get(link.relation)?.as_ref()?;
            at = fact.target;
            facts.push(fact);
        }
        Some(facts)
    }

    /// The page of an entity.
    pub fn page(&self, entity: EntityId) -> Option<&Page> {
        self.pages.get(entity)
    }

    /// The sentence on an entity's page that states the relation.
    pub fn sentence(&self, entity: EntityId, relation: RelationId) -> Option<&str> {
        let page = self.pages.get(entity)?;
        page.sentences.iter().find(|sentence| sentence.states.contains(&relation)).map(|sentence| sentence.text.as_str())
    }

    /// The title and text of every page, one sentence per line, in the order of the entities.
    pub fn pages(&self) -> Vec<(String, String)> {
        self.pages.iter().map(|page| (page.title.clone(), page.text())).collect()
    }

    /// The other names of an entity. The tools find its page by them.
    pub fn aliases(&self, entity: EntityId) -> &[String] {
        self.entities.get(entity).map(|entity| entity.aliases.as_slice()).unwrap_or_default()
    }

    /// An entity's name in running text, with its article: `the Loire`, `Lima`.
    pub(crate) fn named(&self, entity: EntityId) -> String {
        let entity = &self.entities[entity];
        self.name_in_text(entity.kind, &entity.title)
    }

    /// A title in running text, with the article that its type requires.
    pub(crate) fn name_in_text(&self, kind: TypeId, title: &str) -> String {
        let kind = &self.schema.types[kind];
        let takes_article = kind.article || kind.articles.iter().any(|word| contains_words(title, word));
        if takes_article && !title.starts_with("The ") && !title.starts_with("the ") { format!("the {title}") } else { title.to_owned() }
    }

    /// A value in running text, with the article that its type requires: `the Atlantic Ocean`.
    pub(crate) fn value_in_text(&self, at: RelationRef, fact: &Fact) -> String {
        match self.schema.relation(at).target {
            Some(kind) => self.name_in_text(kind, &fact.text),
            None => format!("the {}", fact.text),
        }
    }
}

//! A knowledge base: typed entities and their facts, synthetic or real, with one implementation for
//! both.

use std::collections::HashMap;
use std::sync::Arc;

use crate::page::Page;
use crate::schema::{RelationId, RelationRef, Schema, TypeId};
use crate::text::contains_words;

/// An entity's place in [`KnowledgeBase::entities`].
pub type EntityId = usize;

/// A fact: the value of one relation of an entity.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// The value as pages spell it, and the answer to a question for it: `1006 km`, `Lima`.
    pub text: String,
    /// The entity it names, if that has a page under exactly this title.
    pub target: Option<EntityId>,
    /// Its number or year.
    pub number: Option<f64>,
}

impl Fact {
    /// A plain text value without a page.
    pub fn word(text: impl Into<String>) -> Fact {
        Fact { text: text.into(), target: None, number: None }
    }
}

/// An entity; it has a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Entity {
    /// Its title, unique in the base.
    pub title: String,
    /// Its type.
    pub kind: TypeId,
    /// By relation of its type; `None` is unknown.
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

    /// What kinds of things it holds.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Everything in it.
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

    /// What is known of an entity by a relation of its type.
    pub fn fact(&self, entity: EntityId, relation: RelationId) -> Option<&Fact> {
        self.entities.get(entity)?.facts.get(relation)?.as_ref()
    }

    /// The facts along a chain from an entity; `None` where one is unknown or a link is no entity.
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

    /// An entity's page, sentence by sentence.
    pub fn page(&self, entity: EntityId) -> Option<&Page> {
        self.pages.get(entity)
    }

    /// The sentence of an entity's page that states a relation.
    pub fn sentence(&self, entity: EntityId, relation: RelationId) -> Option<&str> {
        let page = self.pages.get(entity)?;
        page.sentences.iter().find(|sentence| sentence.states.contains(&relation)).map(|sentence| sentence.text.as_str())
    }

    /// Every page's title and text, one sentence a line, in the order of the entities.
    pub fn pages(&self) -> Vec<(String, String)> {
        self.pages.iter().map(|page| (page.title.clone(), page.text())).collect()
    }

    /// The name as running text writes it: `the Loire`, `Lima`.
    pub(crate) fn named(&self, entity: EntityId) -> String {
        let entity = &self.entities[entity];
        self.name_in_text(entity.kind, &entity.title)
    }

    /// A title of a type as running text writes it.
    pub(crate) fn name_in_text(&self, kind: TypeId, title: &str) -> String {
        let kind = &self.schema.types[kind];
        let takes_article = kind.article || kind.articles.iter().any(|word| contains_words(title, word));
        if takes_article && !title.starts_with("The ") && !title.starts_with("the ") { format!("the {title}") } else { title.to_owned() }
    }

    /// A fact's value with the article its kind of name takes: `the Atlantic Ocean`.
    pub(crate) fn value_in_text(&self, at: RelationRef, fact: &Fact) -> String {
        match self.schema.relation(at).target {
            Some(kind) => self.name_in_text(kind, &fact.text),
            None => format!("the {}", fact.text),
        }
    }
}

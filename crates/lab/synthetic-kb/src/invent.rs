//! Generation of synthetic knowledge bases ("worlds" in identifiers): invented entities with
//! consistent types and invented facts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use autoact_base::random::Rng;

use crate::base::{Entity, EntityId, Fact, KnowledgeBase};
use crate::names::NameMaker;
use crate::page::PageStyle;
use crate::schema::{Relation, RelationRef, Schema, TypeId};

/// The size of a synthetic knowledge base.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WorldSize {
    /// Number of pages, divided among the types by weight. Every type gets at least two.
    pub pages: usize,
    /// Probability of each of a page's possible sentences without facts.
    pub fillers: f64,
}

impl Default for WorldSize {
    /// Large enough that a search has to rank pages, and small enough to be generated in a
    /// millisecond. One knowledge base serves about 50 questions.
    fn default() -> Self {
        WorldSize { pages: 140, fillers: 0.15 }
    }
}

/// Generates synthetic knowledge bases.
#[derive(Debug, Clone, Copy)]
pub struct World;

impl World {
    /// A synthetic knowledge base. The same arguments give the same knowledge base.
    pub fn invent(schema: &Arc<Schema>, names: &NameMaker, seed: u64, size: WorldSize) -> KnowledgeBase {
        let mut rng = Rng::labelled(seed, "world");
        let mut used = HashSet::new();
        let total: f64 = schema.types.iter().map(|kind| kind.weight.max(0.0)).sum();
        let mut entities = Vec::new();
        let mut by_type: Vec<Vec<EntityId>> = vec![Vec::new(); schema.types.len()];
        for (id, kind) in schema.types.iter().enumerate() {
            let share = if total > 0.0 { kind.weight.max(0.0) / total } else { 0.0 };
            let count = ((size.pages as f64 * share).round() as usize).max(2);
            for _ in 0..count {
                let source = rng.pick(&kind.spelling).cloned().unwrap_or_default();
                let title = names.invent(&source, &kind.forms, &kind.words, &mut used, &mut rng);
                by_type[id].push(entities.len());
                entities.push(Entity { title, kind: id, aliases: Vec::new(), facts: Vec::new() });
            }
        }
        let titles: Vec<String> = entities.iter().map(|entity| entity.title.clone()).collect();
        let mut maker = FactMaker { schema, names, by_type: &by_type, titles: &titles, used, taken: HashMap::new() };
        for (kind, ids) in by_type.iter().enumerate() {
            for &id in ids {
                entities[id].facts = maker.facts(kind, id, &mut rng);
            }
        }
        KnowledgeBase::new(Arc::clone(schema), entities, seed, PageStyle { fillers: size.fillers })
    }
}

struct FactMaker<'a> {
    schema: &'a Schema,
    names: &'a NameMaker,
    by_type: &'a [Vec<EntityId>],
    titles: &'a [String],
    used: HashSet<String>,
    /// Values already used for each relation that is `unique`.
    taken: HashMap<RelationRef, HashSet<String>>,
}

/// Draws before a unique value is left unknown.
const UNIQUE_TRIES: usize = 30;
/// Probability that an open word is one that another entity already has: people share languages
/// and currencies.
const SHARED_WORD: f64 = 0.35;
/// Probability of a round number.
const ROUND: f64 = 0.3;

impl FactMaker<'_> {
    fn facts(&mut self, kind: TypeId, id: EntityId, rng: &mut Rng) -> Vec<Option<Fact>> {
        let relations = &self.schema.types[kind].relations;
        let mut facts: Vec<Option<Fact>> = Vec::with_capacity(relations.len());
        for (index, relation) in relations.iter().enumerate() {
            let at = RelationRef { kind, relation: index };
            let base = relation.after.as_ref().and_then(|after| relations.iter().position(|other| &other.name == after));
            let base = base.and_then(|base| facts.get(base)).and_then(Option::as_ref).and_then(|fact| fact.number);
            let mut fact = None;
            if !rng.chance(relation.missing) && (relation.after.is_none() || base.is_some()) {
                for _ in 0..UNIQUE_TRIES {
                    let drawn = self.draw(at, relation, base, id, rng);
                    if !relation.unique || self.taken.entry(at).or_default().insert(drawn.text.clone()) {
                        fact = Some(drawn);
                        break;
                    }
                }
            }
            facts.push(fact);
        }
        facts
    }

    fn draw(&mut self, at: RelationRef, relation: &Relation, base: Option<f64>, id: EntityId, rng: &mut Rng) -> Fact {
        match (relation.target, relation.range.as_str()) {
            (Some(_), _) if rng.chance(relation.plain) => {
                let kind = &self.schema.types[relation.target.unwrap_or_default()];
                let source = relation.spelling.clone().or_else(|| rng.pick(&kind.spelling).cloned()).unwrap_or_default();
                Fact::word(self.names.invent(&source, &kind.forms, &kind.words, &mut self.used, rng))
            }
            (Some(kind), _) => {
                let choices = &self.by_type[kind];
                let mut target = choices[rng.below(choices.len())];
                if target == id {
                    target = choices[rng.below(choices.len())];
                }
                Fact { text: self.titles[target].clone(), target: Some(target), number: None }
            }
            (None, "number" | "year") => number(relation, base, rng),
            _ => self.word(at, relation, rng),
        }
    }

    fn word(&mut self, at: RelationRef, relation: &Relation, rng: &mut Rng) -> Fact {
        if let Some(form) = rng.pick(&relation.forms) {
            let code = form.chars().map(|c| match c {
                '#' => char::from(b'0' + rng.below(10) as u8),
                '@' => char::from(b'A' + rng.below(26) as u8),
                '~' => char::from(b'a' + rng.below(26) as u8),
                other => other,
            });
            return Fact::word(code.collect::<String>());
        }
        if let Some(value) = rng.pick(&relation.values) {
            return Fact::word(value.clone());
        }
        let shared = self.taken.entry(at).or_default();
        if !relation.unique && !shared.is_empty() && rng.chance(SHARED_WORD) {
            let mut known: Vec<&String> = shared.iter().collect();
            known.sort();
            if let Some(value) = rng.pick(&known) {
                return Fact::word((*value).clone());
            }
        }
        let own = self.schema.path(at);
        let source = relation.spelling.as_deref().unwrap_or(&own);
        let word = self.names.invent(source, &[], &[], &mut self.used, rng);
        if !relation.unique {
            self.taken.entry(at).or_default().insert(word.clone());
        }
        Fact::word(word)
    }
}

fn number(relation: &Relation, base: Option<f64>, rng: &mut Rng) -> Fact {
    let (low, high) = (relation.min.min(relation.max), relation.min.max(relation.max));
    let drawn = match base {
        Some(base) => base + low + rng.unit() * (high - low),
        // log-uniform for wide ranges such as lengths and areas; uniform for years and narrow
        // ranges
        None if relation.range == "number" && low > 0.0 && high / low > 20.0 => low * (high / low).powf(rng.unit()),
        None => low + rng.unit() * (high - low),
    };
    let drawn = if relation.range == "number" && relation.decimals == 0 && rng.chance(ROUND) { round(drawn, rng) } else { drawn };
    fact_of_number(drawn, if relation.range == "year" { 0 } else { relation.decimals }, &relation.unit)
}

/// The number with one to three digits that are not zero: pages have many such numbers, and their
/// zeros are hard to copy.
fn round(number: f64, rng: &mut Rng) -> f64 {
    let digits = rng.between(1, 3) as i32;
    let unit = 10f64.powi((number.abs().max(1.0).log10().floor() as i32 + 1 - digits).max(0));
    (number / unit).round().max(1.0) * unit
}

/// A number or year as a fact: `1006 km`, `1889`.
pub(crate) fn fact_of_number(value: f64, decimals: u32, unit: &str) -> Fact {
    let text = format!("{value:.*}", decimals as usize);
    let number = text.parse().ok();
    Fact { text: if unit.is_empty() { text } else { format!("{text} {unit}") }, target: None, number }
}

//! What kinds of things a world holds and how people write and ask about them.

use std::collections::HashMap;

use serde::Deserialize;

use crate::split::{Split, held_out};

/// An entity type's place in [`Schema::types`].
pub type TypeId = usize;
/// A relation's place in [`EntityType::relations`].
pub type RelationId = usize;

/// A relation of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationRef {
    /// The type whose entities have it.
    pub kind: TypeId,
    /// Which of its relations.
    pub relation: RelationId,
}

/// An invalid schema.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// The file cannot be read.
    #[error("cannot read the schema `{path}`")]
    Read {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// Not TOML, or not of the schema's form.
    #[error("the schema `{path}` is not valid: {source}")]
    Parse {
        /// The file.
        path: String,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// It parses but makes no sense; every mistake is listed.
    #[error("the schema `{path}` has {} mistakes:\n{}", problems.len(), problems.join("\n"))]
    Invalid {
        /// The file.
        path: String,
        /// One line each.
        problems: Vec<String>,
    },
}

/// A sentence of a page, with slots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Sentence {
    /// Usable whenever the facts of its slots are known.
    Plain(String),
    /// Usable on conditions.
    Conditional(ConditionalSentence),
}

/// A sentence that needs more than its slots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionalSentence {
    /// The sentence.
    pub text: String,
    /// Relations whose facts must be known.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Relations whose facts must be unknown.
    #[serde(default)]
    pub lacks: Vec<String>,
}

impl Sentence {
    /// The template.
    pub fn text(&self) -> &str {
        match self {
            Sentence::Plain(text) => text,
            Sentence::Conditional(sentence) => &sentence.text,
        }
    }
}

/// Wordings that fit any relation, built from its noun `{r}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generic {
    /// How often a generic wording is taken where the relation has its own.
    #[serde(default)]
    pub rate: f64,
    /// Page sentences: `{e}` or `{its}`, `{r}`, `{v}`.
    #[serde(default)]
    pub sentences: Vec<String>,
    /// Noun phrases: `{r}`, `{x}`.
    #[serde(default)]
    pub phrases: Vec<String>,
    /// Whole questions: `{r}`, `{x}`.
    #[serde(default)]
    pub questions: Vec<String>,
    /// Yes/no questions: `{v}`, `{p}` (the phrase).
    #[serde(default)]
    pub checks: Vec<String>,
    /// Yes/no questions on two entities sharing a value: `{a}`, `{b}`, `{r}`.
    #[serde(default)]
    pub same: Vec<String>,
}

/// How two values of a relation are compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// `longer`, `later`: the larger value.
    pub more: String,
    /// `shorter`, `earlier`: the smaller value.
    pub less: String,
    /// `Which is {c}, {a} or {b}?`
    pub which: Vec<String>,
    /// `Is {a} {c} than {b}?`
    pub than: Vec<String>,
    /// The end of `Whose author …`: `was born {c}`. None: not asked with a hop before it.
    #[serde(default)]
    pub whose: Option<String>,
}

/// A relation: what is known of a type's entities, and its wordings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// Its identifier, and its column in the tables: `birth_year`.
    pub name: String,
    /// What thoughts and generic wordings call it: `birth year`. Default: the name with spaces.
    #[serde(default)]
    pub noun: String,
    /// A type's name, or `word`, `number` or `year`.
    pub range: String,
    /// The type, if `range` names one.
    #[serde(skip)]
    pub target: Option<TypeId>,
    /// Page sentences: `{e}`, `{v}`, `{the v}`, `{a v}`.
    #[serde(default)]
    pub sentences: Vec<Sentence>,
    /// Noun phrases: `the capital of {x}`.
    #[serde(default)]
    pub phrases: Vec<String>,
    /// Whole questions: `Where was {x} born?`
    #[serde(default)]
    pub questions: Vec<String>,
    /// Yes/no questions: `Was {x} born in {v}?`
    #[serde(default)]
    pub checks: Vec<String>,
    /// Questions for the entity by its value: `Which country has {v} as its capital?` Asked where the value is unique.
    #[serde(default)]
    pub inverse: Vec<String>,
    /// Yes/no questions on two entities sharing the value: `Are {a} and {b} in the same continent?`
    #[serde(default)]
    pub same: Vec<String>,
    /// How values compare; numbers and years only.
    #[serde(default)]
    pub compare: Option<Compare>,
    /// Whether the schema's generic wordings fit it.
    #[serde(default = "yes")]
    pub generic: bool,
    /// Unit of a number, a part of its text: `km`.
    #[serde(default)]
    pub unit: String,
    /// Decimal places of an invented number.
    #[serde(default)]
    pub decimals: u32,
    /// Bounds of an invented number or year; with `after`, of its distance.
    #[serde(default)]
    pub min: f64,
    /// See `min`.
    #[serde(default)]
    pub max: f64,
    /// The year or number that an invented one is counted from: a death year follows a birth year.
    #[serde(default)]
    pub after: Option<String>,
    /// The words an invented value is one of.
    #[serde(default)]
    pub values: Vec<String>,
    /// Forms of invented codes: `#` a digit, `@` a capital, `~` a small letter.
    #[serde(default)]
    pub forms: Vec<String>,
    /// The spelling model of invented words: a type, or `type.relation`. Default: this relation's own.
    #[serde(default)]
    pub spelling: Option<String>,
    /// No two invented entities share a value.
    #[serde(default)]
    pub unique: bool,
    /// How often an invented entity lacks it.
    #[serde(default)]
    pub missing: f64,
    /// How often an invented reference is a mere name without a page.
    #[serde(default)]
    pub plain: f64,
}

/// A type of entity.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityType {
    /// Its identifier, and its table's file name.
    pub name: String,
    /// What people call one: `river`. Default: the name.
    #[serde(default)]
    pub noun: String,
    /// Whether names take `the`: the Loire.
    #[serde(default)]
    pub article: bool,
    /// Words that make a name take `the` where `article` does not: `Islands`, `United`.
    #[serde(default)]
    pub articles: Vec<String>,
    /// What people call several: `rivers`. Default: the noun and an `s`.
    #[serde(default)]
    pub plural: String,
    /// Whether `the river Loire` is natural.
    #[serde(default = "yes")]
    pub prefix: bool,
    /// What generic sentences say for `{its}`; empty: they do not.
    #[serde(default = "its")]
    pub possessive: String,
    /// Its share of an invented world.
    #[serde(default = "one")]
    pub weight: f64,
    /// The types whose spelling its invented names follow. Default: its own.
    #[serde(default)]
    pub spelling: Vec<String>,
    /// Forms of invented names: `{n}` an invented word, `{w}` one of `words`. Default: the forms of the real titles.
    #[serde(default)]
    pub forms: Vec<String>,
    /// For `{w}` in `forms`.
    #[serde(default)]
    pub words: Vec<String>,
    /// First sentences, best first within equal knowledge: `{e} is a river in {country}.`
    pub leads: Vec<Sentence>,
    /// Sentences without facts, for invented worlds.
    #[serde(default)]
    pub fillers: Vec<String>,
    /// What is known of its entities.
    pub relations: Vec<Relation>,
}

impl EntityType {
    /// The relation of this name.
    pub fn relation(&self, name: &str) -> Option<RelationId> {
        self.relations.iter().position(|relation| relation.name == name)
    }
}

fn yes() -> bool {
    true
}

fn its() -> String {
    "Its".to_owned()
}

fn one() -> f64 {
    1.0
}

/// The kinds of things a world holds.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Wordings that fit any relation.
    pub generic: Generic,
    /// The types, in the file's order.
    pub types: Vec<EntityType>,
    /// By number of relations less one, then by [`Split`]: all, train, held out.
    chains: [[Vec<Vec<RelationRef>>; 3]; 3],
    by_path: HashMap<String, RelationRef>,
}

impl Schema {
    /// A schema of types that [`Schema::parse`] has checked.
    pub(crate) fn new(generic: Generic, types: Vec<EntityType>) -> Schema {
        let by_path = all_relations(&types)
            .map(|at| (format!("{}.{}", types[at.kind].name, types[at.kind].relations[at.relation].name), at))
            .collect();
        let mut schema = Schema { chains: Default::default(), generic, types, by_path };
        schema.chains = schema.split_chains();
        schema
    }

    fn split_chains(&self) -> [[Vec<Vec<RelationRef>>; 3]; 3] {
        chains(&self.types).map(|all| {
            let single = all.first().is_some_and(|chain| chain.len() == 1);
            let (held, train): (Vec<_>, Vec<_>) = all.iter().cloned().partition(|chain| held_out(&self.chain_key(chain)));
            if single { [all.clone(), all.clone(), all] } else { [all, train, held] }
        })
    }

    /// The relation at a path such as `river.country`.
    pub fn relation_at(&self, path: &str) -> Option<RelationRef> {
        self.by_path.get(path).copied()
    }

    /// The relation itself.
    pub fn relation(&self, at: RelationRef) -> &Relation {
        &self.types[at.kind].relations[at.relation]
    }

    /// `river.country`
    pub fn path(&self, at: RelationRef) -> String {
        format!("{}.{}", self.types[at.kind].name, self.relation(at).name)
    }

    /// `river.country>country.capital`: what splits are decided by.
    pub fn chain_key(&self, chain: &[RelationRef]) -> String {
        chain.iter().map(|at| self.path(*at)).collect::<Vec<_>>().join(">")
    }

    /// Every relation.
    pub fn relations(&self) -> impl Iterator<Item = RelationRef> + '_ {
        all_relations(&self.types)
    }

    /// The chains of `hops` (1 to 3) relations that belong to a split; single relations belong to all.
    pub fn chains(&self, hops: usize, split: Split) -> &[Vec<RelationRef>] {
        let by_split = match split {
            Split::Any => 0,
            Split::Train => 1,
            Split::HeldOut => 2,
        };
        let chains = hops.checked_sub(1).and_then(|index| self.chains.get(index));
        chains.map(|chains| chains[by_split].as_slice()).unwrap_or_default()
    }
}

fn all_relations(types: &[EntityType]) -> impl Iterator<Item = RelationRef> + '_ {
    types.iter().enumerate().flat_map(|(kind, entity)| (0..entity.relations.len()).map(move |relation| RelationRef { kind, relation }))
}

fn chains(types: &[EntityType]) -> [Vec<Vec<RelationRef>>; 3] {
    let one: Vec<Vec<RelationRef>> = all_relations(types).map(|at| vec![at]).collect();
    let longer = |chains: &[Vec<RelationRef>]| -> Vec<Vec<RelationRef>> {
        let mut out = Vec::new();
        for chain in chains {
            let Some(kind) = chain.last().and_then(|at| types[at.kind].relations[at.relation].target) else { continue };
            for relation in 0..types[kind].relations.len() {
                let next = RelationRef { kind, relation };
                // the same relation twice (the river that the river's river …) reads like a riddle
                if !chain.contains(&next) {
                    out.push(chain.iter().copied().chain([next]).collect());
                }
            }
        }
        out
    };
    let two = longer(&one);
    let three = longer(&two);
    [one, two, three]
}

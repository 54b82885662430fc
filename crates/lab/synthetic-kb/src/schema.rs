//! Schemas: the types and relations of a knowledge base, and the wordings of pages and questions.

use std::collections::HashMap;

use serde::Deserialize;

use crate::split::{Split, held_out};

/// Index into [`Schema::types`].
pub type TypeId = usize;
/// Index into [`EntityType::relations`].
pub type RelationId = usize;

/// A relation of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationRef {
    /// The type whose entities have it.
    pub kind: TypeId,
    /// Which of the type's relations.
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
    /// Not TOML, or not of a schema's structure.
    #[error("the schema `{path}` is not valid: {source}")]
    Parse {
        /// The file.
        path: String,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// It can be parsed but is inconsistent; every mistake is listed.
    #[error("the schema `{path}` has {} mistakes:\n{}", problems.len(), problems.join("\n"))]
    Invalid {
        /// The file.
        path: String,
        /// One line for each mistake.
        problems: Vec<String>,
    },
}

/// A sentence of a page, with slots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Sentence {
    /// Usable if the facts of its slots are known.
    Plain(String),
    /// Usable under further conditions.
    Conditional(ConditionalSentence),
}

/// A sentence with conditions beyond its slots.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionalSentence {
    /// The template.
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

/// Wordings that fit any relation. They are built from the relation's noun, `{r}`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generic {
    /// Probability of a generic wording where the relation has its own.
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
    /// Yes/no questions whether two entities share a value: `{a}`, `{b}`, `{r}`.
    #[serde(default)]
    pub same: Vec<String>,
}

/// How two values of a relation are compared.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Adjective for the larger value: `longer`, `later`.
    pub more: String,
    /// Adjective for the smaller value: `shorter`, `earlier`.
    pub less: String,
    /// Templates of comparisons: `Which is {c}, {a} or {b}?`
    #[serde(default)]
    pub which: Vec<String>,
    /// Templates of yes/no questions: `Is {a} {c} than {b}?`
    #[serde(default)]
    pub than: Vec<String>,
    /// The end of `Whose author …`: `was born {c}`. `None`: no comparisons after another relation.
    #[serde(default)]
    pub whose: Option<String>,
    /// The same comparison in other words (`older`, `younger`), for rewording only.
    #[serde(skip)]
    pub also: Vec<Compare>,
}

/// Wordings of a relation for [`KnowledgeBase::reword`] only: they stand in `wordings.toml` beside
/// the schema. The slots are those of the schema's own wordings.
///
/// [`KnowledgeBase::reword`]: crate::KnowledgeBase::reword
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wordings {
    /// Whole questions: `Who is {x} by?`
    pub questions: Vec<String>,
    /// Noun phrases: `whoever wrote {x}`.
    pub phrases: Vec<String>,
    /// Yes/no questions: `Is {v} behind {x}?`
    pub checks: Vec<String>,
    /// Questions from the value to the entity.
    pub inverse: Vec<String>,
    /// Yes/no questions whether two entities share the value.
    pub same: Vec<String>,
    /// Questions how far apart two values are, whichever is larger: `{a}`, `{b}`.
    pub gaps: Vec<String>,
    /// Comparisons in other words.
    pub also: Vec<Compare>,
}

impl Wordings {
    /// Adds more of them.
    pub(crate) fn add(&mut self, more: Wordings) {
        self.questions.extend(more.questions);
        self.phrases.extend(more.phrases);
        self.checks.extend(more.checks);
        self.inverse.extend(more.inverse);
        self.same.extend(more.same);
        self.gaps.extend(more.gaps);
        self.also.extend(more.also);
    }
}

/// Wordings of two relations in one breath, without what is between them: `In which country is {x}?`
/// of a landmark, whose page tells its city. They stand in `wordings.toml` too.
#[derive(Debug, Clone)]
pub struct Together {
    /// The two relations.
    pub chain: [RelationRef; 2],
    /// Whole questions: `{x}`.
    pub questions: Vec<String>,
    /// Noun phrases: `{x}`.
    pub phrases: Vec<String>,
    /// Yes/no questions: `{v}`, `{x}`.
    pub checks: Vec<String>,
}

/// Questions for the years between something in a person's life and something that the person made:
/// `How old was {y} when {x} came out?`
#[derive(Debug, Clone)]
pub struct AgeAt {
    /// The year of the thing.
    pub year: RelationRef,
    /// From the thing to the person.
    pub who: RelationRef,
    /// The year of the person.
    pub born: RelationRef,
    /// Questions that name both: `{x}`, `{y}`.
    pub questions: Vec<String>,
    /// Questions that name the thing only: `{x}`.
    pub unnamed: Vec<String>,
}

/// A relation of a type, and its wordings.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// Its identifier, and its column in the tables: `birth_year`.
    pub name: String,
    /// Its name in thoughts and generic wordings: `birth year`. Default: `name` with spaces.
    #[serde(default)]
    pub noun: String,
    /// The type of its values: a type's name, or `word`, `number` or `year`.
    pub range: String,
    /// The type that `range` names, if any.
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
    /// How it is asked for in other words.
    #[serde(skip)]
    pub asked: Wordings,
    /// Yes/no questions: `Was {x} born in {v}?`
    #[serde(default)]
    pub checks: Vec<String>,
    /// Questions from the value to the entity: `Which country has {v} as its capital?` They are
    /// asked only if the value is unique.
    #[serde(default)]
    pub inverse: Vec<String>,
    /// Yes/no questions whether two entities share the value:
    /// `Are {a} and {b} in the same continent?`
    #[serde(default)]
    pub same: Vec<String>,
    /// Wordings of comparisons; only for numbers and years.
    #[serde(default)]
    pub compare: Option<Compare>,
    /// Whether the schema's generic wordings fit it.
    #[serde(default = "yes")]
    pub generic: bool,
    /// Unit of a number, as the value's text ends with it: `km`.
    #[serde(default)]
    pub unit: String,
    /// Decimal places of an invented number.
    #[serde(default)]
    pub decimals: u32,
    /// Bounds of an invented number or year. With `after`: bounds of the difference.
    #[serde(default)]
    pub min: f64,
    /// See `min`.
    #[serde(default)]
    pub max: f64,
    /// The relation from whose value an invented one is counted: a death year follows a birth year.
    #[serde(default)]
    pub after: Option<String>,
    /// Questions for the difference between the value and that of `after`: `How many years did {x}
    /// live?`
    #[serde(default)]
    pub ages: Vec<String>,
    /// The words from which an invented value is drawn.
    #[serde(default)]
    pub values: Vec<String>,
    /// Templates of invented codes: `#` a digit, `@` a capital letter, `~` a small letter.
    #[serde(default)]
    pub forms: Vec<String>,
    /// Source of the spelling of invented words: a type, or `type.relation`. Default: this
    /// relation.
    #[serde(default)]
    pub spelling: Option<String>,
    /// Whether invented entities must have distinct values.
    #[serde(default)]
    pub unique: bool,
    /// Probability that an invented entity has no value.
    #[serde(default)]
    pub missing: f64,
    /// Probability that an invented reference is a name without a page.
    #[serde(default)]
    pub plain: f64,
}

impl Relation {
    /// Its comparison, and the same one in other words.
    pub(crate) fn compares(&self) -> impl Iterator<Item = &Compare> {
        self.compare.iter().flat_map(|compare| [compare].into_iter().chain(&compare.also))
    }
}

/// A type of entity.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityType {
    /// Its identifier, and its table's file name.
    pub name: String,
    /// The common noun for one entity: `river`. Default: `name`.
    #[serde(default)]
    pub noun: String,
    /// Whether names take the article `the`: the Loire.
    #[serde(default)]
    pub article: bool,
    /// Words that make a name take `the` if `article` is false: `Islands`, `United`.
    #[serde(default)]
    pub articles: Vec<String>,
    /// The common noun for several: `rivers`. Default: `noun` with an `s`.
    #[serde(default)]
    pub plural: String,
    /// Whether the noun may stand before a name: `the river Loire`.
    #[serde(default = "yes")]
    pub prefix: bool,
    /// The text for `{its}` in generic sentences. Empty: sentences with `{its}` are not used.
    #[serde(default = "its")]
    pub possessive: String,
    /// Relative number of pages in a synthetic knowledge base.
    #[serde(default = "one")]
    pub weight: f64,
    /// The types whose spelling invented names follow. Default: this type.
    #[serde(default)]
    pub spelling: Vec<String>,
    /// Templates of invented names: `{n}` an invented word, `{w}` one of `words`. Default: the
    /// templates learned from real titles.
    #[serde(default)]
    pub forms: Vec<String>,
    /// Words for `{w}` in `forms`.
    #[serde(default)]
    pub words: Vec<String>,
    /// Whether its entities are also called by the last word of their name: Mozart.
    #[serde(default)]
    pub surnames: bool,
    /// Words that people leave out at either end of a name: `Mount`.
    #[serde(default)]
    pub drops: Vec<String>,
    /// First sentences: `{e} is a river in {country}.` Those that state the most are preferred.
    pub leads: Vec<Sentence>,
    /// Sentences without facts, for synthetic knowledge bases.
    #[serde(default)]
    pub fillers: Vec<String>,
    /// Its relations.
    pub relations: Vec<Relation>,
}

impl EntityType {
    /// The index of the relation with this name.
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

/// The types and relations of a knowledge base.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Wordings that fit any relation.
    pub generic: Generic,
    /// The types, in the file's order.
    pub types: Vec<EntityType>,
    /// Chains by number of relations minus one, then by [`Split`]: all, train, held out.
    chains: [[Vec<Vec<RelationRef>>; 3]; 3],
    by_path: HashMap<String, RelationRef>,
    /// Wordings of two relations at once.
    pub together: Vec<Together>,
    /// Questions for somebody's age at a point in time.
    pub ages_at: Vec<AgeAt>,
}

impl Schema {
    /// A schema of types that [`Schema::parse`] has checked.
    pub(crate) fn new(generic: Generic, types: Vec<EntityType>) -> Schema {
        let by_path = all_relations(&types)
            .map(|at| (format!("{}.{}", types[at.kind].name, types[at.kind].relations[at.relation].name), at))
            .collect();
        let mut schema = Schema { chains: Default::default(), generic, types, by_path, together: Vec::new(), ages_at: Vec::new() };
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

    /// The path of a relation: `river.country`.
    pub fn path(&self, at: RelationRef) -> String {
        format!("{}.{}", self.types[at.kind].name, self.relation(at).name)
    }

    /// The key of a chain, whose hash decides the split: `river.country>country.capital`.
    pub fn chain_key(&self, chain: &[RelationRef]) -> String {
        chain.iter().map(|at| self.path(*at)).collect::<Vec<_>>().join(">")
    }

    /// The wordings of the two relations at once, if there are any.
    pub(crate) fn together(&self, chain: &[RelationRef]) -> Option<&Together> {
        self.together.iter().find(|together| together.chain == chain)
    }

    /// All relations of all types.
    pub fn relations(&self) -> impl Iterator<Item = RelationRef> + '_ {
        all_relations(&self.types)
    }

    /// The chains of `hops` (1 to 3) relations in a split. Single relations are in every split.
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

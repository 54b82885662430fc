//! Questions that no page answers, so that a group learns to say so: names that no page has,
//! relations that a page lacks, chains that break, comparisons with one side only, and texts that
//! ask for no fact at all. They are composed, so that thousands of forms arise.

use std::sync::LazyLock;

use autoact_base::random::{Rng, stable_hash};

use crate::base::{EntityId, KnowledgeBase};
use crate::idle::idle;
use crate::made_name::made_name;
use crate::phrase::{phrase_of_chain, question_otherwise};
use crate::question::{Asks, Kind, Question, QuestionPlan, Read, Why};
use crate::schema::{Compare, RelationId, RelationRef};
use crate::split::Split;
use crate::strange::Nouns;
use crate::text::{contains_words, fill, sentence_case, with_article};
use crate::unanswerable_words::{EVERYDAY, FRAMES, OF_THINGS, PROPERTIES, THINGS};
use crate::untold::untold;

/// Nouns of no page of the atlas; the base renames relations with them.
static NOUNS: LazyLock<Nouns> = LazyLock::new(|| Nouns::parse(include_str!("../../../../models/stem/recipe/nouns.txt")));

/// Relative frequencies: a name without a page, an everyday thing, a relation that no page of the
/// type has, one that this page lacks, a broken chain, two of which one is missing, a value that
/// nothing has, no question for a fact.
const SHARES: [f64; 8] = [0.22, 0.13, 0.16, 0.12, 0.12, 0.09, 0.04, 0.12];
/// Probability that the question about a name without a page follows a second relation.
const DEEP: f64 = 0.3;
/// Probability that such a question is a yes-no question.
const CHECKED: f64 = 0.15;
/// Frequencies of what people ask of a type, and of properties of anything; else a noun is asked for.
const RELATIONS: [f64; 3] = [0.4, 0.15, 0.45];
/// Frequencies of the one that is missing in a comparison: one of the type that lacks the value, a
/// name without a page, one of another type.
const SIDES: [f64; 3] = [0.35, 0.35, 0.3];
/// Attempts at a noun that a page does not have.
const TRIES: usize = 30;

impl KnowledgeBase {
    /// A random question that the pages do not answer.
    pub(crate) fn unanswerable(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        let mut question = match rng.weighted(&SHARES)? {
            0 => self.unknown_entity(split, rng),
            1 => everyday(rng),
            2 => self.unknown_relation(rng),
            3 => self.lacking(split, rng),
            4 => self.broken(split, rng),
            5 => self.one_sided(split, rng),
            6 => self.unowned(rng),
            _ => Some(no_question(self, rng)),
        }?;
        question.text = carelessly(std::mem::take(&mut question.text), rng);
        Some(question)
    }

    /// A name in the spelling of a type's titles that no page has.
    pub(crate) fn made_name(&self, kind: usize, rng: &mut Rng) -> Option<String> {
        let draw = |rng: &mut Rng| Some(self.entities[self.pick_entity(kind, rng)?].title.as_str());
        made_name(draw, self.entities.iter().map(|entity| entity.title.as_str()), rng)
    }

    fn unknown_entity(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        let hops = if rng.chance(DEEP) { 2 } else { 1 };
        let chain = rng.pick(self.schema.chains(hops, split))?;
        let (last, inner) = chain.split_last()?;
        let made = self.made_name(chain.first()?.kind, rng)?;
        let named = self.name_in_text(chain.first()?.kind, &made);
        let nouns = self.nouns(chain);
        let x = phrase_of_chain(self, inner, named, rng);
        let relation = self.schema.relation(*last);
        let check = rng.pick(&relation.checks).filter(|_| rng.chance(CHECKED));
        let text = match check {
            Some(check) => {
                let claimed = self.fact(self.pick_entity(last.kind, rng)?, last.relation)?;
                let claim = relation.target.map_or(claimed.text.clone(), |kind| self.name_in_text(kind, &claimed.text));
                fill(check, |slot| match slot {
                    "v" => Some(claim.clone()),
                    "a v" => Some(with_article(&claim)),
                    "x" => Some(x.clone()),
                    _ => None,
                })
            }
            None => question_otherwise(self, *last, &x, !inner.is_empty(), rng),
        };
        let noun = nouns.first()?.clone();
        let asks = Asks::Value { start: made.clone(), nouns };
        Some(missing(sentence_case(text), Why::Entity, asks, Vec::new(), made, noun))
    }

    fn nouns(&self, chain: &[RelationRef]) -> Vec<String> {
        chain.iter().map(|at| self.schema.relation(*at).noun.clone()).collect()
    }

    /// A noun that the pages of a type do not give, directly or over one or two other pages: the
    /// capital of a city might be meant as that of its country.
    pub(crate) fn foreign_noun(&self, kind: usize, rng: &mut Rng) -> Option<String> {
        let near: Vec<usize> = self.leads_to(&self.leads_to(&[kind]));
        let reachable: Vec<&str> =
            near.iter().flat_map(|kind| &self.schema.types[*kind].relations).map(|relation| relation.noun.as_str()).collect();
        let told = |noun: &str| reachable.iter().any(|other| contains_words(other, noun) || contains_words(noun, other));
        (0..TRIES).find_map(|_| {
            let noun = match rng.below(5) {
                0 | 1 => {
                    let all: Vec<RelationRef> = self.schema.relations().collect();
                    self.schema.relation(*rng.pick(&all)?).noun.clone()
                }
                2 => NOUNS.draw(rng)?,
                _ => (*rng.pick(&EVERYDAY)?).to_owned(),
            };
            (!told(&noun)).then_some(noun)
        })
    }

    /// These types, and those that their relations lead to.
    fn leads_to(&self, kinds: &[usize]) -> Vec<usize> {
        let mut all = kinds.to_vec();
        for kind in kinds {
            all.extend(self.schema.types[*kind].relations.iter().filter_map(|relation| relation.target));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn unknown_relation(&self, rng: &mut Rng) -> Option<Question> {
        let id = rng.below(self.entities.len());
        let entity = &self.entities[id];
        let x = self.named(id);
        let kind = &self.schema.types[entity.kind];
        let told = |noun: &str| kind.relations.iter().any(|relation| contains_words(&relation.noun, noun));
        let put = |frame: &str| fill(frame, |slot| (slot == "x").then(|| x.clone()));
        let (text, noun) = match (rng.weighted(&RELATIONS)?, untold(&kind.name)) {
            (0, Some(untold)) => {
                let (noun, questions) = rng.pick(untold)?;
                (!told(noun)).then_some((put(rng.pick(questions)?), noun.clone()))?
            }
            (0 | 1, _) => {
                let (frame, noun) = rng.pick(&PROPERTIES)?;
                (!told(noun)).then(|| (put(frame), (*noun).to_owned()))?
            }
            _ => {
                let noun = self.foreign_noun(entity.kind, rng)?;
                (framed(&noun, &x, rng)?, noun)
            }
        };
        let asks = Asks::Value { start: entity.title.clone(), nouns: vec![noun.clone()] };
        Some(missing(sentence_case(text), Why::Relation, asks, Vec::new(), entity.title.clone(), noun))
    }

    /// An entity of a type and a relation of it that its page lacks.
    fn lack(&self, kind: Option<usize>, rng: &mut Rng) -> Option<(EntityId, RelationId)> {
        (0..TRIES).find_map(|_| {
            let id = match kind {
                Some(kind) => self.pick_entity(kind, rng)?,
                None => rng.below(self.entities.len()),
            };
            let unknown: Vec<RelationId> = (0..self.entities[id].facts.len()).filter(|at| self.fact(id, *at).is_none()).collect();
            Some((id, *rng.pick(&unknown)?))
        })
    }

    fn lacking(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        let (id, relation) = self.lack(None, rng)?;
        let first = RelationRef { kind: self.entities[id].kind, relation };
        let chain = self.led_by(first, split, rng);
        let (last, inner) = chain.split_last()?;
        let x = phrase_of_chain(self, inner, self.named(id), rng);
        let text = question_otherwise(self, *last, &x, !inner.is_empty(), rng);
        let (title, nouns) = (self.entities[id].title.clone(), self.nouns(&chain));
        let noun = nouns.first()?.clone();
        let asks = Asks::Value { start: title.clone(), nouns };
        Some(missing(sentence_case(text), Why::Relation, asks, Vec::new(), title, noun))
    }

    /// A chain that begins with this relation: alone, or with one after it.
    fn led_by(&self, first: RelationRef, split: Split, rng: &mut Rng) -> Vec<RelationRef> {
        let longer: Vec<&Vec<RelationRef>> = self.schema.chains(2, split).iter().filter(|chain| chain.first() == Some(&first)).collect();
        rng.pick(&longer).filter(|_| rng.chance(DEEP)).map_or_else(|| vec![first], |chain| (*chain).clone())
    }

    /// A chain whose first facts are known: the next name has no page, or its page lacks the
    /// relation.
    fn broken(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        (0..TRIES).find_map(|_| {
            let hops = 2 + rng.below(2);
            let chain = rng.pick(self.schema.chains(hops, split))?;
            let start = self.pick_entity(chain.first()?.kind, rng)?;
            let mut at = start;
            let mut read = Vec::new();
            for (index, link) in chain.iter().enumerate() {
                let title = &self.entities[at].title;
                let Some(fact) = self.fact(at, link.relation) else {
                    if index == 0 {
                        return None;
                    }
                    return self.broken_at(start, chain, read, title, index, rng);
                };
                read.push(Read { title: title.clone(), path: self.schema.path(*link) });
                match fact.target {
                    Some(target) => at = target,
                    None if index + 1 < chain.len() && self.find(&fact.text).is_none() => {
                        return self.broken_at(start, chain, read, &fact.text, index + 1, rng);
                    }
                    None => return None,
                }
            }
            None
        })
    }

    fn broken_at(&self, start: EntityId, chain: &[RelationRef], read: Vec<Read>, name: &str, at: usize, rng: &mut Rng) -> Option<Question> {
        let (last, inner) = chain.split_last()?;
        let x = phrase_of_chain(self, inner, self.named(start), rng);
        let text = question_otherwise(self, *last, &x, !inner.is_empty(), rng);
        let nouns = self.nouns(chain);
        let noun = nouns.get(at)?.clone();
        let asks = Asks::Value { start: self.entities[start].title.clone(), nouns };
        Some(missing(sentence_case(text), Why::Chain, asks, read, name.to_owned(), noun))
    }

    /// A comparison, or whether two share a value, where one of the two has no page or lacks the
    /// value.
    fn one_sided(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        let compared = rng.chance(0.7);
        let at = self.pick_relation(rng, |at| {
            let relation = self.schema.relation(at);
            if compared { relation.compare.is_some() } else { !relation.same.is_empty() }
        })?;
        let more = rng.chance(0.5);
        if !split.allows(&format!("{}:{}", if compared { "compare" } else { "same" }, self.schema.path(at))) {
            return None;
        }
        let known = (0..TRIES).find_map(|_| self.pick_entity(at.kind, rng).filter(|id| self.fact(*id, at.relation).is_some()))?;
        let title = self.entities[known].title.clone();
        let relation = self.schema.relation(at);
        let lacks = |id: &EntityId| self.fact(*id, at.relation).is_none();
        let of_type = |rng: &mut Rng| (0..TRIES).find_map(|_| self.pick_entity(at.kind, rng).filter(lacks));
        let (other, other_kind) = match (rng.weighted(&SIDES)?, of_type(rng)) {
            (0, Some(id)) => (self.entities[id].title.clone(), at.kind),
            (2, _) => {
                let id = self.without_noun(&relation.noun, rng)?;
                (self.entities[id].title.clone(), self.entities[id].kind)
            }
            _ => (self.made_name(at.kind, rng)?, at.kind),
        };
        let first = rng.chance(0.5);
        let (a, b) = if first { (other.clone(), title.clone()) } else { (title.clone(), other.clone()) };
        let kinds = if first { [other_kind, at.kind] } else { [at.kind, other_kind] };
        let compares: Vec<&Compare> = relation.compares().collect();
        let compare = rng.pick(&compares).copied();
        let frame = match compare.filter(|_| compared) {
            Some(compare) if !compare.which.is_empty() && rng.chance(0.6) => rng.pick(&compare.which)?,
            Some(compare) => rng.pick(&compare.than)?,
            None => rng.pick(&relation.same)?,
        };
        let text = fill(frame, |slot| match slot {
            "a" => Some(self.name_in_text(kinds[0], &a)),
            "b" => Some(self.name_in_text(kinds[1], &b)),
            "r" => Some(relation.noun.clone()),
            "c" => compare.map(|compare| if more { compare.more.clone() } else { compare.less.clone() }),
            _ => None,
        });
        let read = if first { Vec::new() } else { vec![Read { title, path: self.schema.path(at) }] };
        let asks = Asks::Both { a, b, nouns: vec![relation.noun.clone()] };
        Some(missing(sentence_case(text), Why::Side, asks, read, other, relation.noun.clone()))
    }

    /// An entity of a type that has no relation with this noun.
    fn without_noun(&self, noun: &str, rng: &mut Rng) -> Option<EntityId> {
        let told = |kind: usize| self.schema.types[kind].relations.iter().any(|other| contains_words(&other.noun, noun));
        (0..TRIES).map(|_| rng.below(self.entities.len())).find(|id| !told(self.entities[*id].kind))
    }

    /// A value that no entity has.
    fn unowned(&self, rng: &mut Rng) -> Option<Question> {
        let at = self.pick_relation(rng, |at| {
            let relation = self.schema.relation(at);
            !relation.inverse.is_empty() && relation.target.is_some()
        })?;
        let relation = self.schema.relation(at);
        let value = self.made_name(relation.target?, rng)?;
        let named = self.name_in_text(relation.target?, &value);
        let text = fill(rng.pick(&relation.inverse)?, |slot| (slot == "v").then(|| named.clone()));
        let (kind, noun) = (self.schema.types[at.kind].noun.clone(), relation.noun.clone());
        let asks = Asks::Owner { kind, noun: noun.clone(), value: value.clone() };
        Some(missing(sentence_case(text), Why::Owner, asks, Vec::new(), value, noun))
    }
}

/// Everyday questions about everyday things.
fn everyday(rng: &mut Rng) -> Option<Question> {
    let thing = *rng.pick(&THINGS)?;
    let (text, noun) = if rng.chance(0.5) {
        let (frame, noun) = rng.pick(&PROPERTIES[..OF_THINGS])?;
        (fill(frame, |slot| (slot == "x").then(|| thing.to_owned())), (*noun).to_owned())
    } else {
        let noun = if rng.chance(0.6) { (*rng.pick(&EVERYDAY)?).to_owned() } else { NOUNS.draw(rng)? };
        (framed(&noun, thing, rng)?, noun)
    };
    let bare = ["a ", "an ", "the "].iter().find_map(|article| thing.strip_prefix(article)).unwrap_or(thing).to_owned();
    let asks = Asks::Value { start: bare.clone(), nouns: vec![noun.clone()] };
    Some(missing(sentence_case(text), Why::Entity, asks, Vec::new(), bare, noun))
}

fn framed(noun: &str, x: &str, rng: &mut Rng) -> Option<String> {
    Some(fill(rng.pick(&FRAMES)?, |slot| match slot {
        "r" => Some(noun.to_owned()),
        "a r" => Some(with_article(noun)),
        "x" => Some(x.to_owned()),
        _ => None,
    }))
}

fn no_question(base: &KnowledgeBase, rng: &mut Rng) -> Question {
    let title = base.entities.get(rng.below(base.entities.len())).map(|entity| entity.title.as_str());
    let (text, what) = idle(title, rng);
    finished(text, QuestionPlan::NoQuestion { what: what.to_owned() }, true)
}

fn missing(text: String, why: Why, asks: Asks, read: Vec<Read>, name: String, noun: String) -> Question {
    finished(text, QuestionPlan::Missing { why, asks, read, name, noun }, false)
}

fn finished(text: String, plan: QuestionPlan, by_text: bool) -> Question {
    let what = if by_text { text.clone() } else { format!("{plan:?}") };
    let id = format!("unanswerable-{:010x}", stable_hash(&what) >> 24);
    let text = text.replace("??", "?");
    Question {
        id,
        text,
        answer: String::new(),
        kind: Kind::Unanswerable,
        hops: 0,
        chain: Vec::new(),
        entities: Vec::new(),
        plan,
        written: None,
        spelt: Vec::new(),
        family: None,
    }
}

/// The text as some people type it: without a capital, without a question mark.
fn carelessly(text: String, rng: &mut Rng) -> String {
    let mut text = text;
    if rng.chance(0.12) {
        text = text.trim_end_matches(['?', '.']).to_owned();
    }
    if rng.chance(0.12)
        && let Some(first) = text.chars().next().filter(char::is_ascii)
        && text
            .split(' ')
            .next()
            .is_some_and(|word| ["What", "Which", "Who", "Where", "How", "When", "In", "Is", "Tell", "Does", "Do"].contains(&word))
    {
        text.replace_range(..1, &first.to_ascii_lowercase().to_string());
    }
    text
}

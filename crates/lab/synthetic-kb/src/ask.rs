//! Generation of questions about a knowledge base. Questions are seeded and unambiguous, and no
//! question contains its own answer.

use autoact_base::random::{Rng, stable_hash};

use crate::arithmetic::arithmetic;
use crate::base::{EntityId, Fact, KnowledgeBase};
use crate::phrase::{misspell, name, phrase, phrase_of_chain, question};
use crate::question::{Kind, Mix, Question, QuestionPlan};
use crate::schema::RelationRef;
use crate::split::Split;
use crate::text::{contains_words, fill, sentence_case, with_article};

/// Attempts before a kind of question is given up for this knowledge base.
const TRIES: usize = 40;
/// Probability that a yes/no question is about a chain of two relations.
const DEEP_CHECK: f64 = 0.4;
/// Probability that a comparison follows a relation first, where the schema has a wording for it.
const WHOSE: f64 = 0.3;

impl KnowledgeBase {
    /// A random question; `None` if the base has none of the kind that was drawn.
    pub fn question(&self, rng: &mut Rng, mix: &Mix, split: Split) -> Option<Question> {
        let weights = [
            mix.hops[0],
            mix.hops[1],
            mix.hops[2],
            mix.inverse,
            mix.comparison,
            mix.yes_no,
            mix.difference,
            mix.arithmetic,
            mix.unanswerable,
        ];
        let kind = rng.weighted(&weights)?;
        (0..TRIES).find_map(|_| match kind {
            0..=2 => self.ask_chain(kind + 1, mix, split, rng),
            3 => self.ask_inverse(rng),
            4 => self.ask_comparison(split, rng),
            6 => self.ask_difference(split, rng),
            7 => arithmetic(rng),
            8 => self.unanswerable(split, rng),
            _ => self.ask_yes_no(split, rng),
        })
    }

    /// The question about `chain`, starting from the entity `start`. `None` if a fact on the chain
    /// is unknown, or if the question would make no sense.
    pub fn question_of_chain(&self, start: EntityId, chain: &[RelationRef], misspelt: f64, rng: &mut Rng) -> Option<Question> {
        let (last, inner) = chain.split_last()?;
        let facts = self.follow(start, chain)?;
        let answer = facts.last()?.text.clone();
        let entities = self.path_of(start, &facts)?;
        let title = &self.entities[start].title;
        let written = if rng.chance(misspelt) { misspell(title, rng).filter(|text| self.find(text).is_none()) } else { None };
        let x = phrase_of_chain(self, inner, name(self, start, written.as_deref(), rng), rng);
        let text = sentence_case(question(self, *last, &x, !inner.is_empty(), rng));
        if contains_words(&text.to_lowercase(), &answer.to_lowercase()) {
            return None;
        }
        let plan = QuestionPlan::Follow { start: title.clone() };
        Some(self.finish(Kind::Hop, text, answer, chain, entities, plan, written))
    }

    /// A random relation that satisfies the condition `fits`.
    pub(crate) fn pick_relation(&self, rng: &mut Rng, fits: impl Fn(RelationRef) -> bool) -> Option<RelationRef> {
        let all: Vec<RelationRef> = self.schema.relations().filter(|at| fits(*at)).collect();
        rng.pick(&all).copied()
    }

    pub(crate) fn pick_entity(&self, kind: usize, rng: &mut Rng) -> Option<EntityId> {
        rng.pick(self.of_type(kind)).copied()
    }

    fn ask_chain(&self, hops: usize, mix: &Mix, split: Split, rng: &mut Rng) -> Option<Question> {
        let chain = rng.pick(self.schema.chains(hops, split))?;
        let start = self.pick_entity(chain.first()?.kind, rng)?;
        self.question_of_chain(start, chain, mix.misspelt, rng)
    }

    /// The titles of the pages on the chain, in order. `None` if the chain returns to an earlier
    /// title.
    pub(crate) fn path_of(&self, start: EntityId, facts: &[&Fact]) -> Option<Vec<String>> {
        let mut titles = vec![self.entities[start].title.clone()];
        for fact in facts {
            if titles.contains(&fact.text) {
                return None;
            }
            titles.push(fact.text.clone());
        }
        titles.pop();
        Some(titles)
    }

    fn ask_inverse(&self, rng: &mut Rng) -> Option<Question> {
        let asked = |at: RelationRef| {
            let relation = self.schema.relation(at);
            !relation.inverse.is_empty() || !relation.asked.inverse.is_empty()
        };
        let at = self.pick_relation(rng, asked)?;
        let entity = self.pick_entity(at.kind, rng)?;
        self.inverse_of(entity, at, rng)
    }

    /// An inverse question: `Which country has Lima as its capital?`. `None` if another entity of
    /// the type has the same value, because the answer would be ambiguous.
    pub fn inverse_of(&self, entity: EntityId, at: RelationRef, rng: &mut Rng) -> Option<Question> {
        let fact = self.fact(entity, at.relation)?;
        let others = self.of_type(at.kind).iter().filter(|other| self.fact(**other, at.relation).is_some_and(|f| f.text == fact.text));
        if others.count() != 1 {
            return None;
        }
        let relation = self.schema.relation(at);
        let template = rng.pick(if relation.inverse.is_empty() { &relation.asked.inverse } else { &relation.inverse })?;
        let value = relation.target.map_or(fact.text.clone(), |kind| self.name_in_text(kind, &fact.text));
        let text = sentence_case(fill(template, |slot| (slot == "v").then(|| value.clone())));
        let answer = self.entities[entity].title.clone();
        if contains_words(&text.to_lowercase(), &answer.to_lowercase()) {
            return None;
        }
        let plan = QuestionPlan::Inverse { value: fact.text.clone() };
        Some(self.finish(Kind::Inverse, text, answer.clone(), &[at], vec![answer], plan, None))
    }

    fn ask_comparison(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        let last = self.pick_relation(rng, |at| self.schema.relation(at).compare.is_some())?;
        let more = rng.chance(0.5);
        let whose = self.schema.relation(last).compare.as_ref()?.whose.is_some();
        let mut chain = vec![last];
        if whose && rng.chance(WHOSE) {
            let first = self.pick_relation(rng, |at| self.schema.relation(at).target == Some(last.kind))?;
            if first != last {
                chain.insert(0, first);
            }
        }
        if !split.allows(&format!("compare:{}:{more}", self.schema.chain_key(&chain))) {
            return None;
        }
        let (a, b) = (self.pick_entity(chain[0].kind, rng)?, self.pick_entity(chain[0].kind, rng)?);
        self.comparison_of(a, b, &chain, more, rng)
    }

    fn comparison_of(&self, a: EntityId, b: EntityId, chain: &[RelationRef], more: bool, rng: &mut Rng) -> Option<Question> {
        let (facts_a, facts_b) = (self.follow(a, chain)?, self.follow(b, chain)?);
        let (value_a, value_b) = (facts_a.last()?.number?, facts_b.last()?.number?);
        if a == b || value_a == value_b {
            return None;
        }
        let compare = self.schema.relation(*chain.last()?).compare.as_ref()?;
        let word = if more { &compare.more } else { &compare.less };
        let slot = |slot: &str| match slot {
            "a" => Some(self.named(a)),
            "b" => Some(self.named(b)),
            "c" => Some(word.clone()),
            _ => None,
        };
        let text = match chain {
            [_] => fill(rng.pick(&compare.which)?, slot),
            [first, ..] => {
                let whose = fill(compare.whose.as_ref()?, slot);
                fill(&format!("Whose {} {whose}, {{a}} or {{b}}?", self.schema.relation(*first).noun), slot)
            }
            [] => return None,
        };
        let winner = if (value_a > value_b) == more { a } else { b };
        let entities = self.path_of(a, &facts_a)?.into_iter().chain(self.path_of(b, &facts_b)?).collect();
        let plan = QuestionPlan::Compare { a: self.entities[a].title.clone(), b: self.entities[b].title.clone(), more };
        Some(self.finish(Kind::Comparison, sentence_case(text), self.entities[winner].title.clone(), chain, entities, plan, None))
    }

    fn ask_yes_no(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        let truth = rng.chance(0.5);
        match rng.below(4) {
            0 => self.ask_is_more(truth, split, rng),
            1 => self.ask_is_same(truth, split, rng),
            _ => self.ask_is_value(truth, split, rng),
        }
    }

    fn ask_is_more(&self, truth: bool, split: Split, rng: &mut Rng) -> Option<Question> {
        let at = self.pick_relation(rng, |at| self.schema.relation(at).compare.is_some())?;
        let more = rng.chance(0.5);
        if !split.allows(&format!("than:{}:{more}", self.schema.path(at))) {
            return None;
        }
        let (a, b) = (self.pick_entity(at.kind, rng)?, self.pick_entity(at.kind, rng)?);
        let (value_a, value_b) = (self.fact(a, at.relation)?.number?, self.fact(b, at.relation)?.number?);
        // as many yes as no: the order of the pair decides the answer
        let (a, b) = if ((value_a > value_b) == more) == truth { (a, b) } else { (b, a) };
        if a == b || value_a == value_b {
            return None;
        }
        let compare = self.schema.relation(at).compare.as_ref()?;
        let text = fill(rng.pick(&compare.than)?, |slot| match slot {
            "a" => Some(self.named(a)),
            "b" => Some(self.named(b)),
            "c" => Some(if more { compare.more.clone() } else { compare.less.clone() }),
            _ => None,
        });
        let titles = vec![self.entities[a].title.clone(), self.entities[b].title.clone()];
        let plan = QuestionPlan::IsMore { a: titles[0].clone(), b: titles[1].clone(), more };
        Some(self.finish(Kind::YesNo, sentence_case(text), yes_no(truth), &[at], titles, plan, None))
    }

    fn ask_is_same(&self, truth: bool, split: Split, rng: &mut Rng) -> Option<Question> {
        let shareable = |at: RelationRef| {
            let relation = self.schema.relation(at);
            !relation.unique
                && !matches!(relation.range.as_str(), "number" | "year")
                && (!relation.same.is_empty() || (relation.generic && relation.inverse.is_empty()))
        };
        let at = self.pick_relation(rng, shareable)?;
        if !split.allows(&format!("same:{}", self.schema.path(at))) {
            return None;
        }
        let a = self.pick_entity(at.kind, rng)?;
        let value = &self.fact(a, at.relation)?.text;
        let fits = |b: &EntityId| *b != a && self.fact(*b, at.relation).is_some_and(|fact| (fact.text == *value) == truth);
        let others: Vec<EntityId> = self.of_type(at.kind).iter().copied().filter(fits).collect();
        let b = *rng.pick(&others)?;
        let relation = self.schema.relation(at);
        let pool = if relation.same.is_empty() { &self.schema.generic.same } else { &relation.same };
        let text = fill(rng.pick(pool)?, |slot| match slot {
            "a" => Some(self.named(a)),
            "b" => Some(self.named(b)),
            "r" => Some(relation.noun.clone()),
            _ => None,
        });
        let titles = vec![self.entities[a].title.clone(), self.entities[b].title.clone()];
        let plan = QuestionPlan::IsSame { a: titles[0].clone(), b: titles[1].clone() };
        Some(self.finish(Kind::YesNo, sentence_case(text), yes_no(truth), &[at], titles, plan, None))
    }

    fn ask_is_value(&self, truth: bool, split: Split, rng: &mut Rng) -> Option<Question> {
        let hops = if rng.chance(DEEP_CHECK) { 2 } else { 1 };
        let chain: &[RelationRef] = rng.pick(self.schema.chains(hops, split))?;
        let (last, inner) = chain.split_last()?;
        let relation = self.schema.relation(*last);
        if hops == 1 && !split.allows(&format!("check:{}", self.schema.path(*last))) {
            return None;
        }
        let start = self.pick_entity(chain.first()?.kind, rng)?;
        let facts = self.follow(start, chain)?;
        let entities = self.path_of(start, &facts)?;
        let value = facts.last()?;
        let claimed = if truth { value } else { self.fact(self.pick_entity(last.kind, rng)?, last.relation)? };
        // a claim that names an intermediate entity of the chain would be a trick question
        if (claimed.text == value.text) != truth || entities.contains(&claimed.text) {
            return None;
        }
        let x = phrase_of_chain(self, inner, name(self, start, None, rng), rng);
        let claim = relation.target.map_or(claimed.text.clone(), |kind| self.name_in_text(kind, &claimed.text));
        let template = rng.pick(&relation.checks).filter(|_| !relation.generic || !rng.chance(self.schema.generic.rate));
        let text = match template {
            Some(template) => fill(template, |slot| match slot {
                "v" => Some(claim.clone()),
                "a v" => Some(with_article(&claim)),
                "x" => Some(x.clone()),
                _ => None,
            }),
            None => {
                let phrase = phrase(self, *last, &x, !inner.is_empty(), rng);
                let generic = rng.pick(&self.schema.generic.checks).map_or("Is {v} {p}?", String::as_str);
                fill(generic, |slot| match slot {
                    "v" => Some(claim.clone()),
                    "p" => Some(phrase.clone()),
                    _ => None,
                })
            }
        };
        let plan = QuestionPlan::IsValue { start: self.entities[start].title.clone(), claim: claimed.text.clone() };
        Some(self.finish(Kind::YesNo, sentence_case(text), yes_no(truth), chain, entities, plan, None))
    }

    #[allow(clippy::too_many_arguments)] // the fields of a question, put together in one place
    pub(crate) fn finish(
        &self,
        kind: Kind,
        text: String,
        answer: String,
        chain: &[RelationRef],
        entities: Vec<String>,
        plan: QuestionPlan,
        written: Option<String>,
    ) -> Question {
        let chain: Vec<String> = chain.iter().map(|at| self.schema.path(*at)).collect();
        // a title may itself end in a question mark
        let text = text.replace("??", "?");
        let what = format!("{kind:?} {chain:?} {plan:?}");
        let (hops, spelt) = (chain.len(), Vec::new());
        let mut question = Question { id: String::new(), text, answer, kind, hops, chain, entities, plan, written, spelt, family: None };
        question.id = format!("{}-{:010x}", question.label(), stable_hash(&what) >> 24);
        question
    }
}

fn yes_no(truth: bool) -> String {
    if truth { "yes".to_owned() } else { "no".to_owned() }
}

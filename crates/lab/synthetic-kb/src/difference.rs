//! Questions for the difference of two numbers: `How much longer is the Loire than the Rhine?`,
//! `How many years did Mozart live?`.

use autoact_base::random::Rng;

use crate::base::{EntityId, Fact, KnowledgeBase};
use crate::question::{Kind, Question, QuestionPlan};
use crate::schema::{Compare, Relation, RelationRef, Schema};
use crate::split::Split;
use crate::text::{contains_words, fill, sentence_case};

/// Fraction of differences that are between two facts of one entity, where the schema has any.
const AGES: f64 = 0.45;
/// Fraction of these that are between a person's year and that of a work.
const AGES_AT: f64 = 0.5;
/// Fraction of these that do not name the person.
const UNNAMED: f64 = 0.3;

/// The two numbers of a difference, the larger one first, and the answer.
#[derive(Debug, Clone)]
pub(crate) struct Gap<'a> {
    /// The facts in the order of the question.
    pub(crate) facts: [&'a Fact; 2],
    /// Whether the second is taken from the first.
    pub(crate) more: bool,
    /// The difference with its unit.
    pub(crate) answer: String,
}

impl<'a> Gap<'a> {
    /// The minuend and the subtrahend.
    pub(crate) fn terms(&self) -> [&'a Fact; 2] {
        if self.more { self.facts } else { [self.facts[1], self.facts[0]] }
    }

    /// The difference of two facts. `None` unless it is a positive whole number.
    fn of(first: &'a Fact, second: &'a Fact, more: bool) -> Option<Gap<'a>> {
        let (x, y) = (first.number?, second.number?);
        let (from, take) = if more { (x, y) } else { (y, x) };
        if from <= take || x.fract() != 0.0 || y.fract() != 0.0 {
            return None;
        }
        let unit = first.text.split_once(' ').map_or(String::new(), |(_, unit)| format!(" {unit}"));
        Some(Gap { facts: [first, second], more, answer: format!("{}{unit}", from - take) })
    }
}

impl KnowledgeBase {
    /// The numbers and the answer of a difference. `None` if a fact is unknown, or if there is no
    /// positive difference.
    pub(crate) fn gap(&self, question: &Question) -> Option<Gap<'_>> {
        let QuestionPlan::Difference { a, b, more, minus } = &question.plan else { return None };
        let first = relations(&self.schema, &question.chain)?;
        let second = relations(&self.schema, if minus.is_empty() { &question.chain } else { minus })?;
        let fact = |title: &str, chain: &[RelationRef]| self.follow(self.find(title)?, chain)?.last().copied();
        Gap::of(fact(a, &first)?, fact(b, &second)?, *more)
    }

    pub(crate) fn ask_difference(&self, split: Split, rng: &mut Rng) -> Option<Question> {
        if rng.chance(AGES)
            && let Some(question) = if rng.chance(AGES_AT) { self.ask_age_at(rng) } else { self.ask_age(rng) }
        {
            return Some(question);
        }
        let at = self.pick_relation(rng, |at| !forms(self.schema.relation(at)).is_empty())?;
        let more = rng.chance(0.5);
        if !split.allows(&format!("difference:{}:{more}", self.schema.path(at))) {
            return None;
        }
        let (a, b) = (self.pick_entity(at.kind, rng)?, self.pick_entity(at.kind, rng)?);
        // the larger one is first in `longer than`, the smaller one in `shorter than`
        let (x, y) = (self.fact(a, at.relation)?.number?, self.fact(b, at.relation)?.number?);
        let (a, b) = if (x > y) == more { (a, b) } else { (b, a) };
        let names = [self.named(a), self.named(b)];
        let text = difference_text(rng.pick(&forms(self.schema.relation(at)))?, more, &names[0], &names[1]);
        let plan = QuestionPlan::Difference { a: self.title(a), b: self.title(b), more, minus: Vec::new() };
        self.finish_difference(text, at, vec![self.title(a), self.title(b)], plan)
    }

    /// `How many years did Mozart live?`
    fn ask_age(&self, rng: &mut Rng) -> Option<Question> {
        let at = self.pick_relation(rng, |at| !self.schema.relation(at).ages.is_empty())?;
        let relation = self.schema.relation(at);
        let base = self.schema.types[at.kind].relation(relation.after.as_deref()?)?;
        let entity = self.pick_entity(at.kind, rng)?;
        let template = rng.pick(&relation.ages)?;
        let text = fill(template, |slot| (slot == "x").then(|| self.named(entity)));
        let minus = vec![self.schema.path(RelationRef { kind: at.kind, relation: base })];
        let plan = QuestionPlan::Difference { a: self.title(entity), b: self.title(entity), more: true, minus };
        self.finish_difference(text, at, vec![self.title(entity)], plan)
    }

    /// `How old was Tolkien when The Hobbit came out?`
    fn ask_age_at(&self, rng: &mut Rng) -> Option<Question> {
        let age = rng.pick(&self.schema.ages_at)?;
        let entity = self.pick_entity(age.year.kind, rng)?;
        let person = self.fact(entity, age.who.relation)?.target?;
        let unnamed = !age.unnamed.is_empty() && rng.chance(UNNAMED);
        let template = rng.pick(if unnamed { &age.unnamed } else { &age.questions })?;
        let text = fill(template, |slot| match slot {
            "x" => Some(self.named(entity)),
            "y" => Some(self.named(person)),
            _ => None,
        });
        let born = self.schema.path(age.born);
        let (a, y) = (self.title(entity), self.title(person));
        let (b, minus) = if unnamed { (a.clone(), vec![self.schema.path(age.who), born]) } else { (y.clone(), vec![born]) };
        let plan = QuestionPlan::Difference { a: a.clone(), b, more: true, minus };
        self.finish_difference(text, age.year, vec![a, y], plan)
    }

    fn title(&self, entity: EntityId) -> String {
        self.entities[entity].title.clone()
    }

    fn finish_difference(&self, text: String, at: RelationRef, entities: Vec<String>, plan: QuestionPlan) -> Option<Question> {
        let mut question = self.finish(Kind::Difference, sentence_case(text), String::new(), &[at], entities, plan, None);
        question.answer = self.gap(&question)?.answer;
        let named = contains_words(&question.text.to_lowercase(), &question.answer.to_lowercase());
        (!named).then_some(question)
    }
}

/// The relations at these paths.
pub(crate) fn relations(schema: &Schema, paths: &[String]) -> Option<Vec<RelationRef>> {
    paths.iter().map(|path| schema.relation_at(path)).collect()
}

/// A template of a question for a difference, and the comparing words that fit it.
#[derive(Debug, Clone)]
pub(crate) struct Form<'a> {
    /// `How much {c} is {a} than {b}?`
    pub(crate) template: String,
    /// The words.
    pub(crate) compare: &'a Compare,
}

/// The wordings of questions for differences, made from the relation's yes/no comparisons.
pub(crate) fn forms(relation: &Relation) -> Vec<Form<'_>> {
    let whole = relation.decimals == 0;
    let all = relation.compares().filter(|_| whole);
    all.flat_map(|compare| compare.than.iter().filter_map(move |than| Some(Form { template: how_much(than, relation)?, compare })))
        .collect()
}

/// `Is {a} {c} than {b}?` as `How much {c} is {a} than {b}?`.
fn how_much(than: &str, relation: &Relation) -> Option<String> {
    let (verb, rest) = than.split_once(" {a} ")?;
    let middle = rest.strip_suffix("{c} than {b}?");
    let verb = verb.to_lowercase();
    match middle {
        Some("") if relation.range == "number" => Some(format!("How much {{c}} {verb} {{a}} than {{b}}?")),
        Some(middle) if relation.range == "year" => Some(format!("How many years {{c}} {verb} {{a}} {middle}than {{b}}?")),
        Some(_) => None,
        // `Does {a} have {c} moons than {b}?`
        None => {
            let counted = rest.strip_prefix("have {c} ")?.strip_suffix(" than {b}?")?;
            (relation.unit.is_empty() && relation.range == "number")
                .then(|| format!("How many {{c}} {counted} {verb} {{a}} have than {{b}}?"))
        }
    }
}

/// The question in this wording.
pub(crate) fn difference_text(form: &Form<'_>, more: bool, a: &str, b: &str) -> String {
    fill(&form.template, |slot| match slot {
        "a" => Some(a.to_owned()),
        "b" => Some(b.to_owned()),
        "c" => Some(if more { form.compare.more.clone() } else { form.compare.less.clone() }),
        _ => None,
    })
}

//! Gold reflections. Each restates what the question asks, from the question alone; then what the
//! observations show of exactly that; then what is wrong with the given answer, if anything. So a
//! judge compares what was answered with what was asked, not only with what was read.

use autoact_score::exact_match;
use autoact_trajectory::{NOT_FOUND, REPEATED_NOTE, Reflection, Step, Trajectory, Verdict};

use crate::base::{EntityId, Fact, KnowledgeBase};
use crate::difference::relations;
use crate::question::{Asks, Kind, Question, QuestionPlan, Read, Why};
use crate::schema::RelationRef;
use crate::solve::{
    CALCULATE, LOOKUP, NO_PAGE, NO_SENTENCE, RETRIEVE, SEARCH, SolveError, Solver, as_written, digits, meant, misspelt, resolve, shows,
    told_as,
};
use crate::text::{contains_words, say, with_article};

impl Solver<'_> {
    /// The reflection on a finished trajectory: right if its answer is the question's answer, or if
    /// it says that there is none and there is none; else wrong. The reason comes first. It uses
    /// only what the observations show; if they show too little, it says what is missing.
    pub fn reflect(&self, question: &Question, trajectory: &Trajectory) -> Result<Reflection, SolveError> {
        let last = trajectory.steps().next_back();
        let given = last.and_then(|step| step.params.clone()).unwrap_or_default();
        let denied = last.is_some_and(|step| step.tool == NOT_FOUND);
        let right = if question.is_answerable() { !denied && exact_match(&given, &question.answer) } else { denied };
        let judge = Judge { solver: self, trajectory, question, chain: resolve(self.base, question)?, written: misspelt(question) };
        let style = self.style;
        let mut told = judge.evidence()?;
        match (right, denied) {
            (true, true) => told.push(style.conceded.to_owned()),
            (true, false) => told.push(say(style.agrees, &[("v", &given)])),
            (false, true) => told.push(style.denied.to_owned()),
            (false, false) => {
                if judge.looped() {
                    told.push(style.looped.to_owned());
                }
                told.extend(judge.objection(&given));
                told.push(say(style.disagrees, &[("v", &given)]));
            }
        }
        // a sentence may follow twice, as where a fact is both evidence and objection
        let mut thought: Vec<String> = Vec::new();
        told.into_iter().for_each(|sentence| {
            if !thought.contains(&sentence) {
                thought.push(sentence);
            }
        });
        Ok(Reflection::new(thought.join(" "), if right { Verdict::Right } else { Verdict::Wrong }))
    }
}

struct Judge<'a> {
    solver: &'a Solver<'a>,
    trajectory: &'a Trajectory,
    question: &'a Question,
    chain: Vec<RelationRef>,
    /// Titles and values, and how the question writes them.
    written: Vec<(String, String)>,
}

/// A walk along a chain as far as the observations show it.
struct Walked<'a> {
    /// What they show, in sentences; the last says what they do not show, if the walk broke off.
    told: Vec<String>,
    /// The last fact, if all of the chain is shown.
    end: Option<&'a Fact>,
}

impl<'a> Judge<'a> {
    fn base(&self) -> &'a KnowledgeBase {
        self.solver.base
    }

    fn entity(&self, title: &str) -> Result<EntityId, SolveError> {
        self.base().find(title).ok_or_else(|| SolveError::Unknown(title.to_owned()))
    }

    /// A name or value as the question writes it.
    fn asked<'t>(&'t self, text: &'t str) -> &'t str {
        as_written(&self.written, text)
    }

    fn nouns(&self) -> Vec<&str> {
        self.chain.iter().map(|link| self.base().schema().relation(*link).noun.as_str()).collect()
    }

    /// `the capital of the country of Loire`
    fn phrase<'n>(&self, start: &str, nouns: impl IntoIterator<Item = &'n str>) -> String {
        nouns.into_iter().fold(start.to_owned(), |inner, noun| say(self.solver.style.of, &[("r", noun), ("e", &inner)]))
    }

    fn wants(&self, start: &str) -> String {
        say(self.solver.style.wants, &[("p", &self.phrase(self.asked(start), self.nouns()))])
    }

    fn compares(&self, a: &str, b: &str) -> String {
        let (p, q) = (self.phrase(self.asked(a), self.nouns()), self.phrase(self.asked(b), self.nouns()));
        say(self.solver.style.compares, &[("p", &p), ("q", &q)])
    }

    /// What is asked, and what the observations show of it.
    fn evidence(&self) -> Result<Vec<String>, SolveError> {
        let style = self.solver.style;
        match &self.question.plan {
            QuestionPlan::Follow { start } => {
                let mut told = vec![self.wants(start)];
                told.extend(self.walk(start)?.told);
                Ok(told)
            }
            QuestionPlan::IsValue { start, claim } => {
                let mut told = vec![self.wants(start)];
                let walked = self.walk(start)?;
                told.extend(walked.told);
                if let Some(fact) = walked.end {
                    told.push(say(style.claim, &[("v", self.asked(claim))]));
                    told.push(if fact.text == *claim { style.same } else { style.different }.to_owned());
                }
                Ok(told)
            }
            QuestionPlan::IsSame { a, b } => {
                self.both(a, b, |first, second| vec![if first.text == second.text { style.same } else { style.different }.to_owned()])
            }
            QuestionPlan::IsMore { a, b, more } | QuestionPlan::Compare { a, b, more } => self.both(a, b, |first, second| {
                let holds = if *more { first.number > second.number } else { first.number < second.number };
                let (op, sign) = if *more { ("more", ">") } else { ("less", "<") };
                let slots = [("a", digits(first)), ("b", digits(second)), ("op", op), ("sign", sign)];
                let outcome = say(if holds { style.holds } else { style.fails }, &slots);
                vec![outcome, say(style.must, &[("v", &self.question.answer)])]
            }),
            QuestionPlan::Difference { a, b, minus, .. } => self.difference(a, b, minus),
            QuestionPlan::Inverse { value } => self.owner(self.asked(value)),
            QuestionPlan::Calculate { expression } => {
                let wants = say(style.wants, &[("p", expression)]);
                let computed = self.trajectory.steps().any(|step| step.tool == CALCULATE && step.params.as_ref() == Some(expression));
                let known = say(style.must, &[("v", &self.question.answer)]);
                Ok(vec![wants, if computed { known } else { say(style.uncomputed, &[("a", expression)]) }])
            }
            QuestionPlan::Missing { why, asks, read, name, noun } => self.missing(*why, asks, read, name, noun),
            QuestionPlan::NoQuestion { what } => Ok(vec![say(style.nothing, &[("w", what)])]),
        }
    }

    fn both(&self, a: &str, b: &str, say: impl Fn(&Fact, &Fact) -> Vec<String>) -> Result<Vec<String>, SolveError> {
        let mut told = vec![self.compares(a, b)];
        let (first, second) = (self.walk(a)?, self.walk(b)?);
        told.extend(first.told);
        told.extend(second.told);
        if let (Some(first), Some(second)) = (first.end, second.end) {
            told.extend(say(first, second));
        }
        Ok(told)
    }

    /// Two facts, and what one leaves of the other.
    fn difference(&self, a: &str, b: &str, minus: &[String]) -> Result<Vec<String>, SolveError> {
        let style = self.solver.style;
        let unknown = || SolveError::Unknown(self.question.text.clone());
        let schema = self.base().schema();
        let other = relations(schema, minus).ok_or_else(unknown)?;
        let second = if other.is_empty() { self.chain.clone() } else { other };
        let nouns = |chain: &[RelationRef]| chain.iter().map(|link| schema.relation(*link).noun.as_str()).collect::<Vec<_>>();
        let (p, q) = (self.phrase(self.asked(a), self.nouns()), self.phrase(self.asked(b), nouns(&second)));
        let mut told = vec![say(style.compares, &[("p", &p), ("q", &q)])];
        let (first, last) = (self.walk(a)?, self.walk_along(b, &second)?);
        let shown = first.end.is_some() && last.end.is_some();
        told.extend(first.told.into_iter().chain(last.told));
        if shown {
            let gap = self.base().gap(self.question).ok_or_else(unknown)?;
            let [from, take] = gap.terms().map(|fact| fact.text.as_str());
            told.push(say(style.gap, &[("a", from), ("b", take), ("v", &gap.answer)]));
            told.push(say(style.must, &[("v", &gap.answer)]));
        }
        Ok(told)
    }

    fn owner(&self, value: &str) -> Result<Vec<String>, SolveError> {
        let style = self.solver.style;
        let link = *self.chain.first().ok_or_else(|| SolveError::Unknown("chain".to_owned()))?;
        let schema = self.base().schema();
        let (noun, kind) = (schema.relation(link).noun.as_str(), schema.types[link.kind].noun.as_str());
        let answer = self.question.answer.as_str();
        let slots = [("t", kind), ("r", noun), ("v", value), ("e", answer)];
        let sentence = self.base().sentence(self.entity(answer)?, link.relation).unwrap_or_default();
        if shows(self.trajectory, answer, sentence, &self.written) {
            return Ok(vec![say(style.sought, &slots)]);
        }
        Ok(vec![say(style.wanted, &slots), say(style.unsupported, &[("v", value)])])
    }

    /// A question without an answer: what it asks, what was read on the way, and whether what is
    /// missing was looked for.
    fn missing(&self, why: Why, asks: &Asks, read: &[Read], name: &str, noun: &str) -> Result<Vec<String>, SolveError> {
        let style = self.solver.style;
        let nouns = |nouns: &[String], start: &str| self.phrase(self.asked(start), nouns.iter().map(String::as_str));
        let mut told = vec![match asks {
            Asks::Value { start, nouns: all } => say(style.wants, &[("p", &nouns(all, start))]),
            Asks::Both { a, b, nouns: all } => say(style.compares, &[("p", &nouns(all, a)), ("q", &nouns(all, b))]),
            Asks::Owner { kind, noun, value } => say(style.wanted, &[("t", kind), ("r", noun), ("v", self.asked(value))]),
        }];
        let called = told_as(self.trajectory, &self.written, name);
        let slots = [("r", noun), ("e", called), ("w", called)];
        if let Asks::Owner { kind, noun, value } = asks {
            let slots = [("t", kind.as_str()), ("r", noun.as_str()), ("v", self.asked(value))];
            let sought = self.trajectory.steps().any(|step| step.tool == SEARCH);
            told.push(if sought { say(style.unowned, &slots) } else { say(style.unsupported, &slots) });
            return Ok(told);
        }
        for Read { title, path } in read {
            let link = self.base().schema().relation_at(path).ok_or_else(|| SolveError::Unknown(path.clone()))?;
            let entity = self.entity(title)?;
            let (text, shown) = self.fact(entity, link)?;
            told.push(text);
            if !shown {
                return Ok(told);
            }
        }
        let seen = |step: &Step, start: &str| {
            step.observation.as_deref().is_some_and(|text| text.trim_start_matches(REPEATED_NOTE).trim_start().starts_with(start))
        };
        let no_page = self.base().find(name).is_none()
            && self.trajectory.steps().any(|step| {
                step.params.as_deref().is_some_and(|params| meant(&self.written, params) == name)
                    && step.tool == RETRIEVE
                    && seen(step, NO_PAGE)
            });
        let no_sentence = format!("{NO_SENTENCE} {name} contains");
        let looked = |step: &Step| step.tool == LOOKUP && step.params.as_deref() == Some(noun) && seen(step, &no_sentence);
        if no_page {
            told.push(say(style.unknown, &slots));
            told.push(say(style.lacking, &slots));
        } else if why != Why::Entity && self.trajectory.steps().any(looked) {
            told.push(say(style.lacking, &slots));
        } else {
            told.push(say(style.unread, &slots));
        }
        Ok(told)
    }

    /// A fact as the history shows it, or that it does not.
    fn fact(&self, entity: EntityId, link: RelationRef) -> Result<(String, bool), SolveError> {
        let base = self.base();
        let title = base.entities()[entity].title.as_str();
        let noun = base.schema().relation(link).noun.as_str();
        let unseen = || SolveError::Unseen { relation: noun.to_owned(), title: title.to_owned() };
        let fact = base.fact(entity, link.relation).ok_or_else(unseen)?;
        let sentence = base.sentence(entity, link.relation).ok_or_else(unseen)?;
        let shown = shows(self.trajectory, title, sentence, &self.written);
        let template = if shown { self.solver.style.found } else { self.solver.style.unread };
        let called = if shown { title } else { told_as(self.trajectory, &self.written, title) };
        Ok((say(template, &[("r", noun), ("e", called), ("v", &fact.text)]), shown))
    }

    fn walk(&self, start: &str) -> Result<Walked<'a>, SolveError> {
        self.walk_along(start, &self.chain)
    }

    fn walk_along(&self, start: &str, chain: &[RelationRef]) -> Result<Walked<'a>, SolveError> {
        let base = self.base();
        let mut at = self.entity(start)?;
        let mut walked = Walked { told: Vec::new(), end: None };
        for (index, link) in chain.iter().enumerate() {
            let (text, shown) = self.fact(at, *link)?;
            walked.told.push(text);
            if !shown {
                return Ok(walked);
            }
            let fact = base.fact(at, link.relation).ok_or_else(|| SolveError::Unknown("fact".to_owned()))?;
            if index + 1 < chain.len() {
                at = fact.target.ok_or_else(|| SolveError::Unknown(fact.text.clone()))?;
            } else {
                walked.end = Some(fact);
            }
        }
        Ok(walked)
    }

    /// Whether the last two actions before the answer are the same.
    fn looped(&self) -> bool {
        let mut actions = self.trajectory.steps().rev().skip(1).filter_map(Step::action);
        actions.next().is_some_and(|last| actions.next() == Some(last))
    }

    /// What is wrong with an answer, as far as it can be told from the answer itself: it is no word,
    /// of another kind, the value of another fact that was read, or from no observation.
    fn objection(&self, given: &str) -> Vec<String> {
        let style = self.solver.style;
        let kind = self.expected().filter(|expected| !expected.fits(given));
        let shown = self.trajectory.steps().filter_map(|step| step.observation.as_deref()).any(|text| contains_words(text, given));
        let asked = contains_words(&self.question.text, self.asked(given));
        let decides = matches!(given, "yes" | "no");
        if !decides && !shown && !asked && !self.known(given) {
            return vec![say(style.garbled, &[("v", given)])];
        }
        let mut told = Vec::new();
        if let Some((noun, title)) = self.read_as(given) {
            told.push(say(style.found, &[("r", noun), ("e", title), ("v", given)]));
        }
        if let Some(expected) = kind {
            told.push(say(style.mistyped, &[("v", given), ("t", &expected.text())]));
        } else if told.is_empty() && !decides && !shown && !asked {
            told.push(say(style.unsupported, &[("v", given)]));
        }
        told
    }

    /// Whether an answer is a name, a value or a number of the knowledge base.
    fn known(&self, given: &str) -> bool {
        let number = given.chars().next().is_some_and(|c| c.is_ascii_digit() || c == '-');
        let value = |fact: &Option<Fact>| fact.as_ref().is_some_and(|fact| fact.text == given);
        number || self.base().find(given).is_some() || self.base().entities().iter().any(|entity| entity.facts.iter().any(value))
    }

    /// The fact whose value was answered, if a page that was opened states it and it is not the one
    /// that was asked for.
    fn read_as(&self, given: &str) -> Option<(&'a str, &'a str)> {
        let base = self.base();
        let opened = self.trajectory.steps().filter(|step| step.tool == RETRIEVE);
        let opened = opened.filter_map(|step| base.find(meant(&self.written, step.params.as_deref()?)));
        let opened: Vec<EntityId> = opened.collect();
        opened.into_iter().rev().find_map(|entity| {
            let title = base.entities()[entity].title.as_str();
            let fits = |relation: &usize| {
                let stated =
                    base.sentence(entity, *relation).is_some_and(|sentence| shows(self.trajectory, title, sentence, &self.written));
                stated && base.fact(entity, *relation).is_some_and(|fact| fact.text == given)
            };
            let relation = (0..base.entities()[entity].facts.len()).find(fits)?;
            let noun = base.schema().relation(RelationRef { kind: base.entities()[entity].kind, relation }).noun.as_str();
            Some((noun, title))
        })
    }

    /// The kind of answer that the question asks for.
    fn expected(&self) -> Option<Expected<'a>> {
        let schema = self.base().schema();
        let last = self.chain.last().map(|link| schema.relation(*link));
        match (&self.question.plan, self.question.kind) {
            (_, Kind::YesNo) => Some(Expected::Decision),
            (QuestionPlan::Follow { .. }, _) => {
                let relation = last?;
                let number = matches!(relation.range.as_str(), "number" | "year");
                Some(if number { Expected::Number(&relation.noun) } else { Expected::Name(&relation.noun) })
            }
            (QuestionPlan::Compare { .. } | QuestionPlan::Inverse { .. }, _) => {
                Some(Expected::Name(&schema.types[self.chain.first()?.kind].noun))
            }
            (QuestionPlan::Difference { .. }, _) => Some(Expected::Number("number")),
            (QuestionPlan::Calculate { expression }, _) if !expression.contains(['<', '>']) => Some(Expected::Number("number")),
            (QuestionPlan::Calculate { .. }, _) => Some(Expected::Decision),
            _ => None,
        }
    }
}

enum Expected<'a> {
    Decision,
    Number(&'a str),
    Name(&'a str),
}

impl Expected<'_> {
    /// Whether an answer is of the kind, as far as its form tells.
    fn fits(&self, given: &str) -> bool {
        let decides = matches!(given, "yes" | "no");
        let number = given.split(' ').next().is_some_and(|word| word.parse::<f64>().is_ok());
        match self {
            Expected::Decision => decides,
            Expected::Number(_) => number,
            Expected::Name(_) => !decides && !number,
        }
    }

    fn text(&self) -> String {
        match self {
            Expected::Decision => "yes or no".to_owned(),
            Expected::Number(noun) | Expected::Name(noun) => with_article(noun),
        }
    }
}

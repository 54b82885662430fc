//! Gold reflections: the answer that the observations support, and whether the given answer
//! agrees with it.

use autoact_score::exact_match;
use autoact_trajectory::{FINISH, Reflection, Trajectory, Verdict};

use crate::base::{EntityId, Fact, KnowledgeBase};
use crate::question::{Question, QuestionPlan};
use crate::schema::RelationRef;
use crate::solve::{SolveError, Solver, as_written, digits, misspelt, resolve, shows};
use crate::text::fill;

impl Solver<'_> {
    /// The reflection on a finished trajectory: right if its answer is the question's answer, else
    /// wrong. The reason comes first. It uses only what the observations show; if they show too
    /// little, it says what is missing.
    pub fn reflect(&self, question: &Question, trajectory: &Trajectory) -> Result<Reflection, SolveError> {
        let given = trajectory.steps().rev().find(|step| step.tool == FINISH).and_then(|step| step.params.clone()).unwrap_or_default();
        let right = exact_match(&given, &question.answer);
        let judge = Judge { solver: self, trajectory, question, chain: resolve(self.base, question)?, written: misspelt(question) };
        let style = self.style;
        let thought = match judge.reason()? {
            Reason::Known(reason) => {
                let verdict = if right { style.agrees } else { style.disagrees };
                format!("{reason} {}", say(verdict, &[("v", &given)]))
            }
            Reason::Missing(reason) => reason,
        };
        Ok(Reflection::new(thought, if right { Verdict::Right } else { Verdict::Wrong }))
    }
}

enum Reason {
    Known(String),
    Missing(String),
}

struct Judge<'a> {
    solver: &'a Solver<'a>,
    trajectory: &'a Trajectory,
    question: &'a Question,
    chain: Vec<RelationRef>,
    /// Titles and values, and how the question writes them.
    written: Vec<(String, String)>,
}

/// The end of a chain as far as the observations show it.
struct End<'a> {
    title: &'a str,
    noun: &'a str,
    fact: &'a Fact,
}

impl<'a> Judge<'a> {
    fn base(&self) -> &'a KnowledgeBase {
        self.solver.base
    }

    fn entity(&self, title: &str) -> Result<EntityId, SolveError> {
        self.base().find(title).ok_or_else(|| SolveError::Unknown(title.to_owned()))
    }

    fn reason(&self) -> Result<Reason, SolveError> {
        let style = self.solver.style;
        match &self.question.plan {
            QuestionPlan::Follow { start } => Ok(match self.walk(start)? {
                Ok(end) => Reason::Known(asked(style.asked, &end)),
                Err(missing) => Reason::Missing(missing),
            }),
            QuestionPlan::IsValue { start, claim } => Ok(match self.walk(start)? {
                Ok(end) => {
                    let verdict = if end.fact.text == *claim { style.same } else { style.different };
                    Reason::Known(format!(
                        "{} {} {verdict}",
                        asked(style.asked, &end),
                        say(style.claim, &[("v", as_written(&self.written, claim))])
                    ))
                }
                Err(missing) => Reason::Missing(missing),
            }),
            QuestionPlan::IsSame { a, b } => self.both(a, b, |first, second| {
                let verdict = if first.fact.text == second.fact.text { style.same } else { style.different };
                format!("{} {} {verdict}", asked(style.found, first), asked(style.found, second))
            }),
            QuestionPlan::IsMore { a, b, more } | QuestionPlan::Compare { a, b, more } => self.both(a, b, |first, second| {
                let holds = if *more { first.fact.number > second.fact.number } else { first.fact.number < second.fact.number };
                let (op, sign) = if *more { ("more", ">") } else { ("less", "<") };
                let slots = [("a", digits(first.fact)), ("b", digits(second.fact)), ("op", op), ("sign", sign)];
                let outcome = say(if holds { style.holds } else { style.fails }, &slots);
                format!("{outcome} {}", say(style.must, &[("v", &self.question.answer)]))
            }),
            QuestionPlan::Difference { a, b, minus, .. } => {
                let unknown = || SolveError::Unknown(self.question.text.clone());
                let gap = self.base().gap(self.question).ok_or_else(unknown)?;
                let other = minus.as_ref().map(|path| self.base().schema().relation_at(path).ok_or_else(unknown)).transpose()?;
                let second = other.map_or(self.chain.clone(), |link| vec![link]);
                Ok(match (self.walk_along(a, &self.chain)?, self.walk_along(b, &second)?) {
                    (Err(missing), _) | (_, Err(missing)) => Reason::Missing(missing),
                    _ => {
                        let [from, take] = gap.terms().map(digits);
                        let slots = [("a", from), ("b", take), ("v", gap.answer.split(' ').next().unwrap_or_default())];
                        Reason::Known(format!("{} {}", say(style.gap, &slots), say(style.must, &[("v", &gap.answer)])))
                    }
                })
            }
            QuestionPlan::Inverse { value } => {
                let link = *self.chain.first().ok_or_else(|| SolveError::Unknown("chain".to_owned()))?;
                let schema = self.base().schema();
                let (noun, kind) = (&schema.relation(link).noun, &schema.types[link.kind].noun);
                let value = as_written(&self.written, value);
                let slots = [("t", kind.as_str()), ("r", noun.as_str()), ("v", value), ("e", self.question.answer.as_str())];
                Ok(Reason::Known(say(style.sought, &slots)))
            }
        }
    }

    fn both(&self, a: &str, b: &str, say: impl Fn(&End<'a>, &End<'a>) -> String) -> Result<Reason, SolveError> {
        Ok(match (self.walk(a)?, self.walk(b)?) {
            (Ok(first), Ok(second)) => Reason::Known(say(&first, &second)),
            (Err(missing), _) | (_, Err(missing)) => Reason::Missing(missing),
        })
    }

    /// The last fact of the chain, or a text that says which fact the history does not show.
    fn walk(&self, start: &str) -> Result<Result<End<'a>, String>, SolveError> {
        self.walk_along(start, &self.chain)
    }

    fn walk_along(&self, start: &str, chain: &[RelationRef]) -> Result<Result<End<'a>, String>, SolveError> {
        let base = self.base();
        let mut at = self.entity(start)?;
        let mut end = None;
        for (index, link) in chain.iter().enumerate() {
            let title = base.entities()[at].title.as_str();
            let noun = base.schema().relation(*link).noun.as_str();
            let unseen = || SolveError::Unseen { relation: noun.to_owned(), title: title.to_owned() };
            let fact = base.fact(at, link.relation).ok_or_else(unseen)?;
            let sentence = base.sentence(at, link.relation).ok_or_else(unseen)?;
            if !shows(self.trajectory, title, sentence, &self.written) {
                return Ok(Err(say(self.solver.style.early, &[("r", noun), ("e", title)])));
            }
            if index + 1 < chain.len() {
                at = fact.target.ok_or_else(|| SolveError::Unknown(fact.text.clone()))?;
            }
            end = Some(End { title, noun, fact });
        }
        end.map(Ok).ok_or_else(|| SolveError::Unknown("chain".to_owned()))
    }
}

fn asked(template: &str, end: &End<'_>) -> String {
    say(template, &[("r", end.noun), ("e", end.title), ("v", &end.fact.text)])
}

fn say(template: &str, values: &[(&str, &str)]) -> String {
    fill(template, |slot| values.iter().find(|(name, _)| *name == slot).map(|(_, value)| (*value).to_owned()))
}

//! Plausible wrong trajectories and their correction. Reflect-Agent learns from them to reject, and
//! Plan-Agent to recover.

use autoact_base::random::Rng;
use autoact_score::exact_match;
use autoact_trajectory::{FINISH, Step, Trajectory, Turn};

use crate::base::EntityId;
use crate::question::{Question, QuestionPlan};
use crate::schema::{RelationId, RelationRef};
use crate::solve::{CALCULATE, Environment, SEARCH, SolveError, Solver, Walk, as_written, digits, finish_step, misspelt, resolve};

/// How a trajectory was made wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// All facts were read, but the answer is another value of the last page.
    OtherValue,
    /// The answer is an intermediate value of the chain.
    EarlyStop,
    /// A relation other than the one asked for was followed, with real observations.
    WrongRelation,
    /// The other entity of a comparison, or the opposite of yes or no.
    Flipped,
    /// The numbers were compared with the opposite sign, or taken from each other in the wrong
    /// order, with a real observation.
    WrongSign,
    /// The answer is another page of the search results.
    OtherPage,
}

impl Solver<'_> {
    /// A wrong trajectory made from a correct one. `None` if the question does not allow the kind
    /// of fault that was drawn.
    pub fn spoil(&self, question: &Question, gold: &Trajectory, env: &mut dyn Environment, rng: &mut Rng) -> Option<(Trajectory, Fault)> {
        let chain = resolve(self.base, question).ok()?;
        let (trajectory, fault) = match &question.plan {
            QuestionPlan::Follow { start } => match rng.below(if chain.len() > 1 { 3 } else { 2 }) {
                0 => (self.other_value(start, &chain, gold, rng)?, Fault::OtherValue),
                1 => (self.wrong_relation(question, start, &chain, env, rng)?, Fault::WrongRelation),
                _ => (self.early_stop(start, &chain, gold, rng)?, Fault::EarlyStop),
            },
            QuestionPlan::Compare { a, b, more } | QuestionPlan::IsMore { a, b, more } => {
                if rng.chance(0.5) {
                    (self.wrong_sign(question, a, b, *more, gold, env)?, Fault::WrongSign)
                } else {
                    (flipped(question, gold)?, Fault::Flipped)
                }
            }
            QuestionPlan::IsValue { start, claim } if chain.len() > 1 && question.answer == "yes" && rng.chance(0.3) => {
                // the claim is compared with the value read so far, which is another one
                let mut spoilt = self.early_stop(start, &chain, gold, rng)?;
                if let Some(Turn::Step(step)) = spoilt.turns.last_mut() {
                    let answer =
                        format!("{} {}", say(self.style.claim, &[("v", as_written(&misspelt(question), claim))]), self.style.different);
                    let value = step.params.replace("no".to_owned()).unwrap_or_default();
                    step.thought = step.thought.replace(&say(self.style.answer, &[("v", &value)]), &answer);
                }
                (spoilt, Fault::EarlyStop)
            }
            QuestionPlan::IsValue { .. } | QuestionPlan::IsSame { .. } => (flipped(question, gold)?, Fault::Flipped),
            QuestionPlan::Difference { .. } => {
                let fault = if rng.chance(0.6) { Fault::WrongSign } else { Fault::OtherValue };
                (self.wrong_difference(question, gold, fault, env)?, fault)
            }
            QuestionPlan::Inverse { .. } => (self.other_page(question, gold, rng)?, Fault::OtherPage),
        };
        let answer = trajectory.steps().next_back()?.params.as_ref()?;
        (!exact_match(answer, &question.answer)).then_some((trajectory, fault))
    }

    /// A wrong trajectory made from a correct one, its rejection, and the correct steps to the
    /// right answer. `None` if the question does not allow the kind of fault that was drawn.
    pub fn repair(
        &self,
        question: &Question,
        gold: &Trajectory,
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Result<Option<Trajectory>, SolveError> {
        let Some((spoilt, _)) = self.spoil(question, gold, env, rng) else { return Ok(None) };
        self.mend(question, &spoilt, env, rng).map(Some)
    }

    /// Continues a wrong trajectory: the reflection that rejects it, then the correct steps.
    pub fn mend(
        &self,
        question: &Question,
        spoilt: &Trajectory,
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Result<Trajectory, SolveError> {
        let mut trajectory = spoilt.clone();
        trajectory.turns.push(Turn::Reflection(self.reflect(question, spoilt)?));
        self.go_on(question, trajectory, env, rng)
    }

    /// The entities from which the facts of the chain are read.
    fn stations(&self, start: &str, chain: &[RelationRef]) -> Option<Vec<EntityId>> {
        let first = self.base.find(start)?;
        let facts = self.base.follow(first, chain)?;
        let mut stations = vec![first];
        stations.extend(facts.iter().take(chain.len() - 1).filter_map(|fact| fact.target));
        (stations.len() == chain.len()).then_some(stations)
    }

    fn other_value(&self, start: &str, chain: &[RelationRef], gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        let entity = *self.stations(start, chain)?.last()?;
        let link = *chain.last()?;
        let shown = gold.steps().filter_map(|step| step.observation.as_deref()).next_back()?;
        let facts = &self.base.entities()[entity].facts;
        let mut others: Vec<(RelationId, &str)> =
            facts.iter().enumerate().filter_map(|(id, fact)| Some((id, fact.as_ref()?.text.as_str()))).collect();
        others.retain(|(id, text)| *id != link.relation && shown.contains(text));
        let (_, wrong) = rng.pick(&others)?;
        let relation = self.base.schema().relation(link);
        let slots = [("r", relation.noun.as_str()), ("e", self.base.entities()[entity].title.as_str()), ("v", *wrong)];
        let mut trajectory = gold.clone();
        trajectory.turns.pop();
        let thought = format!("{} {}", say(self.style.found, &slots), say(self.style.answer, &slots));
        trajectory.turns.push(finish_step(thought, wrong));
        Some(trajectory)
    }

    /// Stops before the last page is opened. `None` unless every fact was read from its own page,
    /// in order.
    fn early_stop(&self, start: &str, chain: &[RelationRef], gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        let stations = self.stations(start, chain)?;
        let stop = 1 + rng.below(chain.len() - 1);
        let title = &self.base.entities()[*stations.get(stop)?].title;
        let opened = gold.turns.iter().position(|turn| matches!(turn, Turn::Step(step) if step.params.as_ref() == Some(title)))?;
        let relation = self.base.schema().relation(chain[stop - 1]);
        let slots = [("r", relation.noun.as_str()), ("e", self.base.entities()[stations[stop - 1]].title.as_str()), ("v", title.as_str())];
        let mut trajectory = gold.clone();
        trajectory.turns.truncate(opened);
        let thought = format!("{} {}", say(self.style.found, &slots), say(self.style.answer, &slots));
        trajectory.turns.push(finish_step(thought, title));
        Some(trajectory)
    }

    /// Follows another relation at one position, with the real tools, and continues if possible.
    fn wrong_relation(
        &self,
        question: &Question,
        start: &str,
        chain: &[RelationRef],
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Option<Trajectory> {
        let stations = self.stations(start, chain)?;
        let at = rng.below(chain.len());
        let wanted = self.base.schema().relation(chain[at]).target;
        let rest = &chain[at + 1..];
        let fits = |id: &RelationId| {
            let link = RelationRef { kind: chain[at].kind, relation: *id };
            let Some(fact) = self.base.fact(stations[at], *id) else { return false };
            let leads_on = rest.is_empty() || fact.target.is_some_and(|target| self.base.follow(target, rest).is_some());
            *id != chain[at].relation && leads_on && (rest.is_empty() || self.base.schema().relation(link).target == wanted)
        };
        let others: Vec<RelationId> = (0..self.base.schema().types[chain[at].kind].relations.len()).filter(fits).collect();
        let mut wrong = chain.to_vec();
        wrong[at].relation = *rng.pick(&others)?;
        let trajectory = Trajectory { question: question.text.clone(), tools: self.tools.to_vec(), ..Trajectory::default() };
        let mut walk = Walk { solver: self, env, trajectory, thought: String::new(), written: misspelt(question) };
        let answer = walk.follow(start, &wrong).ok()?.text.clone();
        walk.think(self.style.answer, &[("v", &answer)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, &answer));
        Some(walk.trajectory)
    }

    /// Compares the right numbers with the opposite sign.
    fn wrong_sign(
        &self,
        question: &Question,
        a: &str,
        b: &str,
        more: bool,
        gold: &Trajectory,
        env: &mut dyn Environment,
    ) -> Option<Trajectory> {
        let chain = resolve(self.base, question).ok()?;
        let (first, second) = (self.base.find(a)?, self.base.find(b)?);
        let (x, y) = (*self.base.follow(first, &chain)?.last()?, *self.base.follow(second, &chain)?.last()?);
        let calculated = gold.turns.iter().rposition(|turn| matches!(turn, Turn::Step(step) if step.tool == CALCULATE))?;
        let Turn::Step(Step { thought, .. }) = &gold.turns[calculated] else { return None };
        let (right, wrong, sign) = if more { ("more", "less", "<") } else { ("less", "more", ">") };
        let slots = [("a", digits(x)), ("b", digits(y)), ("op", wrong), ("sign", sign)];
        let gold_sign = if more { ">" } else { "<" };
        let asked = say(self.style.whether, &[("a", digits(x)), ("b", digits(y)), ("op", right), ("sign", gold_sign)]);
        let trajectory = Trajectory { turns: gold.turns[..calculated].to_vec(), ..gold.clone() };
        let thought = thought.replace(&asked, &say(self.style.whether, &slots));
        let mut walk = Walk { solver: self, env, trajectory, thought, written: Vec::new() };
        let outcome = walk.act(CALCULATE, &format!("{} {sign} {}", digits(x), digits(y)));
        let holds = outcome.to_lowercase().contains("true");
        walk.think(if holds { self.style.holds } else { self.style.fails }, &slots);
        let answer = match &question.plan {
            QuestionPlan::Compare { .. } => (if holds { a } else { b }).to_owned(),
            _ => (if holds { "yes" } else { "no" }).to_owned(),
        };
        walk.think(self.style.so, &[("v", &answer)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, &answer));
        Some(walk.trajectory)
    }

    /// Takes the numbers from each other in the wrong order, or answers with one of them.
    fn wrong_difference(&self, question: &Question, gold: &Trajectory, fault: Fault, env: &mut dyn Environment) -> Option<Trajectory> {
        let gap = self.base.gap(question)?;
        let [from, take] = gap.terms();
        let mut trajectory = gold.clone();
        if fault == Fault::OtherValue {
            set_answer(&mut trajectory, &from.text)?;
            return Some(trajectory);
        }
        let calculated = gold.turns.iter().rposition(|turn| matches!(turn, Turn::Step(step) if step.tool == CALCULATE))?;
        let Turn::Step(Step { thought, .. }) = &gold.turns[calculated] else { return None };
        let asked = |a, b| say(self.style.minus, &[("a", digits(a)), ("b", digits(b))]);
        let thought = thought.replace(&asked(from, take), &asked(take, from));
        trajectory.turns.truncate(calculated);
        let mut walk = Walk { solver: self, env, trajectory, thought, written: Vec::new() };
        let outcome = walk.act(CALCULATE, &format!("{} - {}", digits(take), digits(from)));
        let unit = gap.answer.split_once(' ').map_or(String::new(), |(_, unit)| format!(" {unit}"));
        let answer = format!("{outcome}{unit}");
        walk.think(self.style.gap, &[("a", digits(take)), ("b", digits(from)), ("v", &outcome)]);
        walk.think(self.style.so, &[("v", &answer)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, &answer));
        Some(walk.trajectory)
    }

    /// Answers with another page of the search results.
    fn other_page(&self, question: &Question, gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        let search = gold.turns.iter().position(|turn| matches!(turn, Turn::Step(step) if step.tool == SEARCH))?;
        let Turn::Step(Step { observation: Some(found), .. }) = &gold.turns[search] else { return None };
        let titles: Vec<&str> = found.split(" | ").filter_map(|hit| hit.split_once(": ")).map(|(title, _)| title).collect();
        let others: Vec<&str> = titles.into_iter().filter(|title| *title != question.answer && self.base.find(title).is_some()).collect();
        let wrong = rng.pick(&others)?;
        let mut trajectory = gold.clone();
        trajectory.turns.truncate(search + 1);
        let thought = format!("{} {}", say(self.style.check, &[("e", wrong)]), say(self.style.answer, &[("v", wrong)]));
        trajectory.turns.push(finish_step(thought, wrong));
        Some(trajectory)
    }
}

fn say(template: &str, values: &[(&str, &str)]) -> String {
    crate::text::fill(template, |slot| values.iter().find(|(name, _)| *name == slot).map(|(_, value)| (*value).to_owned()))
}

/// The correct trajectory with the opposite answer.
fn flipped(question: &Question, gold: &Trajectory) -> Option<Trajectory> {
    let mut trajectory = gold.clone();
    set_answer(&mut trajectory, &opposite(question)?)?;
    Some(trajectory)
}

fn opposite(question: &Question) -> Option<String> {
    match &question.plan {
        QuestionPlan::Compare { a, b, .. } => Some(if *a == question.answer { b.clone() } else { a.clone() }),
        _ => match question.answer.as_str() {
            "yes" => Some("no".to_owned()),
            "no" => Some("yes".to_owned()),
            _ => None,
        },
    }
}

/// Gives the last step another answer, in its thought as well where that names the answer.
fn set_answer(trajectory: &mut Trajectory, answer: &str) -> Option<()> {
    let Some(Turn::Step(step)) = trajectory.turns.last_mut() else { return None };
    if step.tool != FINISH {
        return None;
    }
    let old = step.params.replace(answer.to_owned())?;
    if let Some(at) = step.thought.rfind(&old)
        && crate::text::contains_words(&step.thought[at..], &old)
    {
        step.thought.replace_range(at..at + old.len(), answer);
    }
    Some(())
}

//! Plausible wrong trajectories and their correction. Reflect-Agent learns from them to reject, and
//! Plan-Agent to recover.

use autoact_base::random::Rng;
use autoact_score::exact_match;
use autoact_trajectory::{FINISH, NOT_FOUND, REPEATED_NOTE, Step, Trajectory, Turn};

use crate::base::{EntityId, Fact};
use crate::difference::relations;
use crate::fault::Fault;
use crate::idle::mashed;
use crate::question::{Asks, Question, QuestionPlan};
use crate::schema::{RelationId, RelationRef};
use crate::solve::{Environment, RETRIEVE, SEARCH, SolveError, Solver, as_written, finish_step, meant, misspelt, resolve, told_as};
use crate::text::say;
use crate::walk::Walk;

/// Draws of a wrong value or page before a fault does not fit.
const TRIES: usize = 20;
/// Probability that a question of a chain is given up after a look at the wrong place, instead of
/// somewhere on the right way.
const SOUGHT_WRONGLY: f64 = 0.4;

impl Solver<'_> {
    /// A wrong trajectory made from a correct one. The kind of fault is drawn from those that fit
    /// the question; `None` if none does.
    pub fn spoil(&self, question: &Question, gold: &Trajectory, env: &mut dyn Environment, rng: &mut Rng) -> Option<(Trajectory, Fault)> {
        let chain = resolve(self.base, question).ok()?;
        let mut weights = Fault::ALL.map(Fault::weight);
        loop {
            let at = rng.weighted(&weights).filter(|at| weights[*at] > 0.0)?;
            weights[at] = 0.0;
            let fault = Fault::ALL[at];
            if let Some(trajectory) = self.with_fault(fault, question, &chain, gold, env, rng)
                && is_wrong(question, &trajectory)
            {
                return Some((trajectory, fault));
            }
        }
    }

    fn with_fault(
        &self,
        fault: Fault,
        question: &Question,
        chain: &[RelationRef],
        gold: &Trajectory,
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Option<Trajectory> {
        let follows = match &question.plan {
            QuestionPlan::Follow { start } => Some(start.as_str()),
            _ => None,
        };
        match fault {
            Fault::OtherValue => match &question.plan {
                QuestionPlan::Difference { .. } => self.wrong_difference(question, gold, fault, env),
                _ => self.other_value(follows?, chain, gold, rng),
            },
            Fault::WrongRelation => self.wrong_relation(question, follows?, chain, env, rng),
            Fault::WrongEntity => self.wrong_entity(question, follows?, chain, env, rng),
            Fault::EarlyStop => self.stopped(question, chain, gold, rng),
            Fault::Flipped => flipped(question, gold),
            Fault::WrongSign => match &question.plan {
                QuestionPlan::Compare { a, b, more } | QuestionPlan::IsMore { a, b, more } => {
                    self.wrong_sign(question, a, b, *more, gold, env)
                }
                QuestionPlan::Difference { .. } => self.wrong_difference(question, gold, fault, env),
                QuestionPlan::Calculate { expression } => self.wrong_operator(question, expression, env, rng),
                _ => None,
            },
            Fault::OtherPage => self.other_page(question, gold, rng),
            Fault::Unsupported => self.unsupported(question, chain, gold, rng),
            Fault::WrongType => self.wrong_type(question, chain, gold, rng),
            Fault::Answered => self.answered(question, gold, env, rng),
            Fault::GaveUp => match &question.plan {
                QuestionPlan::Follow { start } if rng.chance(SOUGHT_WRONGLY) => self.sought_wrongly(question, start, chain, env, rng),
                _ => self.gave_up(question, chain, gold, rng),
            },
            Fault::Loop => self.looped(question, gold, env, rng),
            Fault::Gibberish => self.gibberish(gold, rng),
        }
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

    /// Answers before all was read: with an intermediate value, or after one side of a comparison.
    fn stopped(&self, question: &Question, chain: &[RelationRef], gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        match &question.plan {
            QuestionPlan::Follow { start } if chain.len() > 1 => self.early_stop(start, chain, gold, rng),
            QuestionPlan::IsValue { start, claim } if chain.len() > 1 && question.answer == "yes" => {
                // the claim is compared with the value read so far, which is another one
                let mut spoilt = self.early_stop(start, chain, gold, rng)?;
                if let Some(Turn::Step(step)) = spoilt.turns.last_mut() {
                    let answer =
                        format!("{} {}", say(self.style.claim, &[("v", as_written(&misspelt(question), claim))]), self.style.different);
                    let value = step.params.replace("no".to_owned()).unwrap_or_default();
                    step.thought = step.thought.replace(&say(self.style.answer, &[("v", &value)]), &answer);
                }
                Some(spoilt)
            }
            QuestionPlan::Compare { a, b, .. } => {
                let written = misspelt(question);
                let opens = |step: &Step| step.params.as_deref().is_some_and(|params| params == b || params == as_written(&written, b));
                let opened = gold.turns.iter().position(|turn| matches!(turn, Turn::Step(step) if opens(step)))?;
                let mut spoilt = Trajectory { turns: gold.turns[..opened].to_vec(), ..gold.clone() };
                spoilt.turns.push(finish_step(say(self.style.so, &[("v", a)]), a));
                (opened > 0).then_some(spoilt)
            }
            _ => None,
        }
    }

    /// Reads the facts of another entity of the same type.
    fn wrong_entity(
        &self,
        question: &Question,
        start: &str,
        chain: &[RelationRef],
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Option<Trajectory> {
        let kind = chain.first()?.kind;
        let right = self.base.find(start)?;
        let other = (0..TRIES).find_map(|_| {
            let other = *rng.pick(self.base.of_type(kind))?;
            (other != right && self.base.follow(other, chain).is_some()).then_some(other)
        })?;
        let mut walk = self.begin(question, env);
        let answer = walk.follow(&self.base.entities()[other].title, chain).ok()?.text.clone();
        walk.think(self.style.answer, &[("v", &answer)]);
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(finish_step(thought, &answer));
        Some(walk.trajectory)
    }

    /// The last step answers `wrong`, with the thought of somebody who believes it.
    pub(crate) fn claim(&self, question: &Question, mut trajectory: Trajectory, wrong: &str) -> Trajectory {
        let believed = match self.needed(question, &trajectory) {
            Some((noun, name)) if !matches!(wrong, "yes" | "no") => {
                let slots = [("r", noun.as_str()), ("e", name.as_str()), ("v", wrong)];
                format!("{} {}", say(self.style.found, &slots), say(self.style.answer, &slots))
            }
            _ => say(self.style.so, &[("v", wrong)]),
        };
        trajectory.turns.push(finish_step(believed, wrong));
        trajectory
    }

    /// The relation's noun and the name of the fact that a question needs in the end.
    fn needed(&self, question: &Question, trajectory: &Trajectory) -> Option<(String, String)> {
        match &question.plan {
            QuestionPlan::Missing { asks: Asks::Owner { .. }, .. } => None,
            QuestionPlan::Missing { noun, name, .. } => Some((noun.clone(), told_as(trajectory, &misspelt(question), name).to_owned())),
            QuestionPlan::Follow { .. } | QuestionPlan::IsValue { .. } => self.open_fact(question, trajectory),
            _ => None,
        }
    }

    /// The first fact that the history does not show, else the last one.
    pub(crate) fn open_fact(&self, question: &Question, trajectory: &Trajectory) -> Option<(String, String)> {
        let chain = resolve(self.base, question).ok()?;
        let ways: Vec<(&str, Vec<RelationRef>)> = match &question.plan {
            QuestionPlan::Follow { start } | QuestionPlan::IsValue { start, .. } => vec![(start, chain)],
            QuestionPlan::Compare { a, b, .. } | QuestionPlan::IsMore { a, b, .. } | QuestionPlan::IsSame { a, b } => {
                vec![(a, chain.clone()), (b, chain)]
            }
            QuestionPlan::Difference { a, b, minus, .. } => {
                let other = relations(self.base.schema(), minus)?;
                vec![(a, chain.clone()), (b, if other.is_empty() { chain } else { other })]
            }
            _ => return None,
        };
        let written = misspelt(question);
        let mut last = None;
        for (start, chain) in ways {
            for (entity, link) in self.stations(start, &chain)?.into_iter().zip(&chain) {
                let title = &self.base.entities()[entity].title;
                last = Some((self.base.schema().relation(*link).noun.clone(), told_as(trajectory, &written, title).to_owned()));
                let sentence = self.base.sentence(entity, link.relation)?;
                if !crate::solve::shows(trajectory, title, sentence, &written) {
                    return last;
                }
            }
        }
        last
    }

    /// The steps of a trajectory before its last, or none of them.
    pub(crate) fn cut(gold: &Trajectory, steps: usize) -> Trajectory {
        Trajectory { turns: gold.turns[..steps.min(gold.turns.len() - 1)].to_vec(), ..gold.clone() }
    }

    /// A value of the right kind that no observation shows.
    fn unsupported(&self, question: &Question, chain: &[RelationRef], gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        let before = Self::cut(gold, if rng.chance(0.5) { rng.below(gold.turns.len()) } else { gold.turns.len() });
        let wrong = (0..TRIES).find_map(|_| {
            let value = match &question.plan {
                QuestionPlan::Follow { .. } => self.some_value(*chain.last()?, rng)?,
                QuestionPlan::Compare { .. } | QuestionPlan::Inverse { .. } => {
                    self.base.entities()[*rng.pick(self.base.of_type(chain.first()?.kind))?].title.clone()
                }
                QuestionPlan::Difference { .. } => {
                    let unit = question.answer.split_once(' ').map_or(String::new(), |(_, unit)| format!(" {unit}"));
                    format!("{}{unit}", rng.between(2, 5000))
                }
                QuestionPlan::Calculate { .. } if question.answer.parse::<f64>().is_ok() => rng.between(2, 5000).to_string(),
                _ => return None,
            };
            let told = before.steps().filter_map(|step| step.observation.as_deref()).any(|text| text.contains(&value));
            (!told && !question.text.contains(&value)).then_some(value)
        })?;
        Some(self.claim(question, before, &wrong))
    }

    fn some_value(&self, at: RelationRef, rng: &mut Rng) -> Option<String> {
        let entity = *rng.pick(self.base.of_type(at.kind))?;
        Some(self.base.fact(entity, at.relation)?.text.clone())
    }

    /// An answer of another kind: a number for a name, a name for a number, anything for yes or no.
    fn wrong_type(&self, question: &Question, chain: &[RelationRef], gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        let numeric = |at: RelationRef| matches!(self.base.schema().relation(at).range.as_str(), "number" | "year");
        let wants = match &question.plan {
            _ if matches!(question.answer.as_str(), "yes" | "no") => Wanted::Decision,
            QuestionPlan::Follow { .. } if numeric(*chain.last()?) => Wanted::Number,
            QuestionPlan::Follow { .. } | QuestionPlan::Compare { .. } | QuestionPlan::Inverse { .. } => Wanted::Name,
            QuestionPlan::Calculate { .. } | QuestionPlan::Difference { .. } => Wanted::Number,
            _ => return None,
        };
        let seen: Vec<&Fact> = self.seen_facts(question, gold);
        let name = |rng: &mut Rng| {
            let shown: Vec<&str> = seen.iter().filter(|fact| fact.number.is_none()).map(|fact| fact.text.as_str()).collect();
            rng.pick(&shown)
                .map(|text| (*text).to_owned())
                .or_else(|| Some(self.base.entities()[rng.below(self.base.entities().len())].title.clone()))
        };
        let number = |rng: &mut Rng| {
            let shown: Vec<&str> = seen.iter().filter(|fact| fact.number.is_some()).map(|fact| fact.text.as_str()).collect();
            rng.pick(&shown).map(|text| (*text).to_owned()).or_else(|| Some(rng.between(2, 3000).to_string()))
        };
        let decision = |rng: &mut Rng| Some(if rng.chance(0.5) { "yes" } else { "no" }.to_owned());
        let wrong = match (wants, rng.below(3)) {
            (Wanted::Decision, 0) | (Wanted::Name, 1 | 2) => number(rng),
            (Wanted::Decision, _) | (Wanted::Number, 1 | 2) => name(rng),
            (Wanted::Number | Wanted::Name, _) => decision(rng),
        }?;
        let before = Self::cut(gold, gold.turns.len());
        Some(self.claim(question, before, &wrong))
    }

    /// The facts that pages state which a trajectory opened.
    pub(crate) fn seen_facts(&self, question: &Question, trajectory: &Trajectory) -> Vec<&Fact> {
        let written = misspelt(question);
        let opened = trajectory.steps().filter(|step| step.tool == RETRIEVE);
        let opened = opened.filter_map(|step| self.base.find(meant(&written, step.params.as_deref()?)));
        opened.flat_map(|entity| self.base.entities()[entity].facts.iter().flatten()).collect()
    }

    /// Repeats an action, then guesses.
    fn looped(&self, question: &Question, gold: &Trajectory, env: &mut dyn Environment, rng: &mut Rng) -> Option<Trajectory> {
        let steps = gold.turns.len() - 1;
        if steps == 0 {
            return None;
        }
        let before = Self::cut(gold, 1 + rng.below(steps));
        let Some(Turn::Step(again)) = before.turns.last() else { return None };
        let (again, mut trajectory) = (again.clone(), before.clone());
        for _ in 0..1 + rng.below(2) {
            let mut walk = Walk { trajectory, thought: again.thought.clone(), ..self.begin(question, &mut *env) };
            walk.act(&again.tool, again.params.as_deref()?);
            trajectory = walk.trajectory;
            if let Some(Turn::Step(Step { observation: Some(seen), .. })) = trajectory.turns.last_mut() {
                *seen = format!("{REPEATED_NOTE} {seen}");
            }
        }
        let seen: Vec<&str> = self.seen_facts(question, &trajectory).into_iter().map(|fact| fact.text.as_str()).collect();
        let guess = match &question.plan {
            QuestionPlan::Compare { a, b, .. } | QuestionPlan::IsMore { a, b, .. } | QuestionPlan::IsSame { a, b } => {
                if matches!(question.answer.as_str(), "yes" | "no") {
                    opposite(question)?
                } else if *a == question.answer {
                    b.clone()
                } else {
                    a.clone()
                }
            }
            QuestionPlan::IsValue { .. } => opposite(question)?,
            _ if rng.chance(0.6) && !seen.is_empty() => (*rng.pick(&seen)?).to_owned(),
            _ => self.base.entities()[rng.below(self.base.entities().len())].title.clone(),
        };
        Some(self.claim(question, trajectory, &guess))
    }

    /// Answers with letters, a word over and over, or loose words.
    fn gibberish(&self, gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        let before = Self::cut(gold, if rng.chance(0.4) { rng.below(gold.turns.len()) } else { gold.turns.len() });
        let letters = 3 + rng.below(7);
        let made = mashed(letters, rng);
        let wrong = match rng.below(5) {
            0 => made,
            1 => vec![made.as_str(); 2 + rng.below(4)].join(" "),
            2 => {
                let words = ["the", "of", "is", "and", "it", "no", "page", "a"];
                (0..2 + rng.below(5)).map(|_| rng.pick(&words).copied().unwrap_or_default()).collect::<Vec<_>>().join(" ")
            }
            3 => {
                let title = &self.base.entities()[rng.below(self.base.entities().len())].title;
                let piece: String = title.chars().take(3).collect();
                piece.repeat(2 + rng.below(4))
            }
            _ => format!("{made}, {}", rng.between(0, 99)),
        };
        let mut spoilt = before;
        let thought = if rng.chance(0.5) { say(self.style.so, &[("v", &wrong)]) } else { self.style.answer.replace("{v}", &wrong) };
        spoilt.turns.push(finish_step(thought, &wrong));
        Some(spoilt)
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
        let mut walk = Walk { trajectory, written: misspelt(question), ..self.begin(question, env) };
        let answer = walk.follow(start, &wrong).ok()?.text.clone();
        walk.think(self.style.answer, &[("v", &answer)]);
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
        let thought = format!("{} {}", say(self.style.check, &[("e", wrong)]), say(self.style.so, &[("v", wrong)]));
        trajectory.turns.push(finish_step(thought, wrong));
        Some(trajectory)
    }
}

/// What kind of answer is wanted.
enum Wanted {
    Decision,
    Number,
    Name,
}

/// Whether the last step of a trajectory is wrong for the question.
fn is_wrong(question: &Question, trajectory: &Trajectory) -> bool {
    trajectory.steps().next_back().is_some_and(|step| {
        let denied = step.tool == NOT_FOUND;
        let matches = step.params.as_deref().is_some_and(|given| exact_match(given, &question.answer));
        if question.is_answerable() { denied || !matches } else { !denied }
    })
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
pub(crate) fn set_answer(trajectory: &mut Trajectory, answer: &str) -> Option<()> {
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

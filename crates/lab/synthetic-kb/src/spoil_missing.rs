//! An answer where there is none, and none where there is one.

use autoact_base::random::Rng;
use autoact_trajectory::{ToolSpec, Trajectory};

use crate::phrase::misspell;
use crate::question::{Asks, Question, QuestionPlan};
use crate::schema::RelationRef;
use crate::solve::{Environment, LOOKUP, NO_PAGE, NO_SENTENCE, RETRIEVE, SEARCH, Solver, as_written, misspelt, not_found_step};
use crate::text::say;
use crate::walk::Walk;

impl Solver<'_> {
    /// An answer to a question that has none: a value that was read, a similar title, or anything.
    pub(crate) fn answered(&self, question: &Question, gold: &Trajectory, env: &mut dyn Environment, rng: &mut Rng) -> Option<Trajectory> {
        if question.is_answerable() {
            return None;
        }
        let mut before = Self::cut(gold, if rng.chance(0.25) { rng.below(gold.turns.len()) } else { gold.turns.len() });
        if before.turns.is_empty() && rng.chance(0.5) {
            // what was searched for is the question itself
            let mut walk = Walk { trajectory: before, ..self.begin(question, env) };
            let query: String = question.text.chars().filter(|c| !c.is_ascii_punctuation()).collect();
            walk.think(self.style.seek, &[("t", "page"), ("r", "words"), ("v", &query)]);
            walk.act(SEARCH, &query);
            before = walk.trajectory;
        }
        let told: String = before.steps().filter_map(|step| step.observation.as_deref()).collect::<Vec<_>>().join(" ");
        let titles: Vec<&str> = told
            .split([';', '|'])
            .filter_map(|part| part.rsplit("Similar: ").next()?.trim().trim_end_matches('.').split(": ").next())
            .filter(|title| self.base.find(title).is_some())
            .collect();
        let seen: Vec<&str> =
            self.seen_facts(question, &before).into_iter().map(|fact| fact.text.as_str()).filter(|text| told.contains(text)).collect();
        let any = match rng.below(3) {
            0 => self.base.entities()[rng.below(self.base.entities().len())].title.as_str(),
            _ => self.base.entities()[rng.below(self.base.entities().len())].facts.iter().flatten().next()?.text.as_str(),
        };
        let pool: &[&str] = if !seen.is_empty() && rng.chance(0.7) { &seen } else { &titles };
        let mut wrong = rng.pick(pool).filter(|_| rng.chance(0.7)).copied().unwrap_or(any).to_owned();
        if let QuestionPlan::Missing { asks: Asks::Both { a, b, .. }, .. } = &question.plan
            && rng.chance(0.6)
        {
            wrong = if rng.chance(0.5) { a } else { b }.clone();
        }
        Some(self.claim(question, before, &wrong))
    }

    /// Without the tool nobody can say that there is no answer.
    fn can_give_up(&self) -> bool {
        self.tools.iter().any(ToolSpec::is_no_answer)
    }

    /// Says that there is no answer after a look at the wrong place: a name that was copied
    /// wrongly, or a keyword that the question does not ask for.
    pub(crate) fn sought_wrongly(
        &self,
        question: &Question,
        start: &str,
        chain: &[RelationRef],
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Option<Trajectory> {
        let first = *chain.first()?;
        let noun = self.base.schema().relation(first).noun.as_str();
        let mut walk = self.begin(question, env);
        let written = misspelt(question);
        let asked = as_written(&written, start);
        let miscopied = misspell(asked, rng).filter(|name| rng.chance(0.5) && self.base.find(name).is_none());
        let name = miscopied.as_deref().unwrap_or(asked);
        let slots = [("r", noun), ("e", name), ("w", name)];
        walk.think(self.style.need, &slots);
        let seen = walk.act(RETRIEVE, name);
        let missing = if seen.starts_with(NO_PAGE) {
            walk.think(self.style.unknown, &slots);
            walk.think(self.style.lacking, &slots);
            format!("the {noun} of {name}")
        } else {
            let other = self.base.foreign_noun(first.kind, rng)?;
            let slots = [("r", other.as_str()), ("e", start)];
            walk.think(self.style.hidden, &slots);
            walk.think(self.style.need, &slots);
            if !walk.act(LOOKUP, &other).starts_with(NO_SENTENCE) {
                return None;
            }
            walk.think(self.style.lacking, &slots);
            format!("the {other} of {start}")
        };
        let thought = std::mem::take(&mut walk.thought);
        walk.trajectory.turns.push(not_found_step(thought, &missing));
        self.can_give_up().then_some(walk.trajectory)
    }

    /// Says that there is no answer, somewhere on the way to it.
    pub(crate) fn gave_up(&self, question: &Question, chain: &[RelationRef], gold: &Trajectory, rng: &mut Rng) -> Option<Trajectory> {
        if !question.is_answerable() || !self.can_give_up() {
            return None;
        }
        let mut before = Self::cut(gold, rng.below(gold.turns.len()));
        let (thought, missing) = match &question.plan {
            QuestionPlan::Inverse { value } => {
                let schema = self.base.schema();
                let link = *chain.first()?;
                let (kind, noun) = (&schema.types[link.kind].noun, &schema.relation(link).noun);
                let written = misspelt(question);
                let value = as_written(&written, value);
                let thought = say(self.style.unowned, &[("t", kind), ("r", noun), ("v", value)]);
                (thought, format!("the {kind} with the {noun} {value}"))
            }
            QuestionPlan::Calculate { expression } => {
                (say(self.style.nothing, &[("w", "nonsense")]), format!("the result of {expression}"))
            }
            _ => {
                let (noun, name) = self.open_fact(question, &before)?;
                (say(self.style.lacking, &[("r", &noun), ("e", &name)]), format!("the {noun} of {name}"))
            }
        };
        before.turns.push(not_found_step(thought, &missing));
        Some(before)
    }
}

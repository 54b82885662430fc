//! Gold trajectories: a question answered with the real tools, with short thoughts. Every fact in a
//! thought comes from an earlier observation. If the tools do not show a needed fact, there is no
//! trajectory.

use autoact_base::random::Rng;
use autoact_trajectory::{Action, FINISH, NOT_FOUND, Step, ToolSpec, Trajectory, Turn};

use crate::base::{Fact, KnowledgeBase};
use crate::mistake::Mistake;
use crate::question::{Asks, Question, QuestionPlan};
use crate::schema::RelationRef;
use crate::style::ThoughtStyle;
use crate::walk::Walk;

/// The name of the tool that shows the beginning of a page.
pub const RETRIEVE: &str = "Retrieve";
/// The name of the tool that finds a keyword on the page opened last.
pub const LOOKUP: &str = "Lookup";
/// The name of the tool that finds pages.
pub const SEARCH: &str = "Search";
/// The name of the calculator.
pub const CALCULATE: &str = "Calculate";

/// What is missing where nothing is asked.
const NO_QUESTION: &str = "a question";
/// Probability of a search after a name turned out to have no page.
const SEARCHES: f64 = 0.2;
/// How the observation of a page that is not there begins.
pub const NO_PAGE: &str = "No page is titled";
/// How the observation of a keyword that is not on the page begins.
pub(crate) const NO_SENTENCE: &str = "No sentence of";

/// Runs the tools over a knowledge base's pages. In training and tests this is the real library.
pub trait Environment {
    /// The observation of `action`, which follows `trajectory`. Its last step has no parameters
    /// yet.
    fn run(&mut self, action: &Action, trajectory: &Trajectory) -> String;
}

/// Why a question has no gold trajectory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SolveError {
    /// The question belongs to another knowledge base.
    #[error("the knowledge base has no `{0}`; solve a question with the base it was asked of")]
    Unknown(String),
    /// The tools did not show a fact.
    #[error("no observation shows the `{relation}` of `{title}`; the tools serve other pages, or cut them")]
    Unseen {
        /// The relation's name.
        relation: String,
        /// The page.
        title: String,
    },
    /// The calculator's result is not the expected one.
    #[error("`{action}` gave `{observation}` where `{expected}` is true")]
    Miscalculated {
        /// The calculation.
        action: String,
        /// The actual observation.
        observation: String,
        /// The expected observation.
        expected: String,
    },
}

/// Generates gold trajectories over one knowledge base.
#[derive(Debug, Clone, Copy)]
pub struct Solver<'a> {
    /// The knowledge base that the questions were generated from.
    pub base: &'a KnowledgeBase,
    /// The wording of thoughts.
    pub style: &'a ThoughtStyle,
    /// T_s, the tools in every trajectory. It must contain the tools that trajectories use; without
    /// `NotFound`, no trajectory is given up.
    pub tools: &'a [ToolSpec],
    /// Probability that the first tool is a wrong one, from which the trajectory recovers.
    pub detours: f64,
}

impl Solver<'_> {
    /// A correct trajectory, including `Finish` or `NotFound`.
    pub fn solve(&self, question: &Question, env: &mut dyn Environment, rng: &mut Rng) -> Result<Trajectory, SolveError> {
        let trajectory = Trajectory { question: question.text.clone(), tools: self.tools.to_vec(), ..Trajectory::default() };
        self.go_on(question, trajectory, env, rng)
    }

    /// What the trajectory of a question without an answer says is missing.
    pub(crate) fn missing(&self, question: &Question) -> Option<String> {
        match &question.plan {
            QuestionPlan::Missing { asks: Asks::Owner { kind, noun, value }, .. } => {
                Some(format!("the {kind} with the {noun} {}", as_written(&misspelt(question), value)))
            }
            // a page says its title; a name without one is only in the question
            QuestionPlan::Missing { noun, name, .. } if self.base.find(name).is_some() => Some(format!("the {noun} of {name}")),
            QuestionPlan::Missing { noun, name, .. } => Some(format!("the {noun} of {}", as_written(&misspelt(question), name))),
            QuestionPlan::NoQuestion { .. } => Some(NO_QUESTION.to_owned()),
            _ => None,
        }
    }

    /// The correct continuation of a trajectory. Facts that its observations already show are not
    /// retrieved again.
    pub fn go_on(
        &self,
        question: &Question,
        trajectory: Trajectory,
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Result<Trajectory, SolveError> {
        let fresh = trajectory.turns.is_empty();
        let mut walk = Walk { trajectory, written: misspelt(question), ..self.begin(question, env) };
        let chain = resolve(self.base, question)?;
        if fresh && rng.chance(self.detours) {
            walk.detour(question, &chain, rng)?;
        }
        self.conclude(&mut walk, question, &chain, rng)?;
        Ok(walk.trajectory)
    }

    /// A correct trajectory that makes a mistake on its way, and the ends of the thoughts that make
    /// it; none if the question did not come to it.
    pub(crate) fn solve_after(
        &self,
        mistake: Mistake,
        question: &Question,
        env: &mut dyn Environment,
        rng: &mut Rng,
    ) -> Result<(Trajectory, Vec<String>), SolveError> {
        let mut walk = Walk { written: misspelt(question), mistake: Some(mistake), ..self.begin(question, env) };
        self.conclude(&mut walk, question, &resolve(self.base, question)?, rng)?;
        Ok((walk.trajectory, walk.mistake.map(|mistake| mistake.made).unwrap_or_default()))
    }

    /// The steps that are missing, including the last one.
    fn conclude(&self, walk: &mut Walk<'_, '_>, question: &Question, chain: &[RelationRef], rng: &mut Rng) -> Result<(), SolveError> {
        let last = match &question.plan {
            QuestionPlan::Missing { asks: Asks::Owner { kind, noun, value }, .. } => {
                walk.seek_owner_in_vain(kind, noun, value)?;
                not_found_step(std::mem::take(&mut walk.thought), &self.missing(question).unwrap_or_default())
            }
            QuestionPlan::Missing { why, read, name, noun, .. } => {
                let searches = rng.chance(SEARCHES);
                walk.seek_in_vain(*why, read, name, noun, searches)?;
                let missing = self.missing(question).unwrap_or_default();
                not_found_step(std::mem::take(&mut walk.thought), &missing)
            }
            QuestionPlan::NoQuestion { what } => {
                walk.go_wrong("")?;
                walk.think(self.style.nothing, &[("w", what)]);
                not_found_step(std::mem::take(&mut walk.thought), NO_QUESTION)
            }
            _ => {
                let answer = walk.answer(question, chain)?;
                finish_step(std::mem::take(&mut walk.thought), &answer)
            }
        };
        walk.trajectory.turns.push(last);
        Ok(())
    }
}

/// The relations that a question's chain names.
pub(crate) fn resolve(base: &KnowledgeBase, question: &Question) -> Result<Vec<RelationRef>, SolveError> {
    question.chain.iter().map(|path| base.schema.relation_at(path).ok_or_else(|| SolveError::Unknown(path.clone()))).collect()
}

/// The titles and values that a question writes in another way, and how it writes them.
pub(crate) fn misspelt(question: &Question) -> Vec<(String, String)> {
    let spelt = question.spelt.iter().map(|spelling| (spelling.title.clone(), spelling.written.clone()));
    spelt.chain(question.entities.first().cloned().zip(question.written.clone())).collect()
}

/// A title or value as the question writes it.
pub(crate) fn as_written<'t>(written: &'t [(String, String)], text: &'t str) -> &'t str {
    written.iter().find(|(title, _)| title == text).map_or(text, |(_, written)| written.as_str())
}

/// The title or value that the question writes like this.
pub(crate) fn meant<'t>(written: &'t [(String, String)], text: &'t str) -> &'t str {
    written.iter().find(|(_, written)| written == text).map_or(text, |(title, _)| title.as_str())
}

/// A title as thoughts name it: as the question writes it, until an observation shows the title.
pub(crate) fn told_as<'t>(trajectory: &Trajectory, written: &'t [(String, String)], title: &'t str) -> &'t str {
    let told = trajectory.steps().filter_map(|step| step.observation.as_deref()).any(|text| text.contains(title));
    if told { title } else { as_written(written, title) }
}

/// The last step: thought, `Finish`, the answer.
pub(crate) fn finish_step(thought: String, answer: &str) -> Turn {
    Turn::Step(Step { thought, tool: FINISH.to_owned(), params: Some(answer.to_owned()), ..Step::default() })
}

/// The last step of a question without an answer: thought, `NotFound`, what is missing.
pub(crate) fn not_found_step(thought: String, missing: &str) -> Turn {
    Turn::Step(Step { thought, tool: NOT_FOUND.to_owned(), params: Some(missing.to_owned()), ..Step::default() })
}

/// Whether an observation shows the sentence of this page. The page matters, because a sentence
/// such as `Its industry is food.` does not name its subject. `written` is how the question writes
/// titles: a page may have been opened by such a name.
pub(crate) fn shows(trajectory: &Trajectory, title: &str, sentence: &str, written: &[(String, String)]) -> bool {
    let asked = as_written(written, title);
    let mut open = None;
    trajectory.steps().any(|step| {
        let (Some(params), Some(observation)) = (&step.params, &step.observation) else { return false };
        if step.tool == RETRIEVE && !observation.contains(NO_PAGE) {
            open = Some(params.as_str());
        }
        let told = observation.contains(sentence);
        match step.tool.as_str() {
            RETRIEVE | LOOKUP => told && open.is_some_and(|open| open == title || open == asked),
            SEARCH => told && (sentence.contains(title) || observation.contains(&format!("{title}: {sentence}"))),
            _ => false,
        }
    })
}

/// A number as the calculator reads it: the fact's text without its unit.
pub(crate) fn digits(fact: &Fact) -> &str {
    fact.text.split(' ').next().unwrap_or_default()
}

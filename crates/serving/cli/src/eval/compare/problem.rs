//! A question with the tools it is answered with.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use autoact_base::random::Rng;
use autoact_datasets::{Format, Record};
use autoact_planners::{Ended, Outcome, Toolbox};
use autoact_score::Metric;
use autoact_tools::{Corpus, CorpusError, Page};

use crate::eval::set::EvalQuestion;

/// One question of a race.
pub(crate) struct Problem {
    pub(crate) id: String,
    pub(crate) question: String,
    /// `None`: the pages do not say.
    pub(crate) answer: Option<String>,
    /// The row it counts in.
    pub(crate) label: String,
    pub(crate) metric: Metric,
    /// The question's own pages; none: everybody's.
    pages: Vec<Page>,
    /// The tools over them, made when they are first needed.
    own: OnceLock<Toolbox>,
}

impl Problem {
    /// Whether this is the right reply, and its reward; `None`: that there is no answer.
    pub(crate) fn score(&self, reply: Option<&str>) -> (bool, f64) {
        self.metric.score(&self.question, reply, self.answer.as_deref())
    }

    /// The reward of a planner's answer to it.
    pub(super) fn reward(&self, outcome: &Outcome) -> f64 {
        self.score(said(outcome)).1
    }

    /// The tools this question is answered with, given everybody's.
    pub(crate) fn tools(&self, everybodys: &Toolbox) -> Result<Toolbox, CorpusError> {
        if self.pages.is_empty() {
            return Ok(everybodys.clone());
        }
        if let Some(own) = self.own.get() {
            return Ok(own.clone());
        }
        let corpus = Arc::new(Corpus::from_pages(self.pages.clone())?);
        Ok(self.own.get_or_init(|| everybodys.over(&corpus)).clone())
    }
}

/// What a planner said; `None`: that there is no answer.
pub(super) fn said(outcome: &Outcome) -> Option<&str> {
    (outcome.ended != Ended::NoAnswer).then_some(outcome.answer.as_str())
}

/// So many questions of each level at most, drawn at random and in their own order. The same seed
/// draws the same ones.
pub(super) fn drawn(problems: Vec<Problem>, of_each: usize, seed: u64) -> Vec<Problem> {
    let mut levels: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, problem) in problems.iter().enumerate() {
        levels.entry(&problem.label).or_default().push(at);
    }
    let mut chosen = HashSet::new();
    for (level, mut places) in levels {
        Rng::labelled(seed, level).shuffle(&mut places);
        chosen.extend(places.into_iter().take(of_each));
    }
    problems.into_iter().enumerate().filter(|(at, _)| chosen.contains(at)).map(|(_, problem)| problem).collect()
}

/// The questions of a set.
pub(crate) fn of_set(questions: Vec<EvalQuestion>) -> Vec<Problem> {
    let problem = |question: EvalQuestion| Problem {
        label: question.label(),
        metric: question.metric(),
        id: question.id,
        question: question.question,
        answer: question.answer,
        pages: Vec::new(),
        own: OnceLock::new(),
    };
    questions.into_iter().map(problem).collect()
}

/// The questions of a published file.
pub(crate) fn published(format: Format, path: &Path) -> anyhow::Result<Vec<Problem>> {
    let problem = |Record { id, question, answer, level, pages }: Record| Problem {
        id,
        question,
        answer: Some(answer),
        label: level,
        metric: format.metric(),
        pages,
        own: OnceLock::new(),
    };
    Ok(format.load(path)?.into_iter().map(problem).collect())
}

#[cfg(test)]
impl Problem {
    /// A question over everybody's pages.
    pub(super) fn of(question: &str, answer: &str) -> Problem {
        Problem {
            id: question.to_owned(),
            question: question.to_owned(),
            answer: Some(answer.to_owned()),
            label: "questions".to_owned(),
            metric: Metric::ExactMatch,
            pages: Vec::new(),
            own: OnceLock::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(of: &[(&str, usize)]) -> Vec<Problem> {
        let level = |(level, count): &(&str, usize)| {
            let level = (*level).to_owned();
            (0..*count).map(move |at| Problem { label: level.clone(), ..Problem::of(&format!("{level} {at}"), "yes") })
        };
        of.iter().flat_map(level).collect()
    }

    fn names(problems: &[Problem]) -> Vec<&str> {
        problems.iter().map(|problem| problem.question.as_str()).collect()
    }

    #[test]
    fn levels_are_drawn_evenly_and_the_same_each_time() {
        let draw = |seed| drawn(asked(&[("easy", 40), ("hard", 30), ("medium", 3)]), 5, seed);
        let first = draw(1);
        let of = |level: &str| first.iter().filter(|problem| problem.label == level).count();
        assert_eq!((of("easy"), of("hard"), of("medium")), (5, 5, 3));
        assert_eq!(names(&first), names(&draw(1)));
        assert_ne!(names(&first), names(&draw(2)));
        let mut sorted: Vec<usize> = Vec::new();
        for problem in first.iter().filter(|problem| problem.label == "easy") {
            sorted.push(problem.question[5..].parse().unwrap());
        }
        assert!(sorted.is_sorted(), "{sorted:?}");
        // what one level has does not change what is drawn of another
        let fewer = drawn(asked(&[("easy", 40)]), 5, 1);
        assert_eq!(names(&fewer), names(&first)[..5]);
        assert!(drawn(asked(&[("easy", 2)]), 0, 1).is_empty());
    }
}

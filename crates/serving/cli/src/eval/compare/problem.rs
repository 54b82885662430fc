//! A question with the tools it is answered with.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use autoact_datasets::{Format, Record};
use autoact_planners::Toolbox;
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

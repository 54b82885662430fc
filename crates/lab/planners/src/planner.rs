//! The interface of planners.

use autoact_model::BackendInfo;
use autoact_trajectory::{Limits, NextAttempt, Sampling};

use crate::outcome::Outcome;
use crate::toolbox::Toolbox;

/// Number of worked examples; the paper gives two to every prompted baseline.
const SHOTS: usize = 2;
/// Minimum context length in tokens for worked examples. Two of them take about 500 tokens of a
/// small vocabulary, and the history needs room too.
const SHOTS_CONTEXT: usize = 2048;
/// The most rounds that the paper's program gives a question.
const PAPER_ROUNDS: u32 = 10;
/// The most attempts that it gives one.
const PAPER_ATTEMPTS: u32 = 2;

/// A method of answering questions.
pub trait Planner: Send + Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Answers a question, and blocks until the end. Failures are outcomes. The same seed gives the
    /// same answer.
    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome;

    /// The same for a planner that is told of each of its answers whether it is `right`, as the paper
    /// tells Reflexion. The others do not ask.
    fn solve_told(&self, question: &str, tools: &Toolbox, seed: u64, _right: &dyn Fn(&str) -> bool) -> Outcome {
        self.solve(question, tools, seed)
    }
}

/// The options of all planners.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannerOptions {
    /// The bounds of a question, equal for all planners.
    pub limits: Limits,
    /// Sampling parameters. The seed is replaced by the question's.
    pub sampling: Sampling,
    /// What AutoAct's group is given after a judgement "wrong"; `None`: what its calibration says.
    pub next_attempt: Option<NextAttempt>,
    /// After how many verdicts "wrong" the group's next answer is not judged any more, and stands;
    /// `None`: all are judged.
    pub judgements: Option<u32>,
    /// Number of worked examples in the prompts of planners without training.
    pub shots: usize,
    /// Whether these prompts begin with an instruction.
    pub instructions: bool,
}

impl PlannerOptions {
    /// Options for a model. With a chat template: instructions, and two worked examples if the
    /// context is long enough. Without one: the transcript alone, because the model would continue
    /// any text before it.
    pub fn for_model(info: &BackendInfo) -> PlannerOptions {
        PlannerOptions {
            limits: Limits::default(),
            sampling: Sampling::default(),
            next_attempt: None,
            judgements: None,
            shots: if info.chat_template && info.context_length >= SHOTS_CONTEXT { SHOTS } else { 0 },
            instructions: info.chat_template,
        }
    }

    /// The same with the bounds of the paper's program: ten rounds, and two attempts, of which the
    /// group judges the first one only.
    #[must_use]
    pub fn paper(self) -> PlannerOptions {
        let limits = Limits { max_steps: PAPER_ROUNDS, max_reflections: PAPER_ATTEMPTS, ..self.limits };
        PlannerOptions { limits, judgements: Some(PAPER_ATTEMPTS - 1), ..self }
    }
}

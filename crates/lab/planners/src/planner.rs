//! What a planner is.

use autoact_model::BackendInfo;
use autoact_trajectory::{Limits, Sampling};

use crate::outcome::Outcome;
use crate::toolbox::Toolbox;

/// Worked examples in a prompt: the paper gives two to every prompted baseline.
const SHOTS: usize = 2;
/// Two worked examples take about 500 tokens of a small vocabulary; with a shorter context they would leave no room for a history.
const SHOTS_CONTEXT: usize = 2048;

/// A way to answer questions.
pub trait Planner: Send + Sync {
    /// Its name on the command line and in reports.
    fn name(&self) -> &'static str;

    /// Answers a question. Blocks until it is done; whatever goes wrong is an outcome. The same seed gives the same answer.
    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome;
}

/// What all planners have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlannerOptions {
    /// A question's bounds, the same for every planner.
    pub limits: Limits,
    /// How the model decodes; the seed is the question's.
    pub sampling: Sampling,
    /// Worked examples in the prompts of planners that are prompted rather than trained.
    pub shots: usize,
    /// Whether those prompts begin by saying what is to be done.
    pub instructions: bool,
}

impl PlannerOptions {
    /// What suits a model: instructions and two worked examples, as far as its context has room for them, where it has a chat template. A
    /// model without one reads the bare transcript: what stands before it would be part of the story.
    pub fn for_model(info: &BackendInfo) -> PlannerOptions {
        PlannerOptions {
            limits: Limits::default(),
            sampling: Sampling::default(),
            shots: if info.chat_template && info.context_length >= SHOTS_CONTEXT { SHOTS } else { 0 },
            instructions: info.chat_template,
        }
    }
}

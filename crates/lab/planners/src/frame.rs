//! What prompted planners share: the model they call, and the state of one question.

use std::sync::Arc;

use autoact_model::Backend;

use crate::opening::{Example, opening};
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

/// The model of a planner and its options.
pub(crate) struct Speaker {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    /// The name of a trained adapter; `None` for the base model, which is prompted.
    pub(crate) adapter: Option<String>,
    pub(crate) options: PlannerOptions,
}

impl Speaker {
    /// The model calls of one question.
    pub(crate) fn session(&self, seed: u64) -> Session<'_> {
        Session::new(self.backend.as_ref(), self.adapter.as_deref(), &self.options, seed)
    }

    /// The state of a new question.
    pub(crate) fn desk<'a>(&'a self, question: &'a str, tools: &'a Toolbox, seed: u64) -> Desk<'a> {
        Desk {
            question,
            tools,
            options: &self.options,
            session: self.session(seed),
            scratch: Scratch::new(question, tools, self.options.limits.max_steps),
            before: String::new(),
        }
    }
}

/// The state of one question: its history and its model calls.
pub(crate) struct Desk<'a> {
    pub(crate) question: &'a str,
    pub(crate) tools: &'a Toolbox,
    pub(crate) options: &'a PlannerOptions,
    pub(crate) session: Session<'a>,
    pub(crate) scratch: Scratch<'a>,
    /// Text before the history: a plan, or earlier attempts.
    pub(crate) before: String,
}

impl Desk<'_> {
    /// The text before a transcript: instruction and worked examples.
    pub(crate) fn opening(&self, duty: &str, show: impl Fn(&Example) -> String) -> String {
        opening(duty, self.tools, self.options, show)
    }
}

/// The control flow of a planner.
pub(crate) trait Method: Send + Sync {
    /// Runs until there is an answer.
    fn answer(&self, desk: &mut Desk<'_>) -> Result<String, Halt>;
}

/// A planner with one history that does not judge its answers.
pub(crate) struct Solver<M> {
    pub(crate) speaker: Speaker,
    pub(crate) method: M,
}

impl<M: Method> Planner for Solver<M> {
    fn name(&self) -> &'static str {
        self.speaker.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut desk = self.speaker.desk(question, tools, seed);
        let answer = self.method.answer(&mut desk);
        let transcript = format!("{}{}", desk.before, desk.scratch.text());
        desk.session.outcome(answer, desk.scratch.rounds(), transcript)
    }
}

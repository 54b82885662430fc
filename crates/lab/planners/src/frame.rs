//! What the prompted planners have in common: who speaks, and a question's desk with its history and its conversation.

use std::sync::Arc;

use autoact_model::Backend;

use crate::opening::{Example, opening};
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

/// Who speaks in a planner, and how.
pub(crate) struct Speaker {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    /// The trained adapter; `None`: the base, which is prompted.
    pub(crate) adapter: Option<String>,
    pub(crate) options: PlannerOptions,
}

impl Speaker {
    /// A conversation about one question.
    pub(crate) fn session(&self, seed: u64) -> Session<'_> {
        Session::new(self.backend.as_ref(), self.adapter.as_deref(), &self.options, seed)
    }

    /// An empty desk.
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

/// A question that is worked at.
pub(crate) struct Desk<'a> {
    pub(crate) question: &'a str,
    pub(crate) tools: &'a Toolbox,
    pub(crate) options: &'a PlannerOptions,
    pub(crate) session: Session<'a>,
    pub(crate) scratch: Scratch<'a>,
    /// What was written before the history: a plan, earlier attempts.
    pub(crate) before: String,
}

impl Desk<'_> {
    /// What stands before a transcript: the duty and worked examples.
    pub(crate) fn opening(&self, duty: &str, show: impl Fn(&Example) -> String) -> String {
        opening(duty, self.tools, self.options, show)
    }
}

/// How a question is answered.
pub(crate) trait Method: Send + Sync {
    /// Works at it until there is an answer.
    fn answer(&self, desk: &mut Desk<'_>) -> Result<String, Halt>;
}

/// A planner that keeps one history and has no judge.
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

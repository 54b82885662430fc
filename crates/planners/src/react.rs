//! ReAct: one model writes thought, action and input in one go, sees what the tool shows, and goes on. FireAct is ReAct by a model that was
//! trained on whole trajectories.

use std::sync::Arc;

use autoact_model::Backend;
use autoact_prompt::{Role, cue};

use crate::form::{parse_step, step};
use crate::opening::{opening, shown};
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

const DUTY: &str = "Answer the question with the tools, in rounds. In each round write one thought about what is still unknown, then the \
                    tool to use, then its input on one line; what the tool shows follows as an observation. Choose the last tool once the \
                    observations hold the answer; its input is the answer itself, as short as possible.";

/// One voice for everything.
pub(crate) struct React {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    /// The trained adapter; `None`: the base, which is prompted.
    pub(crate) adapter: Option<String>,
    pub(crate) options: PlannerOptions,
}

impl Planner for React {
    fn name(&self) -> &'static str {
        self.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut session = Session::new(self.backend.as_ref(), self.adapter.as_deref(), &self.options, seed);
        let mut scratch = Scratch::new(question, tools, self.options.limits.max_steps);
        // a trained model was trained on the bare transcript
        let opening = if self.adapter.is_some() { String::new() } else { prompt(tools, &self.options) };
        let answer = rounds(&mut session, &mut scratch, tools, &opening);
        session.outcome(answer, scratch.rounds(), scratch.text())
    }
}

/// What stands before a prompted ReAct transcript.
pub(crate) fn prompt(tools: &Toolbox, options: &PlannerOptions) -> String {
    opening(DUTY, tools, options, |example| shown(example, tools.specs()))
}

/// Rounds until there is an answer.
pub(crate) fn rounds(session: &mut Session<'_>, scratch: &mut Scratch<'_>, tools: &Toolbox, opening: &str) -> Result<String, Halt> {
    loop {
        scratch.check()?;
        let reply = session.ask(format!("{opening}{}{}", scratch.text(), cue(Role::Plan)), step(tools.specs()))?;
        let (thought, tool, input) = parse_step(&reply)?;
        scratch.choose(thought, tool)?;
        if let Some(answer) = scratch.run(input) {
            return Ok(answer);
        }
    }
}

//! ReAct (<https://arxiv.org/abs/2210.03629>): one model generates thought, action and input in one
//! reply, gets the observation, and continues. FireAct (<https://arxiv.org/abs/2310.05915>) is
//! ReAct with a model that was trained on whole trajectories.

use autoact_prompt::{Role, cue};

use crate::form::{parse_step, step};
use crate::frame::{Desk, Method};
use crate::opening::shown;
use crate::session::Halt;

const DUTY: &str = "Answer the question with the tools, in rounds. In each round write one thought about what is still unknown, then the \
                    tool to use, then its input on one line; what the tool shows follows as an observation. Choose the last tool once the \
                    observations hold the answer; its input is the answer itself, as short as possible.";

/// One model for all parts of a step.
pub(crate) struct React {
    /// Whether the prompt is the transcript alone, on which trained models were trained.
    pub(crate) bare: bool,
}

impl Method for React {
    fn answer(&self, desk: &mut Desk<'_>) -> Result<String, Halt> {
        let opening = if self.bare { String::new() } else { prompt(desk) };
        rounds(desk, &opening)
    }
}

/// The text before the transcript of a prompted ReAct.
pub(crate) fn prompt(desk: &Desk<'_>) -> String {
    desk.opening(DUTY, |example| shown(example, desk.tools.specs()))
}

/// Runs rounds until there is an answer.
pub(crate) fn rounds(desk: &mut Desk<'_>, opening: &str) -> Result<String, Halt> {
    loop {
        desk.scratch.check()?;
        let asked = format!("{opening}{}{}", desk.scratch.text(), cue(Role::Plan));
        let (thought, tool, input) = parse_step(&desk.session.ask(asked, step(desk.tools.specs()))?)?;
        desk.scratch.choose(thought, tool)?;
        if let Some(answer) = desk.scratch.run(input) {
            return Ok(answer);
        }
    }
}

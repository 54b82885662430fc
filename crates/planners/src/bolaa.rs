//! BOLAA: a controller chooses among labour agents and tells the chosen one what to do; each labour agent knows one action only.
//!
//! Our labour agents are one per tool, the one that answers included. A labour agent is shown its own tool alone, the history and the
//! controller's message.

use std::sync::Arc;

use autoact_model::Backend;
use autoact_prompt::{Role, cue, parse_input, parse_plan, transcript};
use autoact_trajectory::Trajectory;

use crate::form::role;
use crate::opening::{opening, shown};
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

const CONTROLLER: &str = "You control a group of agents that answers a question; each agent knows one tool. In each round write a message that \
                          says what is needed next after `Thought:`, then the agent that gets it after `Action:`. Choose the agent that \
                          answers once the observations hold the answer.";

/// A controller and its labour agents.
pub(crate) struct Bolaa {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: PlannerOptions,
}

impl Planner for Bolaa {
    fn name(&self) -> &'static str {
        self.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut session = Session::new(self.backend.as_ref(), None, &self.options, seed);
        let mut scratch = Scratch::new(question, tools, self.options.limits.max_steps);
        let answer = self.rounds(tools, &mut session, &mut scratch);
        session.outcome(answer, scratch.rounds(), scratch.text())
    }
}

impl Bolaa {
    fn rounds(&self, tools: &Toolbox, session: &mut Session<'_>, scratch: &mut Scratch<'_>) -> Result<String, Halt> {
        let controller = opening(CONTROLLER, tools, &self.options, |example| shown(example, tools.specs()));
        loop {
            scratch.check()?;
            let asked = format!("{controller}{}{}", scratch.text(), cue(Role::Plan));
            let (message, agent) = parse_plan(&session.ask(asked, role(Role::Plan, tools.specs()))?)?;
            scratch.choose(message, agent.clone())?;
            let reply = session.ask(self.labour(&agent, tools, scratch.trajectory()), role(Role::Tool, tools.specs()))?;
            if let Some(answer) = scratch.run(parse_input(&reply)?) {
                return Ok(answer);
            }
        }
    }

    /// What a labour agent is asked.
    fn labour(&self, agent: &str, tools: &Toolbox, history: &Trajectory) -> String {
        let own: Vec<_> = tools.specs().iter().filter(|spec| spec.name == agent).cloned().collect();
        let mut text = String::new();
        if self.options.instructions {
            let told = own.first().map(|spec| spec.definition.as_str()).unwrap_or_default();
            text = format!(
                "You are the agent `{agent}` of a group that answers a question. Your one tool: {told} Read the history and the controller's \
                 message, and write your tool's input on one line{}.\n\n",
                if tools.is_finish(agent) { ": the answer itself, as short as possible" } else { "" }
            );
        }
        text.push_str(&transcript(&Trajectory { tools: own, ..history.clone() }));
        text.push_str(cue(Role::Tool));
        text
    }
}

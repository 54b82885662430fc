//! BOLAA (<https://arxiv.org/abs/2308.05960>): a controller chooses among labour agents and sends
//! the chosen one a message. Each labour agent has a single action.
//!
//! Here there is one labour agent for each tool, including the terminal tool. Its prompt has its
//! own tool, the history and the controller's message.

use autoact_prompt::{Role, cue, parse_input, parse_plan, transcript};
use autoact_trajectory::Trajectory;

use crate::form::role;
use crate::frame::{Desk, Method};
use crate::opening::shown;
use crate::session::Halt;

const CONTROLLER: &str = "You control a group of agents that answers a question; each agent knows one tool. In each round write a message that \
                          says what is needed next after `Thought:`, then the agent that gets it after `Action:`. Choose the agent that \
                          answers once the observations hold the answer.";

/// A controller and its labour agents.
pub(crate) struct Bolaa;

impl Method for Bolaa {
    fn answer(&self, desk: &mut Desk<'_>) -> Result<String, Halt> {
        let specs = desk.tools.specs();
        let controller = desk.opening(CONTROLLER, |example| shown(example, specs));
        loop {
            desk.scratch.check()?;
            let asked = format!("{controller}{}{}", desk.scratch.text(), cue(Role::Plan));
            let (message, agent) = parse_plan(&desk.session.ask(asked, role(Role::Plan, specs))?)?;
            desk.scratch.choose(message, agent.clone())?;
            let asked = labour(desk, &agent);
            let reply = desk.session.ask(asked, role(Role::Tool, specs))?;
            if let Some(answer) = desk.scratch.run(parse_input(&reply)?) {
                return Ok(answer);
            }
        }
    }
}

/// The prompt of a labour agent.
fn labour(desk: &Desk<'_>, agent: &str) -> String {
    let tools = desk.tools;
    let own: Vec<_> = tools.specs().iter().filter(|spec| spec.name == agent).cloned().collect();
    let mut text = String::new();
    if desk.options.instructions {
        let told = own.first().map(|spec| spec.definition.as_str()).unwrap_or_default();
        text = format!(
            "You are the agent `{agent}` of a group that answers a question. Your one tool: {told} Read the history and the controller's \
             message, and write your tool's input on one line{}.\n\n",
            if tools.is_finish(agent) { ": the answer itself, as short as possible" } else { "" }
        );
    }
    text.push_str(&transcript(&Trajectory { tools: own, ..desk.scratch.trajectory().clone() }));
    text.push_str(cue(Role::Tool));
    text
}

//! Chameleon (<https://arxiv.org/abs/2304.09842>): the sequence of tools is planned first and run
//! afterwards. The model generates each tool's input just before its run.

use autoact_prompt::{Role, cue, parse_input};

use crate::form::{parse_sequence, role, sequence};
use crate::frame::{Desk, Method};
use crate::opening::{shown, task};
use crate::session::Halt;

const PLANNER: &str = "Write, on one line after `Plan:`, the tools that will answer the question in the order of their use, separated by \
                       commas. A tool may be used several times; the last one gives the answer.";
const WORKER: &str = "A question is answered with tools in an order that was planned before. Write the input of the tool whose turn it is, \
                      on one line. The input of the last one is the answer itself, as short as possible.";

/// Plans all tools, then runs them.
pub(crate) struct Chameleon;

impl Method for Chameleon {
    fn answer(&self, desk: &mut Desk<'_>) -> Result<String, Halt> {
        let tools = desk.tools;
        let finish = tools.finish();
        let planner = desk.opening(PLANNER, |example| {
            let order: Vec<&str> = example.working().map(|(_, tool, _)| tool).chain([finish]).collect();
            format!("{}Plan: {}\n", task(example.question(), tools.specs()), order.join(", "))
        });
        let most = (desk.options.limits.max_steps as usize).saturating_sub(1);
        let asked = format!("{planner}{}Plan:", task(desk.question, tools.specs()));
        let reply = desk.session.ask(asked, sequence(tools.working(), finish, most))?;
        desk.before = format!("Plan:{reply}");
        let order = parse_sequence(&reply, finish)?;
        let worker = desk.opening(WORKER, |example| shown(example, tools.specs()));
        for tool in order {
            desk.scratch.choose(format!("The plan goes on with {tool}."), tool)?;
            let asked = format!("{worker}{}{}", desk.scratch.text(), cue(Role::Tool));
            let reply = desk.session.ask(asked, role(Role::Tool, tools.specs()))?;
            if let Some(answer) = desk.scratch.run(parse_input(&reply)?) {
                return Ok(answer);
            }
        }
        // the grammar lets every plan end with the terminal tool
        Err(Halt::max_steps())
    }
}

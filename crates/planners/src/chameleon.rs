//! Chameleon: the whole sequence of tools is planned first, then run in order; the model writes each tool's input when its turn comes.

use std::sync::Arc;

use autoact_model::Backend;
use autoact_prompt::{Role, cue, parse_input};

use crate::form::{parse_sequence, role, sequence};
use crate::opening::{opening, shown, task};
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

const PLANNER: &str = "Write, on one line after `Plan:`, the tools that will answer the question in the order of their use, separated by \
                       commas. A tool may be used several times; the last one gives the answer.";
const WORKER: &str = "A question is answered with tools in an order that was planned before. Write the input of the tool whose turn it is, \
                      on one line. The input of the last one is the answer itself, as short as possible.";

/// Plan first, act then.
pub(crate) struct Chameleon {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: PlannerOptions,
}

impl Planner for Chameleon {
    fn name(&self) -> &'static str {
        self.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut session = Session::new(self.backend.as_ref(), None, &self.options, seed);
        let mut scratch = Scratch::new(question, tools, self.options.limits.max_steps);
        let mut planned = String::new();
        let answer = self.work(question, tools, &mut session, &mut scratch, &mut planned);
        let transcript = format!("{planned}{}", scratch.text());
        session.outcome(answer, scratch.rounds(), transcript)
    }
}

impl Chameleon {
    fn work(
        &self,
        question: &str,
        tools: &Toolbox,
        session: &mut Session<'_>,
        scratch: &mut Scratch<'_>,
        planned: &mut String,
    ) -> Result<String, Halt> {
        let finish = tools.finish();
        let planner = opening(PLANNER, tools, &self.options, |example| {
            let order: Vec<&str> = example.working().map(|(_, tool, _)| tool).chain([finish]).collect();
            format!("{}Plan: {}\n", task(example.question(), tools.specs()), order.join(", "))
        });
        let most = (self.options.limits.max_steps as usize).saturating_sub(1);
        let asked = format!("{planner}{}Plan:", task(question, tools.specs()));
        let reply = session.ask(asked, sequence(tools.working(), finish, most))?;
        *planned = format!("Plan:{reply}");
        let order = parse_sequence(&reply, finish)?;
        let worker = opening(WORKER, tools, &self.options, |example| shown(example, tools.specs()));
        for tool in order {
            scratch.choose(format!("The plan goes on with {tool}."), tool)?;
            let reply = session.ask(format!("{worker}{}{}", scratch.text(), cue(Role::Tool)), role(Role::Tool, tools.specs()))?;
            if let Some(answer) = scratch.run(parse_input(&reply)?) {
                return Ok(answer);
            }
        }
        // a plan ends with the answer: its form says so
        Err(Halt::max_steps())
    }
}

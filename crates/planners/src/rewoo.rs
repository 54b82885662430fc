//! ReWOO: reasoning without observation. A planner writes all steps at once, with placeholders (`#E1`) for evidence that is still to come;
//! a worker gathers the evidence; a solver answers from plan and evidence.
//!
//! Our tools want a title or a few words where ReWOO's accept a paragraph, so a placeholder is not replaced by the evidence itself: the
//! worker reads the evidence and writes the input that the placeholder stands for.

use std::sync::Arc;

use autoact_model::Backend;
use autoact_prompt::{Role, cue, parse_input};

use crate::form::{Planned, parse_plan, plan, role};
use crate::opening::{Example, opening, shown, task};
use crate::outcome::Outcome;
use crate::planner::{Planner, PlannerOptions};
use crate::scratch::Scratch;
use crate::session::{Halt, Session};
use crate::toolbox::Toolbox;

const PLANNER: &str = "Plan how the question can be answered with the tools, without using them yet. For every step write what it is for after \
                       `Plan:`, and on the next line the call as `#E1 = Tool[input]`. An input may name the evidence of an earlier step, \
                       such as `#E1`. After the last step write `Solve`.";
const WORKER: &str = "A plan to answer a question is carried out. The next tool's input was planned before its evidence was known. Write the \
                      input on one line, with what `#E1` and the like stand for in place of them.";
const SOLVER: &str = "A plan to answer a question was carried out. Write the answer that the observations give, as short as possible, on one \
                      line.";

/// Planner, worker and solver.
pub(crate) struct Rewoo {
    pub(crate) name: &'static str,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) options: PlannerOptions,
}

impl Planner for Rewoo {
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

impl Rewoo {
    fn work(
        &self,
        question: &str,
        tools: &Toolbox,
        session: &mut Session<'_>,
        scratch: &mut Scratch<'_>,
        planned: &mut String,
    ) -> Result<String, Halt> {
        let planner = opening(PLANNER, tools, &self.options, |example| example_plan(example, tools));
        let most = (self.options.limits.max_steps as usize).saturating_sub(1);
        let asked = format!("{planner}{}Plan:", task(question, tools.specs()));
        let reply = session.ask(asked, plan(tools.working(), most))?;
        *planned = format!("Plan:{reply}");
        for (index, step) in parse_plan(&reply)?.into_iter().enumerate() {
            self.gather(index + 1, step, tools, session, scratch)?;
        }
        let solver = opening(SOLVER, tools, &self.options, |example| shown(example, tools.specs()));
        scratch.choose("All evidence is there.".to_owned(), tools.finish().to_owned())?;
        let reply = session.ask(format!("{solver}{}{}", scratch.text(), cue(Role::Tool)), role(Role::Tool, tools.specs()))?;
        let answer = parse_input(&reply)?;
        Ok(scratch.run(answer.clone()).unwrap_or(answer))
    }

    /// The evidence of one step.
    fn gather(
        &self,
        number: usize,
        step: Planned,
        tools: &Toolbox,
        session: &mut Session<'_>,
        scratch: &mut Scratch<'_>,
    ) -> Result<(), Halt> {
        let Planned { purpose, tool, input } = step;
        if !refers(&input, number) {
            scratch.choose(format!("#E{number}: {purpose}"), tool)?;
            scratch.run(input);
            return Ok(());
        }
        scratch.choose(format!("#E{number}: {purpose} ({input})"), tool)?;
        let worker = opening(WORKER, tools, &self.options, |example| shown(example, tools.specs()));
        let reply = session.ask(format!("{worker}{}{}", scratch.text(), cue(Role::Tool)), role(Role::Tool, tools.specs()))?;
        scratch.run(parse_input(&reply)?);
        Ok(())
    }
}

/// Whether the input of step `number` names the evidence of an earlier one.
fn refers(input: &str, number: usize) -> bool {
    (1..number).any(|earlier| {
        let mark = format!("#E{earlier}");
        input.match_indices(&mark).any(|(at, _)| !input[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// An example as a plan; a step that uses what the step before showed names it.
fn example_plan(example: &Example, tools: &Toolbox) -> String {
    let mut text = task(example.question(), tools.specs());
    for (index, (purpose, tool, input)) in example.working().enumerate() {
        let known = example.question().contains(input.split(' ').next_back().unwrap_or(input));
        let input = if index == 0 || known { input.to_owned() } else { format!("#E{index}") };
        text.push_str(&format!("Plan: {purpose}\n#E{} = {tool}[{input}]\n", index + 1));
    }
    text.push_str("Solve\n");
    text
}

#[cfg(test)]
mod tests {
    use super::refers;

    #[test]
    fn placeholders_are_of_earlier_steps() {
        assert!(refers("capital of #E1", 2));
        assert!(!refers("capital of #E2", 2));
        assert!(!refers("#E11", 2));
        assert!(refers("#E11", 12));
        assert!(!refers("Loire", 3));
    }
}

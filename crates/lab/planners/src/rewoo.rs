//! ReWOO (<https://arxiv.org/abs/2305.18323>): reasoning without observation. A planner generates
//! all steps at once, with placeholders (`#E1`) for later evidence. A worker gathers the evidence.
//! A solver answers from the plan and the evidence.
//!
//! The tools here need a title or a few words, whereas ReWOO's accept a paragraph. So a placeholder
//! is not replaced by the evidence itself: the worker generates the input from the evidence.

use autoact_prompt::{Role, cue, parse_input};

use crate::form::{Planned, parse_plan, plan, role};
use crate::frame::{Desk, Method};
use crate::opening::{Example, shown, task};
use crate::session::Halt;
use crate::toolbox::Toolbox;

const PLANNER: &str = "Plan how the question can be answered with the tools, without using them yet. For every step write what it is for after \
                       `Plan:`, and on the next line the call as `#E1 = Tool[input]`. An input may name the evidence of an earlier step, \
                       such as `#E1`. After the last step write `Solve`.";
const WORKER: &str = "A plan to answer a question is carried out. The next tool's input was planned before its evidence was known. Write the \
                      input on one line, with what `#E1` and the like stand for in place of them.";
const SOLVER: &str = "A plan to answer a question was carried out. Write the answer that the observations give, as short as possible, on one \
                      line.";

/// Planner, worker and solver.
pub(crate) struct Rewoo;

impl Method for Rewoo {
    fn answer(&self, desk: &mut Desk<'_>) -> Result<String, Halt> {
        let tools = desk.tools;
        let planner = desk.opening(PLANNER, |example| example_plan(example, tools));
        let most = (desk.options.limits.max_steps as usize).saturating_sub(1);
        let asked = format!("{planner}{}Plan:", task(desk.question, tools.specs()));
        let reply = desk.session.ask(asked, plan(tools.working(), most))?;
        desk.before = format!("Plan:{reply}");
        for (index, step) in parse_plan(&reply)?.into_iter().enumerate() {
            gather(desk, index + 1, step)?;
        }
        desk.scratch.choose("All evidence is there.".to_owned(), tools.finish().to_owned())?;
        let answer = write_input(desk, SOLVER)?;
        Ok(desk.scratch.run(answer.clone()).unwrap_or(answer))
    }
}

/// Gathers the evidence of one step.
fn gather(desk: &mut Desk<'_>, number: usize, step: Planned) -> Result<(), Halt> {
    let Planned { purpose, tool, input } = step;
    if refers(&input, number) {
        desk.scratch.choose(format!("#E{number}: {purpose} ({input})"), tool)?;
        let known = write_input(desk, WORKER)?;
        desk.scratch.run(known);
    } else {
        desk.scratch.choose(format!("#E{number}: {purpose}"), tool)?;
        desk.scratch.run(input);
    }
    Ok(())
}

/// The input of the current round, generated under the instruction `duty`.
fn write_input(desk: &mut Desk<'_>, duty: &str) -> Result<String, Halt> {
    let specs = desk.tools.specs();
    let asked = format!("{}{}{}", desk.opening(duty, |example| shown(example, specs)), desk.scratch.text(), cue(Role::Tool));
    Ok(parse_input(&desk.session.ask(asked, role(Role::Tool, specs))?)?)
}

/// Whether the input of step `number` refers to the evidence of an earlier step.
fn refers(input: &str, number: usize) -> bool {
    (1..number).any(|earlier| {
        let mark = format!("#E{earlier}");
        input.match_indices(&mark).any(|(at, _)| !input[at + mark.len()..].starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// An example as a plan. A step that depends on the previous observation refers to it.
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

//! Chain of thought (<https://arxiv.org/abs/2201.11903>): the model reasons and answers without
//! tools.

use autoact_prompt::{Role, cue};
use autoact_trajectory::ToolSpec;

use crate::form::{parse_step, reasoning};
use crate::frame::Speaker;
use crate::opening::{opening, task};
use crate::outcome::Outcome;
use crate::planner::Planner;
use crate::toolbox::Toolbox;

const DUTY: &str = "Answer the question from what you know. Think step by step on one line after `Thought:`, then give the answer, as short \
                    as possible, as the input of the last action.";

/// One reply: reasoning, then the answer.
pub(crate) struct Cot(pub(crate) Speaker);

impl Planner for Cot {
    fn name(&self) -> &'static str {
        self.0.name
    }

    fn solve(&self, question: &str, tools: &Toolbox, seed: u64) -> Outcome {
        let mut session = self.0.session(seed);
        let answering: Vec<ToolSpec> = tools.specs().iter().filter(|spec| spec.is_answer()).cloned().collect();
        let finish = tools.finish();
        let opening = opening(DUTY, tools, &self.0.options, |example| {
            let (reasoning, answer) = (example.reasoning(), example.answer());
            format!("{}Thought: {reasoning}\nAction: {finish}\nInput: {answer}\n", task(example.question(), &answering))
        });
        let asked = format!("{}{}", task(question, &answering), cue(Role::Plan));
        let reply = session.ask(format!("{opening}{asked}"), reasoning(finish));
        let said = reply.as_ref().map_or("", String::as_str);
        let transcript = format!("{asked}{said}");
        let answer = reply.and_then(|reply| Ok(parse_step(&reply)?.2));
        session.outcome(answer, 1, transcript)
    }
}

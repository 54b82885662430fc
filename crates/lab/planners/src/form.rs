//! Grammars of the planners' replies, where they differ from the agents', and their parsers.

use autoact_prompt::{Expect, Role};
use autoact_trajectory::ToolSpec;

/// Maximum length of a thought, in characters.
const MAX_THOUGHT: usize = 400;
/// Maximum length of a chain of thought, in characters.
const MAX_REASONING: usize = 900;
/// Maximum length of an input, in characters.
const MAX_INPUT: usize = 300;
/// Maximum length of a purpose or an input in a plan, in characters.
const MAX_PLANNED: usize = 160;
/// Maximum number of tools in a plan, without the terminal tool.
pub(crate) const MAX_PLAN: usize = 6;
/// Maximum number of tokens of a thought with its action and input.
const STEP_TOKENS: usize = 384;
/// Maximum number of tokens of a line of tool names.
const SEQUENCE_TOKENS: usize = 64;
/// Maximum number of tokens of a plan with purposes and inputs.
const PLAN_TOKENS: usize = 640;

/// A reply that lacks a part because it was cut short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the reply ends before its `{missing}`: `{reply}`")]
pub(crate) struct Cut {
    missing: &'static str,
    reply: String,
}

fn cut(missing: &'static str, reply: &str) -> Cut {
    Cut { missing, reply: reply.to_owned() }
}

/// A regular expression that matches one of the tools' names.
fn names<'a>(specs: impl Iterator<Item = &'a ToolSpec>) -> String {
    let escaped: Vec<String> = specs.map(|spec| escape(&spec.name)).collect();
    format!("({})", escaped.join("|"))
}

fn escape(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || c == '_' || c == ' ';
    name.chars().flat_map(|c| (!plain(c)).then_some('\\').into_iter().chain([c])).collect()
}

/// The grammar of an agent of the group.
pub(crate) fn role(role: Role, specs: &[ToolSpec]) -> Expect {
    Expect::new(role, specs)
}

/// The grammar of a thought, an action and its input in one reply.
pub(crate) fn step(specs: &[ToolSpec]) -> Expect {
    let tools = names(specs.iter());
    Expect::regex(format!(r" [^\n]{{1,{MAX_THOUGHT}}}\nAction: {tools}\nInput: [^\n]{{1,{MAX_INPUT}}}\n"), STEP_TOKENS)
}

/// The grammar of reasoning and an answer in one reply.
pub(crate) fn reasoning(finish: &str) -> Expect {
    let finish = escape(finish);
    let regex = format!(r" [^\n]{{1,{MAX_REASONING}}}\nAction: {finish}\nInput: [^\n]{{1,{MAX_INPUT}}}\n");
    Expect::regex(regex, STEP_TOKENS)
}

/// Parses thought, tool and input.
pub(crate) fn parse_step(reply: &str) -> Result<(String, String, String), Cut> {
    let (thought, rest) = reply.split_once("\nAction:").ok_or_else(|| cut("Action", reply))?;
    let (tool, input) = rest.split_once("\nInput:").ok_or_else(|| cut("Input", reply))?;
    let input = input.trim();
    if input.is_empty() {
        return Err(cut("Input", reply));
    }
    Ok((thought.trim().to_owned(), tool.trim().to_owned(), input.to_owned()))
}

/// The grammar of a line of at most `most` tools, followed by the terminal tool.
pub(crate) fn sequence<'a>(working: impl Iterator<Item = &'a ToolSpec>, finish: &str, most: usize) -> Expect {
    let most = most.min(MAX_PLAN);
    Expect::regex(format!(r" ({}, ){{0,{most}}}{}\n", names(working), escape(finish)), SEQUENCE_TOKENS)
}

/// Parses the tools of a [`sequence`].
pub(crate) fn parse_sequence(reply: &str, finish: &str) -> Result<Vec<String>, Cut> {
    let tools: Vec<String> = reply.trim().split(", ").map(str::to_owned).collect();
    // a line that was cut does not end with the terminal tool
    if tools.last().map(String::as_str) == Some(finish) { Ok(tools) } else { Err(cut("answer", reply)) }
}

/// The end of a plan with placeholders.
const PLANNED: &str = "Solve\n";

/// A step of a plan: its purpose, its tool, and an input that may refer to earlier evidence
/// (`#E1`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Planned {
    pub(crate) purpose: String,
    pub(crate) tool: String,
    pub(crate) input: String,
}

/// The grammar of a plan: lines `Plan: …` (the first label is in the prompt) and
/// `#E1 = Tool[input]`, then `Solve`.
pub(crate) fn plan<'a>(working: impl Iterator<Item = &'a ToolSpec>, most: usize) -> Expect {
    let tools = names(working);
    let step = |number: usize| format!(r" [^\n]{{1,{MAX_PLANNED}}}\n#E{number} = {tools}\[[^\n\]]{{1,{MAX_PLANNED}}}\]\n");
    let mut regex = String::new();
    for number in (2..=most.clamp(1, MAX_PLAN)).rev() {
        regex = format!("(Plan:{}{regex})?", step(number));
    }
    Expect::regex(format!(r"{}{regex}Solve\n", step(1)), PLAN_TOKENS)
}

/// Parses the steps of a [`plan`].
pub(crate) fn parse_plan(reply: &str) -> Result<Vec<Planned>, Cut> {
    let steps = reply.strip_suffix(PLANNED).ok_or_else(|| cut("Solve", reply))?;
    steps
        .split("Plan:")
        .map(|step| {
            let (purpose, call) = step.split_once("\n#E").ok_or_else(|| cut("#E", step))?;
            let (_, call) = call.split_once(" = ").ok_or_else(|| cut("=", step))?;
            let (tool, input) = call.split_once('[').ok_or_else(|| cut("[", step))?;
            let input = input.trim_end().strip_suffix(']').ok_or_else(|| cut("]", step))?;
            Ok(Planned { purpose: purpose.trim().to_owned(), tool: tool.to_owned(), input: input.trim().to_owned() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_parse() {
        let parsed = parse_step(" I need it.\nAction: Retrieve\nInput: Loire\n").unwrap();
        assert_eq!(parsed, ("I need it.".into(), "Retrieve".into(), "Loire".into()));
        for reply in ["", " I need", " I need it.\nAction: Retr", " I need it.\nAction: Retrieve\nInput: \n"] {
            assert!(parse_step(reply).is_err(), "{reply}");
        }
    }

    #[test]
    fn sequences_parse() {
        assert_eq!(parse_sequence(" Search, Retrieve, Finish\n", "Finish").unwrap(), ["Search", "Retrieve", "Finish"]);
        assert!(parse_sequence(" Search, Retri", "Finish").is_err());
    }

    #[test]
    fn plans_parse() {
        let plan = parse_plan(" its country\n#E1 = Retrieve[Loire]\nPlan: the capital\n#E2 = Search[capital of #E1]\nSolve\n").unwrap();
        assert_eq!(plan[0], Planned { purpose: "its country".into(), tool: "Retrieve".into(), input: "Loire".into() });
        assert_eq!((plan.len(), plan[1].input.as_str()), (2, "capital of #E1"));
        for reply in ["", "Solve\n", " its country\n#E1 = Retrieve[Loire]\n", " x\n#E1 = Retrieve\nSolve\n"] {
            assert!(parse_plan(reply).is_err(), "{reply}");
        }
    }
}

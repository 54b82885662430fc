//! A complete reply as a value of the domain.

use autoact_prompt::{parse_input, parse_plan, parse_reflection};
use autoact_trajectory::{Reflection, Thought, ToolSpec};

use crate::error::ParseError;

/// Plan-Agent's thought and the tool it chose, which is one of `tools`.
///
/// # Errors
/// A part is missing, or the tool is none of `tools`.
pub fn thought(reply: &str, tools: &[ToolSpec]) -> Result<Thought, ParseError> {
    let (thought, tool) = parse_plan(reply)?;
    if tools.iter().any(|spec| spec.name == tool) {
        return Ok(Thought { thought, tool });
    }
    Err(ParseError::UnknownTool { tool, known: tools.iter().map(|spec| spec.name.clone()).collect() })
}

/// Tool-Agent's parameters.
///
/// # Errors
/// There are none.
pub fn params(reply: &str) -> Result<String, ParseError> {
    Ok(parse_input(reply)?)
}

/// Reflect-Agent's thought and verdict.
///
/// # Errors
/// A part is missing.
pub fn reflection(reply: &str) -> Result<Reflection, ParseError> {
    let (thought, verdict) = parse_reflection(reply)?;
    Ok(Reflection { thought, verdict })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::tools;

    #[test]
    fn a_tool_is_one_of_the_tasks_tools() {
        let tools = tools();
        assert_eq!(thought(" So.\nAction: Finish\n", &tools).unwrap().tool, "Finish");
        for (reply, tool) in [(" So.\nAction: Retr", "Retr"), (" So.\nAction: ", ""), (" So.\nAction:\n", "")] {
            match thought(reply, &tools) {
                Err(ParseError::UnknownTool { tool: found, known }) => {
                    assert_eq!((found.as_str(), known), (tool, vec!["Retrieve".to_owned(), "Finish".to_owned()]));
                }
                other => panic!("{reply}: {other:?}"),
            }
        }
        assert!(matches!(thought(" So", &tools), Err(ParseError::Form(_))));
    }
}

//! A complete reply as a value of the domain.

use autoact_model::Generated;
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

/// Tool-Agent's parameters for `tool`. A JSON object gets its canonical form; one that was cut
/// stays as it is, and the tool's arguments are refused before it runs.
///
/// # Errors
/// There are none.
pub fn params(reply: &str, tool: Option<&ToolSpec>) -> Result<String, ParseError> {
    let line = parse_input(reply)?;
    Ok(match tool.and_then(ToolSpec::object_schema) {
        Some(schema) => schema.canonical(line),
        None => line,
    })
}

/// Reflect-Agent's thought and verdict, with the verdict's log-odds where the model gave them.
///
/// # Errors
/// A part is missing.
pub fn reflection(reply: &Generated) -> Result<Reflection, ParseError> {
    let (thought, verdict) = parse_reflection(&reply.text)?;
    Ok(Reflection { log_odds: reply.scores.as_ref().and_then(|scores| scores.log_odds), ..Reflection::new(thought, verdict) })
}

#[cfg(test)]
mod tests {
    use autoact_trajectory::ParameterSchema;

    use super::*;
    use crate::testing::tools;

    #[test]
    fn parameters_are_a_line_or_canonical_json() {
        let plain = &tools()[0];
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}}}"#;
        let typed = ToolSpec { schema: Some(ParameterSchema::parse(schema).unwrap()), ..plain.clone() };
        let reply = " { \"b\": \"x\",\n \"a\": 1 }\n";
        assert_eq!(params(reply, Some(&typed)).unwrap(), r#"{"b":"x","a":1}"#);
        assert_eq!(params(" { \"a\": 1 }\n", Some(plain)).unwrap(), "{ \"a\": 1 }");
        assert_eq!(params(" { \"a\": 1 }\n", None).unwrap(), "{ \"a\": 1 }");
        // one that was cut is refused where it would be run
        assert_eq!(params(" {\"b\": \"x", Some(&typed)).unwrap(), "{\"b\": \"x");
        assert!(matches!(params(" \n", Some(&typed)), Err(ParseError::Form(_))));
    }

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

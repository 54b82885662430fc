//! A tool as a chat's system message describes it.

use autoact_base::lines::one_line;
use autoact_trajectory::ToolSpec;

/// Usage and definition; for a tool with arguments also what they are, and calls that make sense.
/// A tool without a schema and without examples takes one line here.
pub fn described(tool: &ToolSpec) -> String {
    let mut text = format!("- {}: {}", tool.usage, tool.definition);
    if tool.object_schema().is_some() {
        text.push_str(" Its input is a JSON object on one line.");
    }
    if !tool.examples.is_empty() {
        let examples: Vec<String> = tool.examples.iter().map(|example| one_line(example)).collect();
        text.push_str(&format!(" For example: {}", examples.join(" or ")));
    }
    text.push('\n');
    for (name, property) in tool.schema.iter().flat_map(|schema| schema.properties()) {
        if let Some(description) = property["description"].as_str() {
            text.push_str(&format!("  - {}: {}\n", one_line(name), one_line(description)));
        }
    }
    text
}

#[cfg(test)]
mod tests {

    use autoact_trajectory::ParameterSchema;

    use super::*;

    fn tool(schema: Option<&str>, examples: &[&str]) -> ToolSpec {
        ToolSpec {
            definition: "Converts an amount.".into(),
            usage: "Convert[amount]".into(),
            schema: schema.map(|text| ParameterSchema::parse(text).unwrap()),
            examples: examples.iter().map(|example| (*example).to_owned()).collect(),
            ..ToolSpec::new("Convert")
        }
    }

    #[test]
    fn arguments_and_examples_are_told_where_there_are_any() {
        assert_eq!(described(&tool(None, &[])), "- Convert[amount]: Converts an amount.\n");
        assert_eq!(described(&tool(None, &["3 km", "1 mi"])), "- Convert[amount]: Converts an amount. For example: 3 km or 1 mi\n");
        let schema = r#"{"type":"object","properties":{"amount":{"type":"number","description":"how\n- much"},"to":{"type":"string"}}}"#;
        let expected = "- Convert[amount]: Converts an amount. Its input is a JSON object on one line. For example: {\"amount\":3}\n  - amount: how - much\n";
        assert_eq!(described(&tool(Some(schema), &[r#"{"amount":3}"#])), expected);
    }
}

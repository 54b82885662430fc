//! What a model is told of a call that was refused, so that it can write a better one.

use std::collections::BTreeSet;

use autoact_base::lines::one_line;
use autoact_trajectory::{ToolSpec, cut};
use serde_json::Value;

/// The longest text.
pub(crate) const LONGEST: usize = 1200;
/// How much of it says what was wrong.
const REASON: usize = 500;
/// Properties whose schema is shown.
const SHOWN: usize = 4;
/// How much of a schema is shown.
const SCHEMA: usize = 160;

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused<'a> {
    /// The arguments do not satisfy the schema: what the validator says.
    Invalid(&'a str),
    /// The server answered 400 or 422: the status and the body.
    Response {
        /// The status.
        status: u16,
        /// The body.
        body: &'a str,
    },
}

/// What was wrong and what is expected, in at most 1,200 bytes on one line: the reason, the
/// schemas of the arguments that it names, those that are required, and the usage.
pub fn repair(spec: &ToolSpec, refused: Refused<'_>) -> String {
    let (reason, start) = match refused {
        Refused::Invalid(told) => (one_line(told), format!("{} was not run: ", spec.name)),
        Refused::Response { status, body } => (said(body), format!("{} was refused by the server (status {status}): ", spec.name)),
    };
    let mut text = format!("{start}{}.", cut(reason.trim_end_matches('.').to_owned(), REASON).0);
    if let Some(schema) = &spec.schema {
        let named: Vec<(&str, &Value)> = schema.properties().filter(|(name, _)| names(&reason, name)).take(SHOWN).collect();
        for (name, property) in named {
            text.push_str(&format!(" `{name}` is {}.", cut(one_line(&property.to_string()), SCHEMA).0));
        }
        let required: Vec<&str> = schema.properties().map(|(name, _)| name).filter(|name| schema.requires(name)).collect();
        if !required.is_empty() {
            text.push_str(&format!(" Required: {}.", required.join(", ")));
        }
    }
    text.push_str(&format!(" Usage: {}", spec.usage));
    if let Some(example) = spec.examples.first() {
        text.push_str(&format!(" Example: {example}"));
    }
    cut(one_line(&text), LONGEST).0
}

/// Whether a text names an argument, as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back().is_some_and(word);
        let after = text[at + name.len()..].chars().next().is_some_and(word);
        !name.is_empty() && !before && !after
    })
}

/// What a server's error says: the texts of its JSON with where they belong, otherwise the body.
fn said(body: &str) -> String {
    let Ok(value) = serde_json::from_str::<Value>(body) else { return one_line(body) };
    let mut found = Vec::new();
    collect(&value, "", &mut found, 0);
    let mut seen = BTreeSet::new();
    found.retain(|text| seen.insert(text.clone()));
    if found.is_empty() { one_line(body) } else { found.join("; ") }
}

/// Members that say where or what, not why.
const WHERE: [&str; 6] = ["loc", "path", "field", "name", "param", "pointer"];
/// Members that say nothing to a model.
const SILENT: [&str; 8] = ["type", "url", "instance", "timestamp", "trace_id", "request_id", "requestid", "status"];

fn collect(value: &Value, place: &str, found: &mut Vec<String>, depth: usize) {
    if found.len() >= 12 || depth > 8 {
        return;
    }
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            found.push(if place.is_empty() { one_line(text) } else { format!("{place}: {}", one_line(text)) });
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, place, found, depth + 1)),
        Value::Object(fields) => {
            let own = fields.iter().find(|(name, _)| WHERE.contains(&name.to_ascii_lowercase().as_str())).and_then(|(_, at)| location(at));
            let place = own.as_deref().unwrap_or(place);
            for (name, value) in fields {
                let lower = name.to_ascii_lowercase();
                if WHERE.contains(&lower.as_str()) || SILENT.contains(&lower.as_str()) {
                    continue;
                }
                let told = matches!(
                    lower.as_str(),
                    "error"
                        | "errors"
                        | "message"
                        | "msg"
                        | "detail"
                        | "details"
                        | "title"
                        | "reason"
                        | "description"
                        | "code"
                        | "violations"
                );
                // what is named otherwise is a field: `{"errors": {"amount": ["is too small"]}}`
                collect(value, if told || !place.is_empty() { place } else { name }, found, depth + 1);
            }
        }
        _ => {}
    }
}

fn location(at: &Value) -> Option<String> {
    match at {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().map(crate::style::text).collect();
            Some(parts.join("/"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use autoact_trajectory::{Effect, ParameterSchema};

    use super::*;

    fn spec() -> ToolSpec {
        let schema = r#"{"type":"object","properties":{"amount":{"type":"integer","minimum":1},"day":{"type":"string","format":"date"}},"required":["amount"]}"#;
        let schema = ParameterSchema::parse(schema).unwrap();
        ToolSpec {
            definition: "Books.".into(),
            usage: schema.usage("Book"),
            effect: Effect::SideEffect,
            timeout: Duration::from_secs(1),
            max_observation_bytes: 1000,
            schema: Some(schema),
            examples: vec![r#"{"amount":1}"#.into()],
            ..ToolSpec::new("Book")
        }
    }

    #[test]
    fn a_refusal_says_what_is_expected() {
        let text = repair(&spec(), Refused::Invalid("`/amount`: want integer, but got string"));
        assert!(text.contains("`amount` is {\"type\":\"integer\",\"minimum\":1}"), "{text}");
        assert!(text.contains("Required: amount.") && text.contains("Example: {\"amount\":1}") && !text.contains("`day` is"), "{text}");
    }

    #[test]
    fn a_servers_reasons_are_found_in_usual_forms() {
        for (body, expected) in [
            (r#"{"detail":[{"loc":["body","day"],"msg":"not a date","type":"value_error"}]}"#, "body/day: not a date"),
            (r#"{"errors":{"amount":["is too small"]}}"#, "amount: is too small"),
            (r#"{"error":{"message":"bad day"}}"#, "bad day"),
            (r#"{"title":"Invalid","invalid-params":[{"name":"day","reason":"past"}]}"#, "day: past"),
            ("Bad Request: day", "Bad Request: day"),
        ] {
            let text = repair(&spec(), Refused::Response { status: 422, body });
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn the_text_is_bounded() {
        let mut spec = spec();
        spec.usage = "x".repeat(5000);
        let text = repair(&spec, Refused::Response { status: 400, body: &"amount ".repeat(5000) });
        assert!(text.len() <= LONGEST && text.contains("`amount` is"), "{}", text.len());
    }
}

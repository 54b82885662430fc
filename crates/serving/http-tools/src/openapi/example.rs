//! A call as a model writes it, made of a schema.

use autoact_trajectory::{Arguments, ParameterSchema, arguments_line};
use serde_json::{Map, Value, json};

use super::check::Compiled;

/// The longest example: all of them stand in a model's prompt.
const LONGEST: usize = 400;
/// How deep values are made.
const DEPTH: usize = 6;

/// A line with the required arguments; none if no short one satisfies the schema.
pub(crate) fn line(schema: &ParameterSchema, compiled: &Compiled, shown: &Map<String, Value>) -> Option<String> {
    let mut arguments = Arguments::new();
    let required: Vec<(&str, &Value)> = schema.properties().filter(|(name, _)| schema.requires(name)).collect();
    for (name, property) in required {
        arguments.insert(name.to_owned(), sample(property, 0));
    }
    let mut best = None;
    // the document's values one by one, as long as they satisfy the schema
    if compiled.takes(&Value::Object(arguments.clone())) {
        best = Some(arguments.clone());
    }
    let mut any = false;
    for (name, value) in shown {
        let mut with = best.clone().unwrap_or_else(|| arguments.clone());
        let needed = schema.requires(name);
        // one optional argument shows how they are written
        if !needed && any {
            continue;
        }
        with.insert(name.clone(), value.clone());
        let fits = arguments_line(&with).len() <= LONGEST;
        if fits && compiled.takes(&Value::Object(with.clone())) {
            any |= !needed;
            best = Some(with);
        } else if needed && fits && best.is_none() {
            arguments = with;
        }
    }
    let best = best?;
    let line = match schema.line_property() {
        Some(name) => best.get(name)?.as_str()?.to_owned(),
        None => arguments_line(&best),
    };
    let plain = !line.trim().is_empty() && line.len() <= LONGEST && line == autoact_base::lines::one_line(&line);
    plain.then_some(line)
}

/// A value that a schema probably allows.
fn sample(schema: &Value, depth: usize) -> Value {
    for keyword in ["const", "default"] {
        if let Some(value) = schema.get(keyword) {
            return value.clone();
        }
    }
    if let Some(value) = schema.get("enum").and_then(|values| values.get(0)) {
        return value.clone();
    }
    if let Some(first) = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(|all| all.get(0)) {
        let mut merged = sample(first, depth + 1);
        if let (Value::Object(merged), Value::Object(own)) = (&mut merged, object(schema, depth)) {
            merged.extend(own);
        }
        return merged;
    }
    let kind = match &schema["type"] {
        Value::Array(all) => all.first().and_then(Value::as_str).unwrap_or_default(),
        kind => kind.as_str().unwrap_or_default(),
    };
    let whole = |keyword: &str| schema[keyword].as_u64().and_then(|bound| usize::try_from(bound).ok());
    match kind {
        "integer" | "number" => number(schema, kind == "integer"),
        "boolean" => Value::Bool(true),
        "array" if depth < DEPTH => {
            let item = sample(&schema["items"], depth + 1);
            Value::Array(vec![item; whole("minItems").unwrap_or(1).clamp(1, 4)])
        }
        "array" => json!([]),
        "object" => object(schema, depth),
        "null" => Value::Null,
        _ => text(schema, whole("minLength").unwrap_or(0), whole("maxLength").unwrap_or(usize::MAX)),
    }
}

fn object(schema: &Value, depth: usize) -> Value {
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let fields =
        required.map(|name| (name.to_owned(), if depth < DEPTH { sample(&schema["properties"][name], depth + 1) } else { json!({}) }));
    Value::Object(fields.collect())
}

fn number(schema: &Value, integer: bool) -> Value {
    let bound = |keyword: &str| schema[keyword].as_f64();
    let low = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|low| low + 1.0));
    let high = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|high| high - 1.0));
    let step = bound("multipleOf").unwrap_or(1.0);
    let mut value = low.unwrap_or(1.0).max(if low.is_some() { f64::MIN } else { 1.0 });
    if high.is_some_and(|high| high < value) {
        value = high.unwrap_or(value);
    }
    let value = (value / step).ceil() * step;
    if integer { json!(value as i64) } else { json!(value) }
}

fn text(schema: &Value, least: usize, most: usize) -> Value {
    let text = match schema["format"].as_str() {
        Some("date") => "2026-01-31",
        Some("date-time") => "2026-01-31T12:00:00Z",
        Some("time") => "12:00:00Z",
        Some("duration") => "P1D",
        Some("email") => "someone@example.com",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        _ => "text",
    };
    let mut text = text.to_owned();
    while text.len() < least.min(LONGEST) {
        text.push('x');
    }
    text.truncate(most.max(1));
    Value::from(text)
}

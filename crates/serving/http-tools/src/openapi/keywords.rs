//! The keywords of one schema: types, values and bounds.

use std::collections::BTreeSet;

use serde_json::{Map, Number, Value, json};

use super::error::Note;

/// Keywords that neither the grammar nor the validator is given.
pub(crate) const NOT_TAKEN: [&str; 13] = [
    "not",
    "if",
    "then",
    "else",
    "patternProperties",
    "propertyNames",
    "dependentSchemas",
    "dependentRequired",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "$dynamicRef",
];
/// Formats that the grammar and the validator know.
const FORMATS: [&str; 9] = ["date", "date-time", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
/// Bounds of lengths that are larger bound nothing, and make large grammars.
const LARGEST_LENGTH: u64 = 10_000;
/// Values of an enumeration.
const VALUES: usize = 300;
/// The longest default that is shown.
const DEFAULT: usize = 60;

/// `type`, `enum`, `const`, `format`, `default`.
pub(crate) fn types(fields: &Map<String, Value>, out: &mut Map<String, Value>, notes: &mut BTreeSet<Note>) {
    let mut names: Vec<&'static str> = Vec::new();
    let said: Vec<&str> = match fields.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for name in &said {
        match type_name(name) {
            Some(known) if !names.contains(&known) => names.push(known),
            Some(_) => {}
            None => drop(notes.insert(Note::Dropped(format!("type: {name}")))),
        }
    }
    if said.is_empty() {
        // what only objects or lists have
        names.extend(fields.contains_key("properties").then_some("object"));
        names.extend((names.is_empty() && fields.contains_key("items")).then_some("array"));
    }
    match names.as_slice() {
        [] => {}
        [one] => drop(out.insert("type".to_owned(), (*one).into())),
        several => drop(out.insert("type".to_owned(), several.into())),
    }
    if let Some(values) = fields.get("enum").and_then(Value::as_array) {
        let mut kept: Vec<Value> = Vec::new();
        for value in values.iter().filter_map(|value| fitting(value, &names)) {
            if !kept.contains(&value) && kept.len() <= VALUES {
                kept.push(value);
            }
        }
        if kept.is_empty() || kept.len() > VALUES {
            notes.insert(Note::Dropped("enum".to_owned()));
        } else {
            out.insert("enum".to_owned(), kept.into());
        }
    }
    if let Some(value) = fields.get("const") {
        out.insert("const".to_owned(), value.clone());
    }
    if let Some(format) = fields.get("format").and_then(Value::as_str)
        && FORMATS.contains(&format)
        && names.contains(&"string")
    {
        out.insert("format".to_owned(), format.into());
    }
    if let Some(media) = fields.get("contentMediaType").filter(|media| media.is_string()) {
        out.insert("contentMediaType".to_owned(), media.clone());
    }
    if let Some(value) = fields.get("default")
        && !value.is_null()
        && value.to_string().len() <= DEFAULT
    {
        out.insert("default".to_owned(), value.clone());
    }
}

/// JSON's name of a type; documents use those of programming languages as well.
fn type_name(name: &str) -> Option<&'static str> {
    Some(match name.to_ascii_lowercase().as_str() {
        "string" | "str" | "text" | "date" | "datetime" | "date-time" | "uuid" | "uri" | "url" | "password" | "file" | "binary" => "string",
        "integer" | "int" | "int32" | "int64" | "long" => "integer",
        "number" | "float" | "double" | "decimal" => "number",
        "boolean" | "bool" => "boolean",
        "array" | "list" => "array",
        "object" | "map" => "object",
        "null" => "null",
        _ => return None,
    })
}

/// The value of an enumeration in the type of its schema: YAML reads `1` and `on` as it likes.
fn fitting(value: &Value, types: &[&str]) -> Option<Value> {
    if types.is_empty() {
        return Some(value.clone());
    }
    let has = |name| types.contains(&name);
    match value {
        Value::Null => has("null").then_some(Value::Null),
        Value::Bool(_) if has("boolean") => Some(value.clone()),
        Value::Number(number) if has("number") || has("integer") && (number.is_i64() || number.is_u64()) => Some(value.clone()),
        Value::Bool(_) | Value::Number(_) => has("string").then(|| value.to_string().into()),
        Value::String(_) if has("string") => Some(value.clone()),
        Value::String(text) if has("integer") => text.trim().parse::<i64>().ok().map(Value::from),
        Value::String(text) if has("number") => text.trim().parse().ok().and_then(Number::from_f64).map(Value::Number),
        Value::String(text) if has("boolean") => text.trim().parse::<bool>().ok().map(Value::from),
        Value::Array(_) => has("array").then(|| value.clone()),
        Value::Object(_) => has("object").then(|| value.clone()),
        Value::String(_) => None,
    }
}

/// Bounds of numbers, lengths and counts.
pub(crate) fn bounds(fields: &Map<String, Value>, out: &mut Map<String, Value>, notes: &mut BTreeSet<Note>) {
    let number = |keyword: &str| match fields.get(keyword)? {
        Value::Number(number) => Some(number.clone()),
        Value::String(text) => text.trim().parse().ok().and_then(Number::from_f64),
        _ => None,
    };
    for (keyword, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        // in versions 2.0 and 3.0 the exclusive one is a switch
        let excludes = fields.get(exclusive).and_then(Value::as_bool) == Some(true);
        if let Some(bound) = number(keyword) {
            out.insert((if excludes { exclusive } else { keyword }).to_owned(), bound.into());
        }
        if let Some(bound) = number(exclusive) {
            out.insert(exclusive.to_owned(), bound.into());
        }
    }
    if let Some(step) = number("multipleOf") {
        // steps that are no integers are not what binary fractions can check
        match step.as_u64().filter(|step| *step > 0) {
            Some(step) => drop(out.insert("multipleOf".to_owned(), step.into())),
            None => drop(notes.insert(Note::Dropped("multipleOf".to_owned()))),
        }
    }
    for keyword in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"] {
        let Some(bound) = number(keyword) else { continue };
        let whole =
            bound.as_u64().or_else(|| bound.as_f64().filter(|bound| *bound >= 0.0 && bound.fract() == 0.0).map(|bound| bound as u64));
        match whole.filter(|bound| *bound <= LARGEST_LENGTH) {
            Some(bound) => drop(out.insert(keyword.to_owned(), bound.into())),
            None => drop(notes.insert(Note::Dropped(keyword.to_owned()))),
        }
    }
    if fields.get("uniqueItems").and_then(Value::as_bool) == Some(true) {
        out.insert("uniqueItems".to_owned(), true.into());
    }
}

/// `nullable` of version 3.0, and `x-nullable` of 2.0.
pub(crate) fn nullable(fields: &Map<String, Value>, out: &mut Map<String, Value>) {
    let says = |keyword: &str| fields.get(keyword).and_then(Value::as_bool) == Some(true);
    if !says("nullable") && !says("x-nullable") {
        return;
    }
    match out.get_mut("type") {
        Some(Value::String(name)) if name != "null" => {
            let both = json!([name, "null"]);
            out.insert("type".to_owned(), both);
        }
        Some(Value::Array(names)) if !names.iter().any(|name| name == "null") => names.push("null".into()),
        _ => {}
    }
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    for keyword in ["oneOf", "anyOf"] {
        if let Some(Value::Array(all)) = out.get_mut(keyword) {
            all.push(json!({ "type": "null" }));
        }
    }
}

/// Drops bounds that nothing can satisfy.
pub(crate) fn tidy(out: &mut Map<String, Value>, notes: &mut BTreeSet<Note>) {
    let pairs = [("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"), ("minProperties", "maxProperties")];
    for (low, high) in pairs {
        let bound = |keyword: &str| out.get(keyword).and_then(Value::as_f64);
        if let (Some(least), Some(most)) = (bound(low), bound(high))
            && least > most
        {
            out.remove(low);
            out.remove(high);
            notes.insert(Note::Dropped(low.to_owned()));
        }
    }
    // bounds of another type than the schema's say nothing, and some documents have them
    let text = |out: &Map<String, Value>| {
        out.get("type").is_none_or(|kind| kind == "string" || kind.as_array().is_some_and(|all| all.iter().any(|one| one == "string")))
    };
    if !text(out) {
        for keyword in ["pattern", "minLength", "maxLength", "format"] {
            out.remove(keyword);
        }
    }
    // the grammar cannot decide whether a text of such a pattern and length exists
    let hard = out.get("pattern").and_then(Value::as_str).is_some_and(|pattern| pattern.contains('|') || counts_far(pattern));
    if hard && (out.contains_key("minLength") || out.contains_key("maxLength")) {
        out.remove("minLength");
        out.remove("maxLength");
        notes.insert(Note::Dropped("minLength, maxLength".to_owned()));
    }
    if out.get("enum").is_some() {
        // the values say it all
        for keyword in ["pattern", "minLength", "maxLength", "format"] {
            out.remove(keyword);
        }
    }
}

/// Whether a pattern repeats something hundreds of times.
fn counts_far(pattern: &str) -> bool {
    pattern.split('{').skip(1).any(|rest| rest.split('}').next().is_some_and(|count| count.split(',').any(|one| one.len() > 2)))
}

//! What definitions that come from others go through, whatever the protocol: names, one line of
//! text, schemas that the grammar and the validator take, digests.

use std::collections::BTreeSet;

use autoact_trajectory::{ParameterSchema, cut};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::openapi::check::Compiled;
use crate::openapi::document::Document;
use crate::openapi::schema::{Converter, prose};
use crate::openapi::shrink::shrink;
use crate::openapi::{Note, SkipReason, example};

pub use crate::openapi::names::Names;

/// A definition stands in every prompt.
const DEFINITION: usize = 300;
/// So does a usage; a longer one names the required arguments alone.
const USAGE: usize = 400;

/// The schema of a tool's arguments, as models get it.
#[derive(Debug, Clone)]
pub struct Cleaned {
    /// The schema.
    pub schema: ParameterSchema,
    /// A call with the required arguments, as a model writes it.
    pub example: Option<String>,
    /// What was simplified.
    pub notes: Vec<Note>,
}

/// Cleans the JSON schema of an object of arguments. References within it are replaced by what they
/// lead to; required arguments come first, since a model writes them in this order.
///
/// # Errors
/// It is no schema of an object, or cannot be made one that is used here.
pub fn clean(schema: &Value) -> Result<Cleaned, SkipReason> {
    let document = Document::of_schema(schema.clone());
    let mut converter = Converter::new(&document);
    let mut cleaned = converter.convert(&document.root)?;
    let mut notes = converter.notes;
    let Some(fields) = cleaned.as_object_mut() else { return Err(SkipReason::Malformed("schema".to_owned())) };
    if fields.get("type").is_none_or(|kind| kind != "object") {
        return Err(SkipReason::Schema("it is not the schema of an object".to_owned()));
    }
    // what a schema does not name, a model cannot know; alternatives may name more
    let closed = !["anyOf", "oneOf", "additionalProperties"].iter().any(|keyword| fields.contains_key(*keyword));
    required_first(fields);
    if closed {
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    shrink(&mut cleaned, &mut notes)?;
    let (compiled, schema) = compile(cleaned, &mut notes)?;
    let example = example::line(&schema, &compiled, &Map::new());
    Ok(Cleaned { schema, example, notes: notes.into_iter().collect() })
}

fn required_first(fields: &mut Map<String, Value>) {
    let required: Vec<String> =
        fields.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    let Some(Value::Object(properties)) = fields.get_mut("properties") else {
        fields.insert("properties".to_owned(), Map::new().into());
        return;
    };
    let (mut first, later): (Vec<_>, Vec<_>) = std::mem::take(properties).into_iter().partition(|(name, _)| required.contains(name));
    first.extend(later);
    *properties = first.into_iter().collect();
}

/// A schema that the validator takes, without patterns and formats where it does not.
pub(crate) fn compile(mut schema: Value, notes: &mut BTreeSet<Note>) -> Result<(Compiled, ParameterSchema), SkipReason> {
    let compiled = match Compiled::new(&schema) {
        Ok(compiled) => compiled,
        Err(_) => {
            drop_doubtful(&mut schema);
            notes.insert(Note::Dropped("pattern, format".to_owned()));
            Compiled::new(&schema).map_err(SkipReason::Schema)?
        }
    };
    let schema = ParameterSchema::parse(&schema.to_string()).map_err(|error| SkipReason::Schema(error.to_string()))?;
    Ok((compiled, schema))
}

/// Removes what validators most often do not take.
fn drop_doubtful(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for keyword in ["pattern", "format"] {
                if fields.get(keyword).is_some_and(Value::is_string) {
                    fields.remove(keyword);
                }
            }
            fields.values_mut().for_each(drop_doubtful);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_doubtful),
        _ => {}
    }
}

/// The first of the texts that says something, as one line.
pub fn definition<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let text = texts.into_iter().map(prose).find(|text| !text.is_empty());
    cut(text.unwrap_or_default(), DEFINITION).0
}

/// How a call looks like, in a bounded number of bytes.
pub fn usage(name: &str, schema: &ParameterSchema) -> String {
    let usage = schema.usage(name);
    if usage.len() <= USAGE {
        return usage;
    }
    let mut short = format!("{name}{{");
    for (property, _) in schema.properties().filter(|(property, _)| schema.requires(property)) {
        if short.len() + property.len() > USAGE - 10 {
            break;
        }
        short.push_str(&format!("{}, ", Value::from(property)));
    }
    short + "…}"
}

/// The SHA-256 of a value in hexadecimal, whatever the order of its members.
pub fn digest(value: &Value) -> String {
    sha256(sorted(value).to_string().as_bytes())
}

/// A SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same value with its members in the order of their names.
pub(crate) fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut all: Vec<(&String, &Value)> = fields.iter().collect();
            all.sort_by_key(|(name, _)| *name);
            Value::Object(all.into_iter().map(|(name, value)| (name.clone(), sorted(value))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_cleaned() {
        let raw = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "addArguments", "type": "object",
            "properties": {
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "title": "Note"},
                "pair": {"$ref": "#/$defs/Pair"}
            },
            "required": ["pair"],
            "$defs": {"Pair": {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]}}
        });
        let cleaned = clean(&raw).unwrap();
        let names: Vec<&str> = cleaned.schema.properties().map(|(name, _)| name).collect();
        assert_eq!(names, ["pair", "note"]);
        assert_eq!(cleaned.schema.value()["properties"]["pair"]["properties"]["left"]["type"], "integer");
        assert_eq!(cleaned.schema.value()["additionalProperties"], false);
        assert_eq!(cleaned.example.as_deref(), Some("{\"pair\":{\"left\":1}}"));
        assert_eq!(clean(&json!({"type": "object"})).unwrap().schema.properties().count(), 0);
        for wrong in [json!({"type": "string"}), json!(true), json!({"$ref": "https://example.com/a"}), json!({"$ref": "#/$defs/None"})] {
            assert!(clean(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_digest_does_not_depend_on_the_order_of_members() {
        assert_eq!(digest(&json!({"a": 1, "b": {"c": 2, "d": 3}})), digest(&json!({"b": {"d": 3, "c": 2}, "a": 1})));
        assert_ne!(digest(&json!([1, 2])), digest(&json!([2, 1])));
    }
}

//! A schema in as many bytes as a request of a task may have: descriptions go first, then what is
//! nested deeply, then long enumerations.

use std::collections::BTreeSet;

use autoact_trajectory::{MAX_SCHEMA_BYTES, cut};
use serde_json::{Map, Value, json};

use super::error::{Note, SkipReason};

/// Makes it small enough.
pub(crate) fn shrink(schema: &mut Value, notes: &mut BTreeSet<Note>) -> Result<(), SkipReason> {
    let fits = |schema: &Value| schema.to_string().len() <= MAX_SCHEMA_BYTES;
    if fits(schema) {
        return Ok(());
    }
    notes.insert(Note::Descriptions);
    for (deepest, bytes) in [(usize::MAX, 80), (2, 80), (1, 60)] {
        descriptions(schema, 0, deepest, bytes);
        if fits(schema) {
            return Ok(());
        }
    }
    notes.insert(Note::Deep);
    for depth in (1..=8).rev() {
        prune(schema, depth);
        if fits(schema) {
            return Ok(());
        }
    }
    descriptions(schema, 0, 0, 0);
    for values in [40, 10, 0] {
        enumerations(schema, values, notes);
        if fits(schema) {
            return Ok(());
        }
    }
    Err(SkipReason::SchemaTooLarge(schema.to_string().len()))
}

/// The schemas right below one.
fn below(fields: &mut Map<String, Value>) -> Vec<&mut Value> {
    let mut all = Vec::new();
    for (keyword, value) in fields.iter_mut() {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => all.extend(properties.values_mut()),
            ("items" | "additionalProperties", value @ Value::Object(_)) => all.push(value),
            ("oneOf" | "anyOf" | "prefixItems", Value::Array(several)) => all.extend(several.iter_mut()),
            _ => {}
        }
    }
    all
}

fn descriptions(schema: &mut Value, depth: usize, deepest: usize, bytes: usize) {
    let Value::Object(fields) = schema else { return };
    if depth > deepest {
        fields.remove("description");
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = cut(std::mem::take(text), bytes).0;
    }
    if depth >= deepest || bytes == 0 {
        fields.remove("default");
    }
    for one in below(fields) {
        descriptions(one, depth + 1, deepest, bytes);
    }
}

/// Schemas at this depth keep their type alone.
fn prune(schema: &mut Value, depth: usize) {
    let Value::Object(fields) = schema else { return };
    if depth == 0 {
        let kind = fields.get("type").cloned();
        let nested =
            ["properties", "items", "oneOf", "anyOf", "prefixItems", "additionalProperties"].iter().any(|key| fields.contains_key(*key));
        if nested {
            *schema = kind.map_or_else(|| json!({}), |kind| json!({ "type": kind }));
        }
        return;
    }
    for one in below(fields) {
        prune(one, depth - 1);
    }
}

/// Enumerations of more values become their type.
fn enumerations(schema: &mut Value, values: usize, notes: &mut BTreeSet<Note>) {
    let Value::Object(fields) = schema else { return };
    if fields.get("enum").and_then(Value::as_array).is_some_and(|all| all.len() > values) {
        fields.remove("enum");
        notes.insert(Note::Dropped("enum".to_owned()));
    }
    for one in below(fields) {
        enumerations(one, values, notes);
    }
}

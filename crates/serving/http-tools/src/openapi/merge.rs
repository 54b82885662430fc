//! `allOf`: one schema that says what all of its parts say.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::error::Note;

/// Adds what another part says.
pub(crate) fn merge(into: &mut Map<String, Value>, part: Map<String, Value>, notes: &mut BTreeSet<Note>) {
    for (keyword, value) in part {
        let Some(own) = into.get_mut(&keyword) else {
            into.insert(keyword, value);
            continue;
        };
        match (keyword.as_str(), own, value) {
            ("properties", Value::Object(own), Value::Object(more)) => {
                for (name, property) in more {
                    match (own.get_mut(&name), property) {
                        (Some(Value::Object(own)), Value::Object(property)) => merge(own, property, notes),
                        (_, property) => drop(own.insert(name, property)),
                    }
                }
            }
            ("required", Value::Array(own), Value::Array(more)) => {
                for name in more {
                    if !own.contains(&name) {
                        own.push(name);
                    }
                }
            }
            ("type", own, more) => meet(own, more, notes),
            ("enum", Value::Array(own), Value::Array(more)) => {
                if own.iter().any(|value| more.contains(value)) {
                    own.retain(|value| more.contains(value));
                } else {
                    notes.insert(Note::Dropped("enum".to_owned()));
                }
            }
            ("minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties", own, more) => tighter(own, more, true),
            ("maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties", own, more) => tighter(own, more, false),
            // the members of all parts are those of the whole, which may be closed
            ("additionalProperties", own, more) => {
                if more == Value::Bool(false) {
                    *own = more;
                }
            }
            ("items", Value::Object(own), Value::Object(more)) => merge(own, more, notes),
            ("uniqueItems", ..) | ("description" | "default" | "format" | "contentMediaType", ..) => {}
            (_, own, more) if *own == more => {}
            (keyword, ..) => drop(notes.insert(Note::Dropped(keyword.to_owned()))),
        }
    }
}

/// The types that both allow; the first ones where there are none.
fn meet(own: &mut Value, more: Value, notes: &mut BTreeSet<Note>) {
    let list = |value: &Value| match value {
        Value::Array(all) => all.clone(),
        other => vec![other.clone()],
    };
    let other = list(&more);
    let allows = |kind: &Value| other.contains(kind) || kind == "integer" && other.iter().any(|one| one == "number");
    let mut both: Vec<Value> = list(own).into_iter().filter(allows).collect();
    if both.is_empty() && list(own).iter().any(|one| one == "number") && other.iter().any(|one| one == "integer") {
        both.push("integer".into());
    }
    match both.as_slice() {
        [] => drop(notes.insert(Note::Dropped("type".to_owned()))),
        [one] => *own = one.clone(),
        _ => *own = both.into(),
    }
}

fn tighter(own: &mut Value, more: Value, larger: bool) {
    let replaces = match (own.as_f64(), more.as_f64()) {
        (Some(own), Some(more)) if larger => more > own,
        (Some(own), Some(more)) => more < own,
        _ => false,
    };
    if replaces {
        *own = more;
    }
}

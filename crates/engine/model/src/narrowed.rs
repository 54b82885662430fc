//! A JSON schema, a little narrower than it says: what a grammar admits of it is then read as it was
//! written, and accepted by whoever checks it against the whole schema.
//!
//! - Numbers have bounds. A grammar's number may have any number of digits and any exponent, and
//!   readers of JSON refuse what is beyond a double.
//! - Dates are days of their month and year, times have no leap second: the grammar's own forms admit
//!   29 February in any year, and second 60 in any minute.

use serde_json::{Map, Value};

/// Integers lie between this and its negative: 64 bits hold them.
const MOST_INTEGER: i64 = 9_000_000_000_000_000_000;
/// Other numbers likewise. Bounds leave no exponent.
const MOST_NUMBER: i64 = 1_000_000_000_000_000_000;

const DATE: &str = "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))\
                    |(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29";
const TIME: &str = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])";

/// Keywords whose members are schemas, by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];
/// Keywords that are a schema, or a list of them. Not those that exclude: a narrower `not` is wider.
const NESTED: [&str; 7] = ["items", "prefixItems", "additionalProperties", "additionalItems", "anyOf", "oneOf", "allOf"];

/// Narrows a schema and all schemas in it.
pub(crate) fn narrow(schema: &mut Value) {
    match schema {
        Value::Object(fields) => narrow_one(fields),
        Value::Array(schemas) => schemas.iter_mut().for_each(narrow),
        _ => {}
    }
}

fn narrow_one(fields: &mut Map<String, Value>) {
    let is = |fields: &Map<String, Value>, kind: &str| match fields.get("type") {
        Some(Value::String(one)) => one == kind,
        Some(Value::Array(several)) => several.iter().any(|one| one == kind),
        _ => false,
    };
    if !fields.contains_key("enum") && !fields.contains_key("const") {
        if is(fields, "number") {
            bound(fields, MOST_NUMBER);
        } else if is(fields, "integer") {
            bound(fields, MOST_INTEGER);
        }
        if is(fields, "string") && !fields.contains_key("pattern") {
            let pattern = match fields.get("format").and_then(Value::as_str) {
                Some("date") => Some(format!("^(?:{DATE})$")),
                Some("time") => Some(format!("^(?:{TIME})$")),
                Some("date-time") => Some(format!("^(?:{DATE})T(?:{TIME})$")),
                _ => None,
            };
            if let Some(pattern) = pattern {
                fields.remove("format");
                fields.insert("pattern".to_owned(), pattern.into());
            }
        }
    }
    for keyword in NAMED {
        if let Some(Value::Object(named)) = fields.get_mut(keyword) {
            named.values_mut().for_each(narrow);
        }
    }
    for keyword in NESTED {
        if let Some(nested) = fields.get_mut(keyword) {
            narrow(nested);
        }
    }
}

/// Adds the bounds that are missing, unless the other one is beyond them.
fn bound(fields: &mut Map<String, Value>, most: i64) {
    let given = |fields: &Map<String, Value>, names: [&str; 2]| names.iter().find_map(|name| fields.get(*name).and_then(Value::as_f64));
    let (least, greatest) = (given(fields, ["minimum", "exclusiveMinimum"]), given(fields, ["maximum", "exclusiveMaximum"]));
    if greatest.is_none() && least.is_none_or(|least| least < most as f64) {
        fields.insert("maximum".to_owned(), most.into());
    }
    if least.is_none() && greatest.is_none_or(|greatest| greatest > -most as f64) {
        fields.insert("minimum".to_owned(), (-most).into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn narrowed(mut schema: Value) -> Value {
        narrow(&mut schema);
        schema
    }

    #[test]
    fn numbers_get_the_bounds_that_they_lack() {
        let most = MOST_NUMBER;
        assert_eq!(narrowed(json!({"type": "number"})), json!({"type": "number", "minimum": -most, "maximum": most}));
        assert_eq!(
            narrowed(json!({"type": "number", "exclusiveMinimum": 0})),
            json!({"type": "number", "exclusiveMinimum": 0, "maximum": most})
        );
        let both = json!({"type": "integer", "minimum": 1, "maximum": 5});
        assert_eq!(narrowed(both.clone()), both);
        let beyond = json!({"type": "number", "minimum": 1e19});
        assert_eq!(narrowed(beyond.clone()), beyond);
        let choice = json!({"type": "number", "enum": [1e300]});
        assert_eq!(narrowed(choice.clone()), choice);
    }

    #[test]
    fn schemas_within_are_narrowed_and_names_are_not_keywords() {
        let inner = json!({"type": ["integer", "null"]});
        let schema = json!({"type": "object", "properties": {"type": inner, "items": {"type": "array", "items": inner}}, "not": {"required": ["x"], "type": "number"}});
        let narrow = narrowed(schema);
        for pointer in ["/properties/type/maximum", "/properties/items/items/maximum"] {
            assert_eq!(narrow.pointer(pointer), Some(&json!(MOST_INTEGER)), "{pointer}");
        }
        assert_eq!(narrow.pointer("/not/maximum"), None);
    }

    #[test]
    fn dates_are_days_that_there_are() {
        let schema = narrowed(json!({"type": "string", "format": "date"}));
        let pattern = regex::Regex::new(schema["pattern"].as_str().unwrap()).unwrap();
        for (date, is_one) in [
            ("2024-02-29", true),
            ("2000-02-29", true),
            ("1900-02-29", false),
            ("2023-02-29", false),
            ("2023-02-28", true),
            ("2023-04-31", false),
            ("2023-12-31", true),
            ("2023-00-10", false),
        ] {
            assert_eq!(pattern.is_match(date), is_one, "{date}");
        }
        let own = json!({"type": "string", "format": "date", "pattern": "^2"});
        assert_eq!(narrowed(own.clone()), own);
    }
}

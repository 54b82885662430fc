//! JSON in a bounded number of bytes: it stays JSON, and says what was left out.
//!
//! The ends of lists go first, then the ends of long texts, then what is nested deeply, then the
//! members of large objects.

use serde_json::{Map, Value};

/// How much of a value's texts, nesting and objects is kept.
#[derive(Clone, Copy)]
struct Level {
    /// Characters of a text.
    text: usize,
    depth: usize,
    /// Members of an object.
    members: usize,
    /// Items of a list that are worth more than the rest of longer texts.
    least: usize,
}

/// The first one that fits is taken, with as many items of lists as fit.
const LEVELS: [Level; 8] = [
    Level { text: usize::MAX, depth: 64, members: usize::MAX, least: 5 },
    Level { text: 1000, depth: 32, members: usize::MAX, least: 3 },
    Level { text: 300, depth: 12, members: 200, least: 3 },
    Level { text: 120, depth: 8, members: 60, least: 2 },
    Level { text: 60, depth: 5, members: 30, least: 2 },
    Level { text: 32, depth: 3, members: 12, least: 1 },
    Level { text: 16, depth: 2, members: 5, least: 1 },
    Level { text: 8, depth: 1, members: 2, least: 0 },
];

/// The value as JSON in at most `bytes` bytes. What was left out is named where it stood: a last
/// item `"… 12 more"`, a last member `"…": "3 more"`, `… (+99 characters)` at the end of a text.
pub fn trimmed(value: &Value, bytes: usize) -> String {
    let whole = value.to_string();
    if whole.len() <= bytes {
        return whole;
    }
    let longest = longest_list(value);
    for level in &LEVELS {
        let render = |items: usize| shape(value, level, items, 0).to_string();
        let mut best = render(level.least.min(longest));
        if best.len() > bytes {
            continue;
        }
        let (mut fits, mut too_many) = (level.least.min(longest), longest + 1);
        while fits + 1 < too_many {
            let items = fits.midpoint(too_many);
            let text = render(items);
            if text.len() <= bytes {
                (fits, best) = (items, text);
            } else {
                too_many = items;
            }
        }
        return best;
    }
    let last = Value::from(left_out(value)).to_string();
    if last.len() <= bytes { last } else { "0".repeat(bytes.min(1)) }
}

fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest_list).max().unwrap_or(0).max(items.len()),
        Value::Object(fields) => fields.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

/// What stands for a value that is left out.
fn left_out(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[… {} items]", items.len()),
        Value::Object(fields) => format!("{{… {} members}}", fields.len()),
        _ => "…".to_owned(),
    }
}

fn shape(value: &Value, level: &Level, items: usize, depth: usize) -> Value {
    match value {
        Value::Array(all) if all.is_empty() => value.clone(),
        Value::Object(all) if all.is_empty() => value.clone(),
        Value::Array(_) | Value::Object(_) if depth >= level.depth => Value::from(left_out(value)),
        Value::Array(all) => {
            let mut kept: Vec<Value> = all.iter().take(items).map(|item| shape(item, level, items, depth + 1)).collect();
            if all.len() > items {
                kept.push(Value::from(format!("… {} more", all.len() - items)));
            }
            Value::Array(kept)
        }
        Value::Object(all) => {
            let kept = all.iter().take(level.members);
            let mut kept: Map<String, Value> =
                kept.map(|(name, value)| (cut(name, level.text), shape(value, level, items, depth + 1))).collect();
            if all.len() > level.members {
                kept.insert("…".to_owned(), Value::from(format!("{} more", all.len() - level.members)));
            }
            Value::Object(kept)
        }
        Value::String(text) => Value::from(cut(text, level.text)),
        Value::Number(_) if level.text < value.to_string().len() => Value::from("…"),
        other => other.clone(),
    }
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => {
            let more = text[end..].chars().count();
            let shorter = format!("{}… (+{more} characters)", &text[..end]);
            if shorter.len() < text.len() { shorter } else { text.to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_ends_of_lists_go_first() {
        let items: Vec<Value> = (0..200).map(|n| json!({"id": n, "name": format!("item {n}")})).collect();
        let text = trimmed(&json!({"total": 200, "items": items}), 400);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["total"], 200);
        assert_eq!(value["items"][3], json!({"id": 3, "name": "item 3"}));
        let list = value["items"].as_array().unwrap();
        assert_eq!(list.last().unwrap(), &json!(format!("… {} more", 200 - (list.len() - 1))));
        assert!((350..=400).contains(&text.len()), "{}", text.len());
    }

    #[test]
    fn long_texts_and_deep_values_say_what_is_missing() {
        let deep = json!({"a": {"b": {"c": {"d": {"e": {"f": {"g": "x".repeat(3000)}}}}}}, "text": "y".repeat(5000)});
        let text = trimmed(&deep, 500);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert!(value["text"].as_str().unwrap().ends_with("characters)"), "{text}");
        assert_eq!(trimmed(&json!([1, 2, 3]), 100), "[1,2,3]");
        assert_eq!(trimmed(&json!((0..500).collect::<Vec<_>>()), 16), "[\"… 500 more\"]");
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<i32>().prop_map(|n| Value::from(f64::from(n) / 64.0)),
            ".{0,200}".prop_map(Value::from),
            "[\\PC\\n\"\\\\]{0,60}".prop_map(Value::from),
        ];
        leaf.prop_recursive(6, 200, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::vec((".{0,20}", inner), 0..12).prop_map(|all| Value::Object(all.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_trimmed_is_json_within_its_bound(value in value(), bytes in 1_usize..2000) {
            let text = trimmed(&value, bytes);
            prop_assert!(text.len() <= bytes, "{} > {bytes}", text.len());
            let read: Value = serde_json::from_str(&text).unwrap();
            if value.to_string().len() <= bytes {
                prop_assert_eq!(read, value);
            }
            // what a transcript makes of blanks leaves it JSON
            let line = autoact_base::lines::one_line(&text);
            prop_assert!(serde_json::from_str::<Value>(&line).is_ok(), "{line}");
        }
    }
}

//! Ready-made tools: kinds whose entries need a name and what is particular to this one.

use anyhow::{Context as _, bail};
use autoact_tool_sources::presets;
use autoact_tools::Preset;
use serde_json::{Value as Json, json};
use toml::{Table, Value};

use crate::exit;
use crate::out;

/// `autoact tools kinds`
pub(super) fn list(json: bool) -> anyhow::Result<u8> {
    if json {
        out::line(Json::Array(presets().map(object).collect()))?;
        return Ok(exit::OK);
    }
    for preset in presets() {
        out::line(format_args!("{}  (as {}, {})", preset.kind, preset.name, preset.effect.as_str()))?;
        out::line(format_args!("    {}", preset.definition))?;
        for key in preset.keys {
            let required = if key.required { " (required)" } else { "" };
            out::line(format_args!("    --set {}=…{required}  {}", key.name, key.meaning))?;
        }
        for example in preset.examples {
            out::line(format_args!("    example  {example}"))?;
        }
    }
    Ok(exit::OK)
}

/// A kind for programs. Fields may be added.
fn object(preset: &Preset) -> Json {
    let key = |key: &autoact_tools::Key| json!({ "name": key.name, "meaning": key.meaning, "required": key.required });
    json!({
        "kind": preset.kind,
        "name": preset.name,
        "definition": preset.definition,
        "schema": preset.schema.and_then(|schema| serde_json::from_str::<Json>(schema).ok()),
        "examples": preset.examples,
        "effect": preset.effect.as_str(),
        "keys": preset.keys.iter().map(key).collect::<Vec<_>>(),
    })
}

/// The entry of a ready-made tool. Values are TOML, or text; a path to something that is there is
/// written as an absolute one, since the library lies elsewhere.
pub(super) fn entry(kind: &str, name: Option<String>, settings: &[String]) -> anyhow::Result<Table> {
    let Some(preset) = presets().find(|preset| preset.kind == kind) else {
        let known: Vec<&str> = presets().map(|preset| preset.kind).collect();
        bail!("there is no ready-made tool `{kind}`; `autoact tools kinds` describes them: {}", known.join(", "));
    };
    let mut run = Table::from_iter([("kind".to_owned(), Value::from(kind))]);
    for setting in settings {
        let (key, text) = setting.split_once('=').with_context(|| format!("`{setting}` is not of the form KEY=VALUE"))?;
        let (table, key) = nested(&mut run, key)?;
        let value = value(text);
        match table.get_mut(&key) {
            // a key that comes again is a list
            Some(Value::Array(list)) => list.push(value),
            Some(first) => *first = Value::Array(vec![first.clone(), value]),
            None => {
                table.insert(key, value);
            }
        }
    }
    let name = name.unwrap_or_else(|| preset.name.to_owned());
    Ok(Table::from_iter([("name".to_owned(), name.into()), ("run".to_owned(), Value::Table(run))]))
}

/// The table that `a.b.key` is in, and `key`.
fn nested<'a>(table: &'a mut Table, key: &str) -> anyhow::Result<(&'a mut Table, String)> {
    match key.split_once('.') {
        None => Ok((table, key.to_owned())),
        Some((first, rest)) => {
            let inner = table.entry(first.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            let inner = inner.as_table_mut().with_context(|| format!("`{first}` has a value and cannot have keys"))?;
            nested(inner, rest)
        }
    }
}

fn value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    placed(parsed.unwrap_or_else(|| Value::from(text)))
}

fn placed(value: Value) -> Value {
    match value {
        Value::String(text) if !text.is_empty() && std::path::Path::new(&text).exists() => {
            Value::from(std::path::absolute(&text).map_or(text, |path| path.display().to_string()))
        }
        Value::Array(list) => Value::Array(list.into_iter().map(placed).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_toml_or_text() {
        for (text, expected) in [
            ("3", Value::from(3)),
            ("true", Value::from(true)),
            ("[\"a\", \"b\"]", Value::from(vec!["a", "b"])),
            ("https://example.com/x", Value::from("https://example.com/x")),
            ("two words", Value::from("two words")),
            ("", Value::from("")),
        ] {
            assert_eq!(value(text), expected, "{text}");
        }
        let here = value("Cargo.toml").as_str().unwrap_or_default().to_owned();
        assert!(here.starts_with('/') && here.ends_with("/Cargo.toml"), "{here}");
    }

    #[test]
    fn keys_may_be_nested() {
        let mut table = Table::new();
        for key in ["limits.memory", "limits.time", "a"] {
            let (table, key) = nested(&mut table, key).unwrap_or_else(|error| panic!("{error}"));
            table.insert(key, Value::from(1));
        }
        assert_eq!(table["limits"].as_table().map(Table::len), Some(2));
        assert!(nested(&mut table, "a.b").is_err());
    }
}

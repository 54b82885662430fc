//! Schemas of OpenAPI as JSON schemas that the grammar and the validator take. All references are
//! replaced by what they lead to.

use std::collections::BTreeSet;

use autoact_base::lines::one_line;
use autoact_trajectory::cut;
use serde_json::{Map, Value, json};

use super::check::pattern_compiles;
use super::document::{Document, name_of};
use super::error::{Note, SkipReason};
use super::keywords;
use super::merge::merge;

/// How deep an argument may be nested.
const DEPTH: usize = 14;
/// Schemas of one operation, references counted each time.
const SCHEMAS: usize = 4000;
/// The longest description in a schema.
const DESCRIPTION: usize = 200;
/// Alternatives of `oneOf` and `anyOf`.
const ALTERNATIVES: usize = 24;
/// The longest pattern.
const PATTERN: usize = 300;

/// Converts the schemas of one operation.
pub(crate) struct Converter<'a> {
    document: &'a Document,
    pub(crate) notes: BTreeSet<Note>,
    schemas: usize,
    /// The references that are being resolved.
    within: Vec<&'a str>,
}

impl<'a> Converter<'a> {
    pub(crate) fn new(document: &'a Document) -> Converter<'a> {
        Converter { document, notes: BTreeSet::new(), schemas: 0, within: Vec::new() }
    }

    /// The schema of an argument.
    pub(crate) fn convert(&mut self, schema: &'a Value) -> Result<Value, SkipReason> {
        self.at(schema, 0)
    }

    /// The schema of a parameter of version 2.0, which is its own schema.
    pub(crate) fn convert_parameter(&mut self, parameter: &'a Map<String, Value>) -> Result<Value, SkipReason> {
        self.own(parameter, 0).map(Value::Object)
    }

    fn at(&mut self, schema: &'a Value, depth: usize) -> Result<Value, SkipReason> {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return Ok(Value::Bool(false)),
            _ => return Ok(json!({})),
        };
        self.schemas += 1;
        if depth > DEPTH || self.schemas > SCHEMAS {
            self.notes.insert(Note::Deep);
            return Ok(json!({}));
        }
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
            return self.referred(reference, fields, depth);
        }
        let mut out = self.own(fields, depth)?;
        if let Some(parts) = fields.get("allOf").and_then(Value::as_array) {
            for part in parts {
                if let Value::Object(part) = self.at(part, depth)? {
                    merge(&mut out, part, &mut self.notes);
                }
            }
            // a nullable part makes the whole nullable only where all are
            keywords::tidy(&mut out, &mut self.notes);
        }
        Ok(Value::Object(out))
    }

    fn referred(&mut self, reference: &'a str, fields: &'a Map<String, Value>, depth: usize) -> Result<Value, SkipReason> {
        if self.within.contains(&reference) {
            self.notes.insert(Note::Cycle(name_of(reference).to_owned()));
            return Ok(json!({ "description": format!("another {}", cut(one_line(name_of(reference)), 60).0) }));
        }
        let target = self.document.target(reference)?;
        self.within.push(reference);
        let converted = self.at(target, depth);
        self.within.pop();
        let mut converted = converted?;
        // a description beside a reference is more to the point
        if let (Some(own), Value::Object(all)) = (description(fields), &mut converted) {
            all.insert("description".to_owned(), own);
        }
        Ok(converted)
    }

    /// All keywords but `allOf`.
    fn own(&mut self, fields: &'a Map<String, Value>, depth: usize) -> Result<Map<String, Value>, SkipReason> {
        let mut out = Map::new();
        keywords::types(fields, &mut out, &mut self.notes);
        if let Some(description) = description(fields) {
            out.insert("description".to_owned(), description);
        }
        keywords::bounds(fields, &mut out, &mut self.notes);
        if let Some(pattern) = fields.get("pattern") {
            match pattern.as_str().filter(|pattern| pattern.len() <= PATTERN && pattern_compiles(pattern)) {
                Some(pattern) => drop(out.insert("pattern".to_owned(), pattern.into())),
                None => drop(self.notes.insert(Note::Dropped("pattern".to_owned()))),
            }
        }
        self.members(fields, &mut out, depth)?;
        self.items(fields, &mut out, depth)?;
        self.alternatives(fields, &mut out, depth)?;
        for keyword in keywords::NOT_TAKEN {
            if fields.contains_key(keyword) {
                self.notes.insert(Note::Dropped(keyword.to_owned()));
            }
        }
        keywords::nullable(fields, &mut out);
        keywords::tidy(&mut out, &mut self.notes);
        Ok(out)
    }

    fn members(&mut self, fields: &'a Map<String, Value>, out: &mut Map<String, Value>, depth: usize) -> Result<(), SkipReason> {
        let mut hidden = BTreeSet::new();
        if let Some(all) = fields.get("properties").and_then(Value::as_object) {
            let mut properties = Map::new();
            for (name, property) in all {
                if self.read_only(property) {
                    hidden.insert(name.as_str());
                    continue;
                }
                properties.insert(name.clone(), self.at(property, depth + 1)?);
            }
            out.insert("properties".to_owned(), properties.into());
        }
        if let Some(all) = fields.get("required").and_then(Value::as_array) {
            let mut names: Vec<&str> = all.iter().filter_map(Value::as_str).filter(|name| !hidden.contains(name)).collect();
            let mut seen = BTreeSet::new();
            names.retain(|name| seen.insert(*name));
            if !names.is_empty() {
                out.insert("required".to_owned(), names.into());
            }
        }
        match fields.get("additionalProperties") {
            Some(Value::Bool(more)) => drop(out.insert("additionalProperties".to_owned(), (*more).into())),
            Some(more @ Value::Object(_)) => {
                let more = self.at(more, depth + 1)?;
                out.insert("additionalProperties".to_owned(), more);
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a property is only in answers.
    fn read_only(&self, property: &Value) -> bool {
        let says = |value: &Value| value.get("readOnly").and_then(Value::as_bool).unwrap_or(false);
        says(property) || self.document.resolve(property).is_ok_and(says)
    }

    fn items(&mut self, fields: &'a Map<String, Value>, out: &mut Map<String, Value>, depth: usize) -> Result<(), SkipReason> {
        match fields.get("items") {
            Some(items @ (Value::Object(_) | Value::Bool(_))) => {
                let items = self.at(items, depth + 1)?;
                out.insert("items".to_owned(), items);
            }
            Some(_) => drop(self.notes.insert(Note::Dropped("items".to_owned()))),
            None => {}
        }
        if let Some(all) = fields.get("prefixItems").and_then(Value::as_array) {
            let all = all.iter().map(|item| self.at(item, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            if !all.is_empty() {
                out.insert("prefixItems".to_owned(), all.into());
            }
        }
        Ok(())
    }

    fn alternatives(&mut self, fields: &'a Map<String, Value>, out: &mut Map<String, Value>, depth: usize) -> Result<(), SkipReason> {
        for keyword in ["oneOf", "anyOf"] {
            let Some(all) = fields.get(keyword).and_then(Value::as_array).filter(|all| !all.is_empty()) else { continue };
            if all.len() > ALTERNATIVES {
                self.notes.insert(Note::Dropped(keyword.to_owned()));
                continue;
            }
            let notes = self.notes.len();
            let all = all.iter().map(|one| self.at(one, depth + 1)).collect::<Result<Vec<_>, _>>()?;
            // after a simplification two may be satisfied at once, which `oneOf` would refuse
            let simplified = self.notes.len() > notes || all.iter().any(|one| one.as_object().is_some_and(|one| !one.contains_key("type")));
            let keyword = if simplified && !out.contains_key("anyOf") { "anyOf" } else { keyword };
            match out.contains_key(keyword) {
                true => drop(self.notes.insert(Note::Dropped(keyword.to_owned()))),
                false => drop(out.insert(keyword.to_owned(), all.into())),
            }
        }
        Ok(())
    }
}

/// A schema's description as one line.
fn description(fields: &Map<String, Value>) -> Option<Value> {
    let text = prose(fields.get("description")?.as_str()?);
    (!text.is_empty()).then(|| cut(text, DESCRIPTION).0.into())
}

/// A description as one line of text: they may be HTML.
pub(crate) fn prose(text: &str) -> String {
    // enough for every bound, and no more work
    let text = &text[..text.floor_char_boundary(4000)];
    let marked_up = text.contains("</") || text.contains("<br") || text.contains("<p>");
    one_line(&if marked_up { crate::html::text(text) } else { text.to_owned() })
}

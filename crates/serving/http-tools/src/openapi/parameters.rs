//! The parameters of an operation: name, place, style and schema.

use serde_json::{Map, Value};

use super::document::{Document, Version};
use super::error::{Note, SkipReason};
use super::schema::{Converter, prose};
use super::security::Needs;
use crate::operation::{Place, Style, header_name};

/// A part of the request that a call has an argument for.
pub(crate) struct Part {
    pub(crate) wire: String,
    pub(crate) place: Place,
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) required: bool,
    pub(crate) schema: Value,
    /// A value that the document shows.
    pub(crate) example: Option<Value>,
}

/// Headers that OpenAPI leaves to other parts of the document.
const IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

/// The declared parameters of a path and an operation, resolved; those of the operation win.
pub(crate) fn declared<'a>(
    document: &'a Document,
    item: &'a Value,
    operation: &'a Value,
) -> Result<Vec<&'a Map<String, Value>>, SkipReason> {
    let mut all: Vec<&Map<String, Value>> = Vec::new();
    for level in [item, operation] {
        for parameter in level.get("parameters").and_then(Value::as_array).into_iter().flatten() {
            let malformed = || SkipReason::Malformed("parameters".to_owned());
            let parameter = document.resolve(parameter)?.as_object().ok_or_else(malformed)?;
            let same = |other: &&Map<String, Value>| other.get("name") == parameter.get("name") && other.get("in") == parameter.get("in");
            match all.iter().position(same) {
                Some(at) => all[at] = parameter,
                None => all.push(parameter),
            }
        }
    }
    Ok(all)
}

/// The parts of path, query, headers and cookies.
pub(crate) fn parts<'a>(
    document: &'a Document,
    declared: &[&'a Map<String, Value>],
    needs: &Needs,
    converter: &mut Converter<'a>,
) -> Result<Vec<Part>, SkipReason> {
    let mut all = Vec::new();
    for parameter in declared {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
        let wire = text("name").to_owned();
        let place = match text("in") {
            "path" => Place::Path,
            "query" => Place::Query,
            "header" => Place::Header,
            "cookie" => Place::Cookie,
            "body" | "formData" if document.version == Version::V2 => continue,
            other => return Err(SkipReason::Malformed(format!("parameter `{wire}` in `{other}`"))),
        };
        if wire.is_empty() {
            return Err(SkipReason::Malformed("parameter without a name".to_owned()));
        }
        let required = place == Place::Path || parameter.get("required").and_then(Value::as_bool) == Some(true);
        if needs.is_secret(&wire, place) || place == Place::Header && IGNORED.contains(&wire.to_ascii_lowercase().as_str()) {
            continue;
        }
        if place == Place::Header && header_name(&wire).is_none() {
            if required {
                return Err(SkipReason::Header(wire));
            }
            converter.notes.insert(Note::LeftOut(wire));
            continue;
        }
        let (style, explode) = style(document.version, parameter, place);
        let content = parameter.get("content").and_then(Value::as_object).and_then(|content| content.values().next());
        let (schema, style) = match (parameter.get("schema"), content) {
            _ if document.version == Version::V2 => (converter.convert_parameter(parameter)?, style),
            (Some(schema), _) => (converter.convert(schema)?, style),
            (None, Some(content)) => {
                (content.get("schema").map_or(Ok(Value::Object(Map::new())), |schema| converter.convert(schema))?, Style::Json)
            }
            (None, None) => (serde_json::json!({ "type": "string" }), style),
        };
        let schema = described(schema, parameter.get("description"));
        all.push(Part { wire, place, style, explode, required, schema, example: example(parameter) });
    }
    Ok(all)
}

/// The description beside a schema, where that has none.
pub(crate) fn described(mut schema: Value, description: Option<&Value>) -> Value {
    if let (Value::Object(fields), Some(text)) = (&mut schema, description.and_then(Value::as_str))
        && !fields.contains_key("description")
    {
        let text = autoact_trajectory::cut(prose(text), 200).0;
        if !text.is_empty() {
            fields.insert("description".to_owned(), text.into());
        }
    }
    schema
}

/// A value that the document shows for a parameter or a body.
pub(crate) fn example(of: &Map<String, Value>) -> Option<Value> {
    let schema = of.get("schema");
    let several = |of: &Value| of.get("examples").and_then(Value::as_object).and_then(|all| all.values().next()?.get("value").cloned());
    let own = of.get("example").or_else(|| of.get("x-example")).cloned();
    own.or_else(|| several(&Value::Object(of.clone()))).or_else(|| schema?.get("example").cloned())
}

/// The style that is written, or the usual one of its place.
fn style(version: Version, parameter: &Map<String, Value>, place: Place) -> (Style, bool) {
    let simple = matches!(place, Place::Path | Place::Header);
    if version == Version::V2 {
        return match parameter.get("collectionFormat").and_then(Value::as_str) {
            Some("ssv") if !simple => (Style::Space, false),
            Some("tsv") if !simple => (Style::Tab, false),
            Some("pipes") if !simple => (Style::Pipe, false),
            Some("multi") if !simple => (Style::Form, true),
            _ => (if simple { Style::Simple } else { Style::Form }, false),
        };
    }
    let style = match parameter.get("style").and_then(Value::as_str) {
        Some("label") if place == Place::Path => Style::Label,
        Some("matrix") if place == Place::Path => Style::Matrix,
        Some("spaceDelimited") if place == Place::Query => Style::Space,
        Some("pipeDelimited") if place == Place::Query => Style::Pipe,
        Some("deepObject") if place == Place::Query => Style::Deep,
        _ if simple => Style::Simple,
        _ => Style::Form,
    };
    let explode = parameter.get("explode").and_then(Value::as_bool).unwrap_or(style == Style::Form);
    // `explode` of the delimited ones is what `form` does
    (style, explode)
}

//! The body of a request: JSON, a form, or text.

use serde_json::{Map, Value, json};

use super::document::{Document, Version};
use super::error::{Note, SkipReason};
use super::parameters::{Part, described, example};
use super::schema::Converter;
use crate::operation::{BodyForm, Place, Style};

/// The body's parts, and its form.
pub(crate) fn body<'a>(
    document: &'a Document,
    operation: &'a Value,
    declared: &[&'a Map<String, Value>],
    converter: &mut Converter<'a>,
) -> Result<(BodyForm, Vec<Part>), SkipReason> {
    match document.version {
        Version::V2 => version_2(document, operation, declared, converter),
        _ => version_3(document, operation, converter),
    }
}

fn version_3<'a>(document: &'a Document, operation: &'a Value, converter: &mut Converter<'a>) -> Result<(BodyForm, Vec<Part>), SkipReason> {
    let Some(body) = operation.get("requestBody").filter(|body| !body.is_null()) else { return Ok((BodyForm::None, Vec::new())) };
    let body = document.resolve(body)?;
    let required = body.get("required").and_then(Value::as_bool) == Some(true);
    let contents = body.get("content").and_then(Value::as_object);
    let Some((media, content)) = contents.and_then(preferred) else {
        let medias: Vec<&str> = contents.into_iter().flat_map(Map::keys).map(String::as_str).take(3).collect();
        return unsupported(&medias.join(", "), required && !medias.is_empty(), converter);
    };
    let schema = content.get("schema");
    let form = form(media);
    match form {
        BodyForm::Form | BodyForm::Multipart => match schema {
            Some(schema) => fields(document, schema, content, form, required, converter),
            None => unsupported(media, required, converter),
        },
        _ => {
            let converted = match schema {
                Some(schema) => converter.convert(schema)?,
                None => json!({}),
            };
            let schema = if matches!(form, BodyForm::Text(_)) { json!({ "type": "string", "contentMediaType": media }) } else { converted };
            let schema = described(schema, body.get("description"));
            let example = content.as_object().and_then(example);
            Ok((form, vec![whole("body", required, schema, example)]))
        }
    }
}

/// The content that can be written best.
fn preferred(contents: &Map<String, Value>) -> Option<(&str, &Value)> {
    let rank = |media: &str| match form(media) {
        BodyForm::Json(_) if media.starts_with("application/json") => 0,
        BodyForm::Json(_) if media != "*/*" => 1,
        BodyForm::Form => 2,
        BodyForm::Json(_) => 3,
        BodyForm::Multipart => 4,
        BodyForm::Text(_) => 5,
        BodyForm::None => 9,
    };
    let best = contents.iter().min_by_key(|(media, _)| rank(media))?;
    (rank(best.0) < 9).then_some((best.0.as_str(), best.1))
}

/// How a media type is written; none: it is not.
fn form(media: &str) -> BodyForm {
    let plain = media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match plain.as_str() {
        "*/*" | "application/*" => BodyForm::Json("application/json".to_owned()),
        "application/x-www-form-urlencoded" => BodyForm::Form,
        "multipart/form-data" => BodyForm::Multipart,
        "application/x-ndjson" | "application/jsonl" => BodyForm::Text(plain),
        _ if plain.ends_with("/json") || plain.ends_with("+json") || plain.ends_with("/x-json") => BodyForm::Json(plain),
        _ if plain.starts_with("text/") && !plain.contains('*') && plain != "text/xml" => BodyForm::Text(plain),
        _ => BodyForm::None,
    }
}

fn unsupported(media: &str, required: bool, converter: &mut Converter<'_>) -> Result<(BodyForm, Vec<Part>), SkipReason> {
    if required {
        return Err(SkipReason::Body(autoact_trajectory::cut(media.to_owned(), 120).0));
    }
    converter.notes.insert(Note::LeftOut(format!("body of {}", autoact_trajectory::cut(media.to_owned(), 100).0)));
    Ok((BodyForm::None, Vec::new()))
}

fn whole(wire: &str, required: bool, schema: Value, example: Option<Value>) -> Part {
    Part { wire: wire.to_owned(), place: Place::Body, style: Style::Form, explode: true, required, schema, example }
}

/// A form's fields, each an argument of its own.
fn fields<'a>(
    document: &'a Document,
    schema: &'a Value,
    content: &'a Value,
    form: BodyForm,
    body_required: bool,
    converter: &mut Converter<'a>,
) -> Result<(BodyForm, Vec<Part>), SkipReason> {
    let mut files = Vec::new();
    collect_files(document, schema, &mut files, 0);
    let converted = converter.convert(schema)?;
    let required = |name: &str| converted["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let mut parts = Vec::new();
    for (name, property) in converted["properties"].as_object().into_iter().flatten() {
        let needed = body_required && required(name);
        if files.contains(name) {
            if needed {
                return Err(SkipReason::File(name.clone()));
            }
            converter.notes.insert(Note::LeftOut(name.clone()));
            continue;
        }
        let encoding = &content["encoding"][name];
        let json = encoding["contentType"].as_str().is_some_and(|media| media.contains("json"));
        let style = match encoding["style"].as_str() {
            _ if json => Style::Json,
            Some("deepObject") => Style::Deep,
            Some("spaceDelimited") => Style::Space,
            Some("pipeDelimited") => Style::Pipe,
            _ => Style::Form,
        };
        let explode = encoding["explode"].as_bool().unwrap_or(style == Style::Form);
        parts.push(Part {
            wire: name.clone(),
            place: Place::Field,
            style,
            explode,
            required: needed,
            schema: property.clone(),
            example: None,
        });
    }
    if parts.is_empty() && body_required && converted["properties"].as_object().is_none_or(Map::is_empty) {
        return Err(SkipReason::Body("a form without named fields".to_owned()));
    }
    Ok((if parts.is_empty() { BodyForm::None } else { form }, parts))
}

/// The properties that are files: binary strings, or lists of them.
fn collect_files(document: &Document, schema: &Value, files: &mut Vec<String>, depth: usize) {
    let Ok(schema) = document.resolve(schema) else { return };
    if depth > 8 {
        return;
    }
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let is_file = |property: &Value| document.resolve(property).is_ok_and(|one| one["format"] == "binary" || one["type"] == "file");
        if is_file(property) || document.resolve(property).is_ok_and(|one| one.get("items").is_some_and(is_file)) {
            files.push(name.clone());
        }
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for part in schema.get(keyword).and_then(Value::as_array).into_iter().flatten() {
            collect_files(document, part, files, depth + 1);
        }
    }
}

fn version_2<'a>(
    document: &'a Document,
    operation: &'a Value,
    declared: &[&'a Map<String, Value>],
    converter: &mut Converter<'a>,
) -> Result<(BodyForm, Vec<Part>), SkipReason> {
    let consumes = operation.get("consumes").or_else(|| document.root.get("consumes")).and_then(Value::as_array);
    let medias: Vec<&str> = consumes.into_iter().flatten().filter_map(Value::as_str).collect();
    let place = |parameter: &Map<String, Value>, name: &str| parameter.get("in").and_then(Value::as_str) == Some(name);
    let is_required = |parameter: &Map<String, Value>| parameter.get("required").and_then(Value::as_bool) == Some(true);
    if let Some(body) = declared.iter().find(|parameter| place(parameter, "body")) {
        let required = is_required(body);
        let all: Map<String, Value> = medias.iter().map(|media| ((*media).to_owned(), Value::Null)).collect();
        let form = match preferred(&all) {
            None if medias.is_empty() => BodyForm::Json("application/json".to_owned()),
            None => return unsupported(&medias.join(", "), required, converter),
            // a form cannot be made of `body`
            Some((media, _)) => match form(media) {
                BodyForm::Form | BodyForm::Multipart => BodyForm::Json("application/json".to_owned()),
                form => form,
            },
        };
        let schema = match (&form, body.get("schema")) {
            (BodyForm::Text(media), _) => json!({ "type": "string", "contentMediaType": media }),
            (_, Some(schema)) => converter.convert(schema)?,
            (_, None) => json!({}),
        };
        return Ok((form, vec![whole("body", required, described(schema, body.get("description")), example(body))]));
    }
    let mut parts = Vec::new();
    for field in declared.iter().filter(|parameter| place(parameter, "formData")) {
        let name = field.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let required = is_required(field);
        if field.get("type").is_some_and(|kind| kind == "file") {
            if required {
                return Err(SkipReason::File(name));
            }
            converter.notes.insert(Note::LeftOut(name));
            continue;
        }
        let (style, explode) = match field.get("collectionFormat").and_then(Value::as_str) {
            Some("multi") => (Style::Form, true),
            Some("ssv") => (Style::Space, false),
            Some("tsv") => (Style::Tab, false),
            Some("pipes") => (Style::Pipe, false),
            _ => (Style::Form, false),
        };
        let schema = described(converter.convert_parameter(field)?, field.get("description"));
        parts.push(Part { wire: name, place: Place::Field, style, explode, required, schema, example: example(field) });
    }
    let multipart = medias.iter().any(|media| media.starts_with("multipart/")) && !medias.iter().any(|media| media.ends_with("urlencoded"));
    let form = match (parts.is_empty(), multipart) {
        (true, _) => BodyForm::None,
        (false, true) => BodyForm::Multipart,
        (false, false) => BodyForm::Form,
    };
    Ok((form, parts))
}

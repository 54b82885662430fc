//! One operation of a document as a tool's spec and request.

use autoact_trajectory::{Asks, Effect, ParameterSchema, ToolSpec, cut};
use serde_json::{Map, Value, json};
use url::Url;

use super::document::Document;
use super::error::{Note, SkipReason};
use super::names::{self, Names};
use super::options::{ImportOptions, Imported};
use super::parameters::Part;
use super::schema::Converter;
use super::security::{NeededSecret, needs};
use super::{bodies, example, parameters, schema, servers, shrink};
use crate::operation::{Argument, Method, Operation, Place, Style};
use crate::remote;
use crate::template::UrlTemplate;

/// The longest name of an argument.
const ARGUMENT: usize = 64;

/// What all operations of an import share.
pub(crate) struct Context<'a> {
    pub(crate) document: &'a Document,
    pub(crate) source: Option<&'a Url>,
    pub(crate) server: Option<String>,
    pub(crate) options: &'a ImportOptions,
}

/// Reads one operation. The secrets are those that it needs.
pub(crate) fn assemble(
    context: &Context<'_>,
    item: &Value,
    path: &str,
    method: &str,
    said: &Value,
    at: &str,
    names: &mut Names,
) -> Result<(Imported, Vec<NeededSecret>), SkipReason> {
    let Context { document, source, server, options } = context;
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or_default();
    let verb = Method::parse(method).ok_or_else(|| SkipReason::Method(cut(method.to_owned(), 40).0))?;
    if !said.is_object() {
        return Err(SkipReason::Malformed(at.to_owned()));
    }
    let deprecated = said.get("deprecated").and_then(Value::as_bool) == Some(true);
    if deprecated && options.skip_deprecated {
        return Err(SkipReason::Deprecated);
    }
    let mut converter = Converter::new(document);
    let base = match server {
        Some(server) => server.clone(),
        None => servers::base(document, item, said, *source, &options.variables)?,
    };
    let (path, fragment) = path.split_once('#').unwrap_or((path, ""));
    if !fragment.is_empty() {
        converter.notes.insert(Note::Fragment(cut(fragment.to_owned(), 80).0));
    }
    let slash = if path.starts_with('/') { "" } else { "/" };
    let url = UrlTemplate::parse(&format!("{base}{slash}{path}"))?;
    let needed = needs(document, said, &options.secrets)?;
    converter.notes.extend(needed.undefined.iter().map(|name| Note::UndefinedSecurity(cut(name.clone(), 80).0)));
    let declared = parameters::declared(document, item, said)?;
    let mut parts = parameters::parts(document, &declared, &needed, &mut converter)?;
    fit_path(&url, &mut parts, &mut converter);
    let (body, more) = bodies::body(document, said, &declared, &mut converter)?;
    parts.extend(more);
    let (arguments, mut schema, shown) = arguments(parts);
    let mut notes = converter.notes;
    shrink::shrink(&mut schema, &mut notes)?;
    let (compiled, schema) = remote::compile(schema, &mut notes)?;
    let mut operation = Operation::new(verb, url);
    operation.arguments = arguments;
    operation.body = body;
    operation.credentials.clone_from(&needed.credentials);
    operation.hosts.clone_from(&options.hosts);
    operation.allow_private = options.allow_private;
    operation.limits = options.limits;
    operation.check(&schema)?;
    let name = names.tool(&options.prefix, said.get("operationId").and_then(Value::as_str), method, path);
    let definition = remote::definition([text("summary"), text("description"), at]);
    let details = if definition == remote::definition([text("summary")]) { schema::prose(text("description")) } else { String::new() };
    let mut secrets: Vec<String> = needed.secrets.iter().map(|secret| secret.scheme.clone()).collect();
    secrets.sort();
    let digest = digest(&operation, &schema, &definition, &secrets);
    let examples = example::line(&schema, &compiled, &shown).into_iter().collect();
    let spec = ToolSpec {
        usage: remote::usage(&name, &schema),
        name,
        definition,
        effect: verb.effect(),
        timeout: options.timeout,
        max_observation_bytes: options.max_observation_bytes,
        terminal: None,
        schema: Some(schema),
        examples,
        multiline: false,
        asks: (options.approval && verb.effect() != Effect::ReadOnly).then_some(Asks::Approval),
    };
    let notes = notes.into_iter().collect();
    Ok((Imported { spec, operation, at: at.to_owned(), details, deprecated, notes, secrets, digest }, needed.secrets))
}

/// Parameters of the path are those of the URL, no more and no fewer.
fn fit_path(url: &UrlTemplate, parts: &mut Vec<Part>, converter: &mut Converter<'_>) {
    parts.retain(|part| {
        let fits = part.place != Place::Path || url.names().any(|name| name == part.wire);
        if !fits {
            converter.notes.insert(Note::LeftOut(part.wire.clone()));
        }
        fits
    });
    let mut at = 0;
    for name in url.names() {
        if parts.iter().any(|part| part.place == Place::Path && part.wire == name) {
            continue;
        }
        converter.notes.insert(Note::Undeclared(name.to_owned()));
        let schema = json!({ "type": "string" });
        let part =
            Part { wire: name.to_owned(), place: Place::Path, style: Style::Simple, explode: false, required: true, schema, example: None };
        parts.insert(at, part);
        at += 1;
    }
}

/// The arguments with the schema of all: the required ones first, since a model writes them in this
/// order. Values that the document shows come by name.
fn arguments(mut parts: Vec<Part>) -> (Vec<Argument>, Value, Map<String, Value>) {
    parts.sort_by_key(|part| !part.required);
    let mut taken = Names::default();
    let (mut properties, mut required, mut shown, mut all) = (Map::new(), Vec::new(), Map::new(), Vec::new());
    for part in parts {
        let plain = names::argument(&part.wire);
        let name = match properties.contains_key(&plain) {
            false => plain,
            true => format!("{plain}_{}", place_name(part.place)),
        };
        let name = taken.unique(name, ARGUMENT, &[]);
        if part.required {
            required.push(Value::from(name.as_str()));
        }
        if let Some(example) = part.example {
            shown.insert(name.clone(), example);
        }
        properties.insert(name.clone(), part.schema);
        all.push(Argument { name, wire: part.wire, place: part.place, style: part.style, explode: part.explode });
    }
    let mut schema = json!({ "type": "object", "properties": properties });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema["additionalProperties"] = false.into();
    (all, schema, shown)
}

fn place_name(place: Place) -> &'static str {
    match place {
        Place::Path => "path",
        Place::Query => "query",
        Place::Header => "header",
        Place::Cookie => "cookie",
        Place::Body => "body",
        Place::Field => "field",
    }
}

/// The digest of all that a call depends on. Where a secret is kept is the user's matter.
fn digest(operation: &Operation, schema: &ParameterSchema, definition: &str, secrets: &[String]) -> String {
    let arguments: Vec<Value> = operation
        .arguments
        .iter()
        .map(|one| json!([one.name, one.wire, format!("{:?}", one.place), format!("{:?}", one.style), one.explode]))
        .collect();
    let all = json!([
        operation.method.name(),
        operation.url.to_string(),
        arguments,
        format!("{:?}", operation.body),
        remote::sorted(schema.value()),
        definition,
        secrets,
    ]);
    remote::sha256(all.to_string().as_bytes())
}

//! `kind = "http"`: a tool that is one request.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use autoact_base::error::line;
use autoact_http_tools::{Argument, BodyForm, HostRule, HttpClient, HttpTool, Limits, Method, Operation, Place, UrlTemplate};
use autoact_tools::Tool;
use autoact_trajectory::{Effect, ToolSpec};
use serde::Deserialize;

use crate::secret::{RawCredential, credentials};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRequest {
    #[serde(default = "get")]
    method: String,
    url: String,
    /// Where arguments go that do not go where they usually do.
    #[serde(default)]
    place: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    credentials: Vec<RawCredential>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    allow_private: bool,
    max_response_bytes: Option<usize>,
    redirects: Option<u8>,
    concurrency: Option<usize>,
}

fn get() -> String {
    "GET".to_owned()
}

/// What HTTP says of the method.
pub(crate) fn effect(run: &toml::Table) -> Option<Effect> {
    match run.get("method") {
        None => Some(Effect::ReadOnly),
        Some(method) => Method::parse(method.as_str()?).map(Method::effect),
    }
}

/// The tool of an entry.
pub(crate) fn tool(run: toml::Table, spec: ToolSpec, base: Option<&Path>, client: &HttpClient) -> Result<Arc<dyn Tool>, Vec<String>> {
    let raw: RawRequest = run.try_into().map_err(|error: toml::de::Error| vec![line(&error)])?;
    let mut mistakes = Vec::new();
    let method = Method::parse(&raw.method);
    if method.is_none() {
        mistakes.push(format!("the method `{}` is unknown; expected GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE", raw.method));
    }
    let url = UrlTemplate::parse(&raw.url).map_err(|error| mistakes.push(error.to_string())).ok();
    let Some(schema) = &spec.schema else {
        mistakes.push("a request needs a `schema`: its arguments (`{ \"type\": \"object\", \"properties\": {} }` for none)".to_owned());
        return Err(mistakes);
    };
    let credentials = credentials(raw.credentials, base, client, &mut mistakes);
    let hosts = hosts(&raw.hosts, &mut mistakes);
    let (Some(method), Some(url)) = (method, url) else { return Err(mistakes) };
    let mut arguments = Vec::new();
    for (name, _) in schema.properties() {
        let usual = if url.names().any(|place| place == name) {
            Place::Path
        } else if matches!(method, Method::Post | Method::Put | Method::Patch) {
            Place::Field
        } else {
            Place::Query
        };
        match raw.place.get(name) {
            None => arguments.push(Argument::new(name, usual)),
            Some(written) => arguments.extend(argument(name, written, &mut mistakes)),
        }
    }
    for name in raw.place.keys().filter(|name| !schema.properties().any(|(known, _)| known == name.as_str())) {
        mistakes.push(format!("`place` names `{name}`, which the schema does not have"));
    }
    let has = |place| arguments.iter().any(|argument: &Argument| argument.place == place);
    let body = match raw.body.as_deref() {
        None if has(Place::Body) || has(Place::Field) => BodyForm::Json("application/json".to_owned()),
        None => BodyForm::None,
        Some("json") => BodyForm::Json("application/json".to_owned()),
        Some("form") => BodyForm::Form,
        Some("multipart") => BodyForm::Multipart,
        Some("text") => BodyForm::Text("text/plain; charset=utf-8".to_owned()),
        Some(other) => {
            mistakes.push(format!("the body `{other}` is unknown; expected `json`, `form`, `multipart` or `text`"));
            BodyForm::None
        }
    };
    let usual = Limits::default();
    let limits = Limits {
        time: spec.timeout,
        response_bytes: raw.max_response_bytes.unwrap_or(usual.response_bytes),
        redirects: raw.redirects.unwrap_or(usual.redirects),
        concurrency: raw.concurrency.unwrap_or(usual.concurrency),
    };
    let headers = raw.headers.into_iter().collect();
    let operation =
        Operation { arguments, body, headers, credentials, hosts, allow_private: raw.allow_private, limits, ..Operation::new(method, url) };
    match HttpTool::new(spec, operation, client.clone()) {
        Ok(tool) if mistakes.is_empty() => Ok(Arc::new(tool)),
        Ok(_) => Err(mistakes),
        Err(error) => {
            mistakes.push(error.to_string());
            Err(mistakes)
        }
    }
}

/// `header:X-Team`: a place, and the name there if it is another one.
fn argument(name: &str, written: &str, mistakes: &mut Vec<String>) -> Option<Argument> {
    let (place, wire) = written.split_once(':').map_or((written, name), |(place, wire)| (place, wire.trim()));
    let place = match place {
        "path" => Place::Path,
        "query" => Place::Query,
        "header" => Place::Header,
        "cookie" => Place::Cookie,
        "body" => Place::Body,
        "field" => Place::Field,
        _ => {
            mistakes.push(format!(
                "`place` of `{name}` is `{written}`; expected `path`, `query`, `header`, `cookie`, `body` or `field`, \
                 and `:NAME` if the request has another name for it"
            ));
            return None;
        }
    };
    Some(Argument { wire: wire.to_owned(), ..Argument::new(name, place) })
}

/// Rules of an entry.
pub(crate) fn hosts(written: &[String], mistakes: &mut Vec<String>) -> Vec<HostRule> {
    written.iter().filter_map(|text| HostRule::parse(text).map_err(|error| mistakes.push(error.to_string())).ok()).collect()
}

//! One request from an operation and the arguments of a call. Nothing is sent here.

use std::collections::BTreeMap;

use autoact_trajectory::{Arguments, Effect};
use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, COOKIE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use serde_json::{Map, Value};
use url::Url;

use crate::encode::{encoded, leads_elsewhere};
use crate::failure::HttpFailure;
use crate::multipart;
use crate::operation::{Argument, BodyForm, Operation, Place, header_name};
use crate::secret::{Hidden, SecretPlace};
use crate::style::{in_path, pairs, text};

/// Names a call that changes the world, so that a server can tell its repetition.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// The longest URL that servers take.
const LONGEST_URL: usize = 16 * 1024;

/// What is sent first; redirects change it.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) hidden: Hidden,
}

/// Builds the request of one call.
pub(crate) fn build(
    operation: &Operation,
    effect: Effect,
    arguments: &Arguments,
    key: &str,
    variables: &BTreeMap<String, String>,
) -> Result<Prepared, HttpFailure> {
    if let Some(unknown) = arguments.keys().find(|name| !operation.arguments.iter().any(|one| one.name == **name)) {
        return Err(refused(unknown, "is no argument of this tool"));
    }
    let mut headers = fixed(operation)?;
    let mut query = Vec::new();
    let mut cookies = Vec::new();
    for argument in &operation.arguments {
        let Some(value) = arguments.get(&argument.name) else { continue };
        match argument.place {
            Place::Query => query.extend(pairs(argument, value)),
            Place::Cookie => cookies.extend(pairs(argument, value).into_iter().map(|(name, value)| format!("{name}={value}"))),
            Place::Header => add_header(&mut headers, argument, value)?,
            Place::Path => check_path(argument, value)?,
            Place::Body | Place::Field => {}
        }
    }
    let mut hidden = Hidden::default();
    for credential in &operation.credentials {
        let secret = credential.secret.read(variables)?;
        hidden.add(&secret);
        if let Some((name, value)) = credential.header(&secret, &mut hidden)? {
            headers.insert(name, value);
        }
        match &credential.place {
            SecretPlace::Query(name) => query.push((encoded(name), encoded(&secret))),
            SecretPlace::Cookie(name) => cookies.push(format!("{}={}", encoded(name), encoded(&secret))),
            SecretPlace::Header(_) | SecretPlace::Bearer | SecretPlace::Basic => {}
        }
    }
    if !cookies.is_empty() {
        let mut value =
            HeaderValue::try_from(cookies.join("; ")).map_err(|_| HttpFailure::Internal("cookies that cannot be sent".into()))?;
        value.set_sensitive(true);
        headers.insert(COOKIE, value);
    }
    let placed = |wire: &str| {
        let argument = operation.arguments.iter().find(|one| one.place == Place::Path && one.wire == wire)?;
        arguments.get(&argument.name).filter(|value| !text(value).is_empty()).map(|value| in_path(argument, value, encoded))
    };
    let url = operation.url.fill(placed, &query)?;
    if url.as_str().len() > LONGEST_URL {
        return Err(refused("", "the arguments are too long for a URL"));
    }
    if effect != Effect::ReadOnly
        && !key.is_empty()
        && let Ok(value) = HeaderValue::try_from(key)
    {
        headers.insert(IDEMPOTENCY_KEY, value);
    }
    let body = body(operation, arguments, &mut headers)?;
    Ok(Prepared { url, headers, body, hidden })
}

/// The headers that every request of the operation has.
fn fixed(operation: &Operation) -> Result<HeaderMap, HttpFailure> {
    let mut headers = plain();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/*;q=0.8, */*;q=0.1"));
    add_fixed(&mut headers, &operation.headers)?;
    Ok(headers)
}

/// What every request says of us.
pub(crate) fn plain() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("autoact/", env!("CARGO_PKG_VERSION"))));
    // an answer that is not compressed has the length that is read
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers
}

pub(crate) fn add_fixed(headers: &mut HeaderMap, fixed: &[(String, String)]) -> Result<(), HttpFailure> {
    for (name, value) in fixed {
        let (Some(name), Ok(value)) = (header_name(name), HeaderValue::try_from(value)) else {
            return Err(HttpFailure::Internal(format!("the header `{name}` cannot be set")));
        };
        headers.insert(name, value);
    }
    Ok(())
}

fn add_header(headers: &mut HeaderMap, argument: &Argument, value: &Value) -> Result<(), HttpFailure> {
    let text = in_path(argument, value, str::to_owned);
    let value = HeaderValue::from_str(&text).ok().filter(|_| text.is_ascii());
    let value = value.ok_or_else(|| refused(&argument.name, "goes into a header; expected printable ASCII characters on one line"))?;
    let name = header_name(&argument.wire).ok_or_else(|| HttpFailure::Internal(format!("the header `{}` cannot be set", argument.wire)))?;
    headers.insert(name, value);
    Ok(())
}

fn check_path(argument: &Argument, value: &Value) -> Result<(), HttpFailure> {
    let parts: Vec<String> = match value {
        Value::Array(items) => items.iter().map(text).collect(),
        Value::Object(fields) => fields.iter().flat_map(|(key, value)| [key.clone(), text(value)]).collect(),
        other => vec![text(other)],
    };
    if parts.iter().any(|part| leads_elsewhere(part)) {
        return Err(refused(&argument.name, "is part of the path; `.` and `..` may not be segments of it"));
    }
    Ok(())
}

fn body(operation: &Operation, arguments: &Arguments, headers: &mut HeaderMap) -> Result<Bytes, HttpFailure> {
    let given = |place: Place| {
        operation.arguments.iter().filter(move |one| one.place == place).filter_map(|one| Some((one, arguments.get(&one.name)?)))
    };
    let typed = |headers: &mut HeaderMap, media: &str| {
        if let Ok(media) = HeaderValue::try_from(media) {
            headers.insert(CONTENT_TYPE, media);
        }
    };
    match &operation.body {
        BodyForm::None => Ok(Bytes::new()),
        BodyForm::Json(media) => {
            let whole = given(Place::Body).next().map(|(_, value)| value.clone());
            let fields: Map<String, Value> = given(Place::Field).map(|(one, value)| (one.wire.clone(), value.clone())).collect();
            let has_fields = operation.arguments.iter().any(|one| one.place == Place::Field);
            let Some(value) = whole.or_else(|| has_fields.then_some(Value::Object(fields))) else { return Ok(Bytes::new()) };
            typed(headers, media);
            Ok(value.to_string().into())
        }
        BodyForm::Form => {
            let fields: Vec<String> =
                given(Place::Field).flat_map(|(one, value)| pairs(one, value)).map(|(name, value)| format!("{name}={value}")).collect();
            typed(headers, "application/x-www-form-urlencoded");
            Ok(fields.join("&").into())
        }
        BodyForm::Multipart => {
            let fields: Vec<(&str, &Value)> = given(Place::Field).map(|(one, value)| (one.wire.as_str(), value)).collect();
            let (media, body) = multipart::form(&fields);
            typed(headers, &media);
            Ok(body.into())
        }
        BodyForm::Text(media) => {
            let Some((_, value)) = given(Place::Body).next() else { return Ok(Bytes::new()) };
            typed(headers, media);
            Ok(text(value).into())
        }
    }
}

fn refused(name: &str, reason: &str) -> HttpFailure {
    HttpFailure::Argument { name: name.to_owned(), reason: reason.to_owned() }
}

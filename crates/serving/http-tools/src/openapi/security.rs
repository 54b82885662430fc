//! Which secrets an operation needs.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::document::{Document, Version};
use super::error::SkipReason;
use super::schema::prose;
use crate::operation::{Place, header_name};
use crate::secret::{Credential, Secret, SecretPlace};

/// A secret that operations of a document need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededSecret {
    /// The name of the security scheme: the key of [`ImportOptions::secrets`](super::ImportOptions).
    pub scheme: String,
    /// Where it goes.
    pub place: SecretPlace,
    /// What the document says of it, one line.
    pub description: String,
    /// Whether the options name it.
    pub given: bool,
}

/// What one operation needs.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(crate) secrets: Vec<NeededSecret>,
    pub(crate) credentials: Vec<Credential>,
    /// Names of schemes that the document does not define: the server may want more.
    pub(crate) undefined: Vec<String>,
}

impl Needs {
    /// Whether a parameter of this name and place is a secret, which no model writes.
    pub(crate) fn is_secret(&self, wire: &str, place: Place) -> bool {
        self.secrets.iter().any(|secret| match (&secret.place, place) {
            (SecretPlace::Header(name), Place::Header) => name.eq_ignore_ascii_case(wire),
            (SecretPlace::Query(name), Place::Query) | (SecretPlace::Cookie(name), Place::Cookie) => name == wire,
            _ => false,
        })
    }
}

/// Reads the requirements. Of several alternatives, the first is taken whose secrets are all
/// given; otherwise the first that can be used at all. None may be among them.
pub(crate) fn needs(document: &Document, operation: &Value, secrets: &BTreeMap<String, Secret>) -> Result<Needs, SkipReason> {
    let said = operation.get("security").or_else(|| document.root.get("security")).and_then(Value::as_array);
    let Some(alternatives) = said.filter(|all| !all.is_empty()) else { return Ok(Needs::default()) };
    let (mut unusable, mut undefined) = (None, Vec::new());
    let mut usable = Vec::new();
    for alternative in alternatives.iter().filter_map(Value::as_object) {
        let (defined, unknown): (Vec<_>, Vec<_>) =
            alternative.keys().partition(|name| schemes(document).is_some_and(|all| all.contains_key(*name)));
        undefined.extend(unknown.into_iter().cloned());
        match defined.into_iter().map(|name| scheme(document, name, secrets)).collect::<Result<Vec<_>, _>>() {
            Ok(all) => usable.push(all),
            Err(reason) => unusable = Some(reason),
        }
    }
    let given = usable.iter().position(|all| all.iter().all(|secret| secret.given) && !all.is_empty());
    let chosen = given.or_else(|| usable.iter().position(Vec::is_empty)).unwrap_or(0);
    let Some(chosen) = usable.into_iter().nth(chosen) else { return unusable.map_or(Ok(Needs::default()), Err) };
    let credential = |needed: &NeededSecret| Some(Credential { secret: secrets.get(&needed.scheme)?.clone(), place: needed.place.clone() });
    Ok(Needs { credentials: chosen.iter().filter_map(credential).collect(), secrets: chosen, undefined })
}

fn schemes(document: &Document) -> Option<&Map<String, Value>> {
    let all = match document.version {
        Version::V2 => document.root.get("securityDefinitions"),
        _ => document.root.pointer("/components/securitySchemes"),
    };
    all?.as_object()
}

fn scheme(document: &Document, name: &str, secrets: &BTreeMap<String, Secret>) -> Result<NeededSecret, SkipReason> {
    let unsupported = || SkipReason::Security(autoact_trajectory::cut(name.to_owned(), 80).0);
    let scheme = document.resolve(schemes(document).and_then(|all| all.get(name)).ok_or_else(unsupported)?)?;
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let parameter = text("name").to_owned();
    let lower = text("scheme").to_ascii_lowercase();
    let place = match (text("type"), text("in"), lower.as_str()) {
        ("apiKey", ..) if parameter.is_empty() => return Err(unsupported()),
        ("apiKey", "header", _) if parameter.eq_ignore_ascii_case("cookie") => return Err(unsupported()),
        ("apiKey", "header", _) if header_name(&parameter).is_none() => return Err(unsupported()),
        ("apiKey", "header", _) => SecretPlace::Header(parameter),
        ("apiKey", "query", _) => SecretPlace::Query(parameter),
        ("apiKey", "cookie", _) => SecretPlace::Cookie(parameter),
        ("basic", ..) | ("http", _, "basic") => SecretPlace::Basic,
        ("oauth2" | "openIdConnect", ..) | ("http", _, "bearer") => SecretPlace::Bearer,
        _ => return Err(unsupported()),
    };
    let mut description = autoact_trajectory::cut(prose(text("description")), 200).0;
    if description.is_empty() {
        description = text("type").to_owned();
    }
    Ok(NeededSecret { scheme: name.to_owned(), place, description, given: secrets.contains_key(name) })
}

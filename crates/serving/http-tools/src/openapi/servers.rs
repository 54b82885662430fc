//! Where an operation is: servers with variables, or host, base path and schemes of version 2.0.

use std::collections::BTreeMap;

use serde_json::Value;
use url::Url;

use super::document::{Document, Version};
use super::error::SkipReason;

/// The longest URL of a server.
const LONGEST: usize = 2000;

/// The URL that an operation's path is appended to, without a slash at its end.
pub(crate) fn base(
    document: &Document,
    item: &Value,
    operation: &Value,
    source: Option<&Url>,
    variables: &BTreeMap<String, String>,
) -> Result<String, SkipReason> {
    let said = match document.version {
        Version::V2 => version_2(&document.root, operation, source),
        _ => {
            let first = [operation, item, &document.root].into_iter().find_map(|level| best(level.get("servers")?.as_array()?, variables));
            first.unwrap_or_else(|| "/".to_owned())
        }
    };
    let refused = || SkipReason::Server(autoact_trajectory::cut(said.clone(), 120).0);
    absolute(&said, source).ok_or_else(refused)
}

/// The URL of a server as an option or a document says it.
pub(crate) fn absolute(said: &str, source: Option<&Url>) -> Option<String> {
    let said = said.trim();
    if said.len() > LONGEST || said.contains(['{', '}']) {
        return None;
    }
    let url = match (Url::parse(said), source) {
        (Ok(url), _) => url,
        (Err(_), Some(source)) => source.join(said).ok()?,
        (Err(_), None) => return None,
    };
    let plain = matches!(url.scheme(), "http" | "https") && url.has_host() && url.username().is_empty() && url.password().is_none();
    // a query or a fragment of a server means nothing
    plain.then(|| url[..url::Position::AfterPath].trim_end_matches('/').to_owned())
}

/// The first server of https, otherwise the first of http or the first one.
fn best(servers: &[Value], variables: &BTreeMap<String, String>) -> Option<String> {
    let urls: Vec<String> = servers.iter().filter_map(|server| filled(server, variables)).collect();
    let start = |scheme: &str| urls.iter().find(|url| url.starts_with(scheme)).cloned();
    start("https://").or_else(|| start("http://")).or_else(|| urls.first().cloned())
}

/// A server's URL with the values of its variables: the user's, otherwise the defaults.
fn filled(server: &Value, variables: &BTreeMap<String, String>) -> Option<String> {
    let mut url = server.get("url")?.as_str()?.to_owned();
    if url.len() > LONGEST {
        return None;
    }
    for (name, variable) in server.get("variables").and_then(Value::as_object).into_iter().flatten() {
        let place = format!("{{{name}}}");
        let default = variable.get("default").or_else(|| variable.get("enum")?.get(0));
        let value = variables.get(name).cloned().or_else(|| default.map(crate::style::text));
        if let Some(value) = value
            && url.contains(&place)
            && value.len() <= LONGEST
        {
            url = url.replace(&place, &value);
        }
    }
    for (name, value) in variables {
        url = url.replace(&format!("{{{name}}}"), value);
    }
    // `//example.com` is the host of a document that has none itself
    Some(if url.starts_with("//") { format!("https:{url}") } else { url })
}

fn version_2(root: &Value, operation: &Value, source: Option<&Url>) -> String {
    let schemes = [operation, root].into_iter().find_map(|level| level.get("schemes")?.as_array().filter(|all| !all.is_empty()));
    let has = |name: &str| schemes.is_some_and(|all| all.iter().any(|scheme| scheme == name));
    let base = root.get("basePath").and_then(Value::as_str).unwrap_or("/");
    let slash = if base.starts_with('/') { "" } else { "/" };
    let own = source.map(|source| source.scheme().to_owned());
    let scheme = if has("https") || schemes.is_none() && own.is_none() {
        "https".to_owned()
    } else if has("http") {
        "http".to_owned()
    } else {
        own.unwrap_or_else(|| "https".to_owned())
    };
    match root.get("host").and_then(Value::as_str).filter(|host| !host.is_empty()) {
        Some(host) => format!("{scheme}://{host}{slash}{base}"),
        None => format!("{slash}{base}"),
    }
}

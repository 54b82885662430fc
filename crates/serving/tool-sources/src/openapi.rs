//! `[[openapi]]`: the operations of a document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_base::duration;
use autoact_base::error::line;
use autoact_http_tools::openapi::{Import, ImportOptions, import};
use autoact_http_tools::{Endpoint, HttpClient, HttpTool, remote};
use autoact_tools::{Tool, ToolSet};
use autoact_trajectory::ToolBackground;
use serde::Deserialize;
use url::Url;

use crate::http::hosts;
use crate::pin::pin;
use crate::secret::RawSecret;

/// The section's name.
pub(crate) const SECTION: &str = "openapi";
/// A document is at most so long.
const MAX_BYTES: usize = 32 << 20;
/// The time to fetch one.
const FETCH: Duration = Duration::from_secs(20);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSet {
    name: String,
    /// A file, or a URL.
    source: String,
    digest: Option<String>,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    prefix: String,
    server: Option<String>,
    #[serde(default)]
    variables: BTreeMap<String, String>,
    /// By the names of the document's security schemes.
    #[serde(default)]
    secrets: BTreeMap<String, RawSecret>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    allow_private: bool,
    skip_deprecated: Option<bool>,
    #[serde(default)]
    approval: bool,
    timeout: Option<String>,
    max_observation_bytes: Option<usize>,
}

/// Whether the entry's document is fetched.
pub(crate) fn is_remote(entry: &toml::Table) -> bool {
    entry.get("source").and_then(toml::Value::as_str).is_some_and(|source| url(source).is_some())
}

fn url(source: &str) -> Option<Url> {
    Url::parse(source).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

/// The set of an entry.
pub(crate) fn set(entry: toml::Table, base: Option<&Path>, client: &HttpClient) -> Result<ToolSet, Vec<String>> {
    let raw: RawSet = entry.try_into().map_err(|error: toml::de::Error| vec![line(&error)])?;
    let mut mistakes = Vec::new();
    let usual = ImportOptions::default();
    let timeout = raw.timeout.as_deref().map_or(Ok(usual.timeout), duration::parse);
    let timeout = timeout.unwrap_or_else(|mistake| {
        mistakes.push(format!("timeout: {mistake}"));
        usual.timeout
    });
    let secrets = raw.secrets.into_iter();
    let secrets = secrets.filter_map(|(scheme, secret)| Some((scheme, secret.secret(base, client, &mut mistakes)?))).collect();
    let options = ImportOptions {
        server: raw.server,
        variables: raw.variables,
        secrets,
        hosts: hosts(&raw.hosts, &mut mistakes),
        allow_private: raw.allow_private,
        skip_deprecated: raw.skip_deprecated.unwrap_or(usual.skip_deprecated),
        prefix: raw.prefix,
        approval: raw.approval,
        limits: autoact_http_tools::Limits { time: timeout, ..usual.limits },
        timeout,
        max_observation_bytes: raw.max_observation_bytes.unwrap_or(usual.max_observation_bytes),
    };
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut set = ToolSet::new(SECTION, raw.name);
    let remote_source = url(&raw.source).is_some();
    let bytes = if remote_source {
        match fetch(&raw.source, raw.allow_private, client) {
            Ok(bytes) => bytes,
            Err(why) => {
                set.out_of_service = Some(format!("cannot fetch {}: {why}", raw.source));
                return Ok(set);
            }
        }
    } else {
        let path = base.map_or_else(|| PathBuf::from(&raw.source), |base| base.join(&raw.source));
        let read = std::fs::read(&path).map_err(|error| vec![format!("cannot read `{}`: {error}", path.display())]);
        set.files.push(path);
        read?
    };
    let imported = match import(&bytes, &raw.source, &options) {
        Ok(imported) => imported,
        // what is fetched is not the operator's to mend
        Err(error) if remote_source => {
            set.out_of_service = Some(error.to_string());
            return Ok(set);
        }
        Err(error) => return Err(vec![error.to_string()]),
    };
    let set = filled(set, imported, &raw.only, client)?;
    let digest = set.digest.clone().unwrap_or_default();
    Ok(if remote_source || raw.digest.is_some() { pin(set, raw.digest.as_deref(), &digest) } else { set })
}

fn filled(mut set: ToolSet, imported: Import, only: &[String], client: &HttpClient) -> Result<ToolSet, Vec<String>> {
    let Import { operations, skipped, secrets, title, about, .. } = imported;
    let unknown = only.iter().filter(|name| !operations.iter().any(|operation| operation.spec.name == **name));
    let unknown: Vec<String> = unknown.map(|name| format!("`only` names `{name}`, which the document does not give")).collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let mut digests = Vec::new();
    for operation in operations {
        if !only.is_empty() && !only.contains(&operation.spec.name) {
            continue;
        }
        let (at, name) = (operation.at, operation.spec.name.clone());
        let background = ToolBackground { title: title.clone(), about: about.clone(), details: operation.details };
        match HttpTool::new(operation.spec, operation.operation, client.clone()) {
            Ok(tool) => {
                digests.push(operation.digest);
                set.background.insert(name, background.bounded());
                set.tools.push(Arc::new(tool) as Arc<dyn Tool>);
            }
            Err(error) => set.skipped.push((at, error.to_string())),
        }
    }
    digests.sort_unstable();
    set.digest = Some(remote::digest(&digests.into()));
    set.skipped.extend(skipped.into_iter().map(|skipped| (skipped.at, skipped.reason.to_string())));
    for secret in secrets.iter().filter(|secret| !secret.given) {
        set.notes.push(format!("the document asks for the secret `{0}`: set `secrets.{0} = {{ env = \"NAME\" }}`", secret.scheme));
    }
    Ok(set)
}

fn fetch(source: &str, allow_private: bool, client: &HttpClient) -> Result<Vec<u8>, String> {
    let endpoint = Endpoint::new(source, Vec::new(), Vec::new(), Vec::new(), allow_private).map_err(|error| error.to_string())?;
    let fetching = async {
        let mut opened = endpoint.send(client, http::Method::GET, &http::HeaderMap::new(), Default::default()).await;
        let opened = opened.as_mut().map_err(|failure| failure.to_string())?;
        if opened.status() != 200 {
            return Err(format!("the server answered with status {}", opened.status()));
        }
        opened.whole(MAX_BYTES).await.map_err(|failure| failure.to_string())
    };
    let limited = async { tokio::time::timeout(FETCH, fetching).await };
    client.handle().block_on(limited).unwrap_or_else(|_| Err(format!("no answer within {}", duration::format(FETCH))))
}

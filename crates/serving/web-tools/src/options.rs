//! What the entries of all kinds say of requests.

use std::path::Path;

use autoact_base::error::line;
use autoact_documents::{Limits, Reader};
use autoact_http_tools::{HostRule, HttpClient, Visit};
use autoact_tools::{Confinement, Key};
use serde::{Deserialize, Deserializer};
use url::Url;

use crate::web::Web;

/// The largest answer that an entry may allow: it is held in memory.
const MOST_RESPONSE_BYTES: usize = 64 << 20;

pub(crate) const ALLOW_PRIVATE: Key =
    Key { name: "allow_private", meaning: "whether private addresses of the hosts that are named are open; `false`", required: false };
pub(crate) const MAX_RESPONSE_BYTES: Key =
    Key { name: "max_response_bytes", meaning: "larger answers are refused; 4194304, at most 67108864", required: false };
pub(crate) const REDIRECTS: Key = Key { name: "redirects", meaning: "redirects that are followed; 3", required: false };
pub(crate) const CONCURRENCY: Key = Key { name: "concurrency", meaning: "calls of the tool at once; 4", required: false };
pub(crate) const SANDBOX: Key = Key {
    name: "sandbox",
    meaning: "whether a page is parsed in a confined process (without it), such as `{ tier = \"landlock\" }`; only `tier` counts; `false`: in tool-agent itself",
    required: false,
};
pub(crate) const HOSTS: Key = Key { name: "hosts", meaning: "where requests may go beside the URL's own host", required: false };

/// The keys of all kinds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Raw {
    #[serde(default, deserialize_with = "one_or_several")]
    hosts: Vec<String>,
    #[serde(default)]
    allow_private: bool,
    max_response_bytes: Option<usize>,
    redirects: Option<u8>,
    concurrency: Option<usize>,
}

/// A single host need not be a list: `--set hosts=example.org` makes none.
fn one_or_several<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a host or a list of hosts")]
    enum Hosts {
        One(String),
        Several(Vec<String>),
    }
    Ok(match Hosts::deserialize(deserializer)? {
        Hosts::One(host) => vec![host],
        Hosts::Several(hosts) => hosts,
    })
}

impl Raw {
    /// Takes the keys of all kinds out of an entry; the others stay.
    pub(crate) fn take(run: &mut toml::Table, mistakes: &mut Vec<String>) -> Raw {
        let keys = [HOSTS, ALLOW_PRIVATE, MAX_RESPONSE_BYTES, REDIRECTS, CONCURRENCY];
        let own: toml::Table = keys.iter().filter_map(|key| Some((key.name.to_owned(), run.remove(key.name)?))).collect();
        read(own, mistakes).unwrap_or_default()
    }

    /// The way to the network of a tool that may go to its own URLs and to what the entry adds.
    pub(crate) fn web(self, own: &[&Url], accept: &'static str, client: &HttpClient, mistakes: &mut Vec<String>) -> Option<Web> {
        let before = mistakes.len();
        let mut hosts: Vec<HostRule> = own.iter().flat_map(|url| HostRule::of(url)).collect();
        for written in &self.hosts {
            match rule(written) {
                Ok(rule) => hosts.push(rule),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        let usual = autoact_http_tools::Limits::default();
        let response_bytes = self.max_response_bytes.unwrap_or(usual.response_bytes);
        if response_bytes == 0 || response_bytes > MOST_RESPONSE_BYTES {
            mistakes.push(format!("max_response_bytes is {response_bytes}; expected 1 to {MOST_RESPONSE_BYTES}"));
        }
        let concurrency = self.concurrency.unwrap_or(usual.concurrency);
        if !(1..=64).contains(&concurrency) {
            mistakes.push(format!("concurrency is {concurrency}; expected 1 to 64"));
        }
        let visit = Visit { hosts, allow_private: self.allow_private, response_bytes, cut: false, accept };
        let redirects = self.redirects.unwrap_or(usual.redirects);
        (mistakes.len() == before).then(|| Web::new(client.clone(), visit, redirects, concurrency))
    }
}

/// `*` and `*:8080` are every host; others as for requests.
fn rule(written: &str) -> Result<HostRule, String> {
    if written == "*" {
        return Ok(HostRule::everywhere(None));
    }
    if let Some(port) = written.strip_prefix("*:") {
        let port = port.parse().map_err(|_| format!("the host `{written}` has no port; expected one such as `*:8080`"))?;
        return Ok(HostRule::everywhere(Some(port)));
    }
    HostRule::parse(written).map_err(|error| error.to_string())
}

/// Takes what parses pages out of an entry.
pub(crate) fn reader(run: &mut toml::Table, base: Option<&Path>, mistakes: &mut Vec<String>) -> Reader {
    let limits = Limits::default();
    let said = run.remove(SANDBOX.name).map_or_else(|| Ok(Confinement::default()), toml::Value::try_into);
    let confinement = said.unwrap_or_else(|error: toml::de::Error| {
        mistakes.push(format!("sandbox: {}", line(&error)));
        Confinement::default()
    });
    match confinement.sandbox("", base, mistakes) {
        Some(sandbox) => Reader::within(limits, sandbox),
        None => Reader::here(limits),
    }
}

/// Reads keys; the mistake is told in one line.
pub(crate) fn read<T: serde::de::DeserializeOwned>(table: toml::Table, mistakes: &mut Vec<String>) -> Option<T> {
    table.try_into().map_err(|error: toml::de::Error| mistakes.push(line(&error))).ok()
}

/// A URL of an entry.
pub(crate) fn url(key: &str, written: &str, mistakes: &mut Vec<String>) -> Option<Url> {
    match Url::parse(written) {
        Ok(url)
            if matches!(url.scheme(), "http" | "https")
                && url.host().is_some()
                && url.username().is_empty()
                && url.password().is_none() =>
        {
            Some(url)
        }
        _ => {
            mistakes.push(format!("`{key}` is `{written}`; expected an absolute URL of http or https without a user"));
            None
        }
    }
}

//! `[[mcp]]`: the tools of a server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use autoact_base::duration;
use autoact_base::error::line;
use autoact_http_tools::HttpClient;
use autoact_mcp_tools::{HttpOptions, McpLimits, McpServer, McpServerOptions, McpTransport, StdioOptions};
use autoact_sandbox::Tier;
use autoact_tools::{Confinement, Tool, ToolSet};
use autoact_trajectory::ToolBackground;
use serde::Deserialize;

use crate::http::hosts;
use crate::pin::pin;
use crate::secret::{RawCredential, RawSecret, credentials};

/// The section's name.
pub(crate) const SECTION: &str = "mcp";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawServer {
    name: String,
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    secrets: BTreeMap<String, RawSecret>,
    directory: Option<PathBuf>,
    #[serde(default)]
    sandbox: Confinement,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    credentials: Vec<RawCredential>,
    #[serde(default)]
    hosts: Vec<String>,
    #[serde(default)]
    allow_private: bool,
    digest: Option<String>,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    prefix: String,
    #[serde(default)]
    trusted: bool,
    #[serde(default)]
    multiline: bool,
    #[serde(default)]
    approval: bool,
    timeout: Option<String>,
    max_observation_bytes: Option<usize>,
    #[serde(default)]
    limits: RawLimits,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    connect: Option<String>,
    message_bytes: Option<usize>,
    concurrency: Option<usize>,
}

/// The server of an entry, not connected, and the digest that the entry accepts.
pub(crate) fn server(entry: toml::Table, base: Option<&Path>, client: &HttpClient) -> Result<(McpServer, Option<String>), Vec<String>> {
    let raw: RawServer = entry.try_into().map_err(|error: toml::de::Error| vec![line(&error)])?;
    let mut mistakes = Vec::new();
    let joined = |path: &Path| base.map_or_else(|| path.to_owned(), |base| base.join(path));
    let transport = match (raw.command, raw.url) {
        (Some(command), None) => {
            let program = if command.contains('/') {
                let path = std::path::absolute(joined(Path::new(&command))).unwrap_or_default();
                if !path.is_file() {
                    mistakes.push(format!("the program `{}` is not a file", path.display()));
                }
                path.display().to_string()
            } else {
                command
            };
            let sandbox = raw.sandbox.sandbox(&program, base, &mut mistakes);
            if let Some(sandbox) = &sandbox {
                let tier = Tier::probe().map_err(|error| error.to_string());
                let tier = tier.and_then(|tiers| tiers.choose(sandbox.tier, sandbox.allow_lesser).map_err(|error| error.to_string()));
                mistakes.extend(tier.err().map(|why| format!("its program cannot be confined: {why}")));
            }
            let secrets = raw.secrets.into_iter();
            let secrets = secrets.filter_map(|(name, secret)| Some((name, secret.secret(base, client, &mut mistakes)?))).collect();
            let directory = raw.directory.map(|path| joined(&path));
            McpTransport::Stdio(StdioOptions { program, args: raw.args, env: raw.env, secrets, directory, sandbox })
        }
        (None, Some(url)) => {
            let credentials = credentials(raw.credentials, base, client, &mut mistakes);
            let (headers, hosts) = (raw.headers.into_iter().collect(), hosts(&raw.hosts, &mut mistakes));
            McpTransport::Http(HttpOptions { url, headers, credentials, hosts, allow_private: raw.allow_private })
        }
        _ => return Err(vec!["a server has either a `command` or a `url`".to_owned()]),
    };
    let usual = McpServerOptions::new(raw.name, transport);
    let mut time = |key: &str, written: Option<&str>, usual: Duration| {
        written.map_or(Ok(usual), duration::parse).unwrap_or_else(|mistake| {
            mistakes.push(format!("{key}: {mistake}"));
            usual
        })
    };
    let limits = McpLimits {
        connect: time("limits.connect", raw.limits.connect.as_deref(), usual.limits.connect),
        message_bytes: raw.limits.message_bytes.unwrap_or(usual.limits.message_bytes),
        concurrency: raw.limits.concurrency.unwrap_or(usual.limits.concurrency),
    };
    let timeout = time("timeout", raw.timeout.as_deref(), usual.timeout);
    let options = McpServerOptions {
        prefix: raw.prefix,
        only: raw.only,
        trusted: raw.trusted,
        multiline: raw.multiline,
        approval: raw.approval,
        timeout,
        max_observation_bytes: raw.max_observation_bytes.unwrap_or(usual.max_observation_bytes),
        limits,
        ..usual
    };
    match McpServer::new(options, client) {
        Ok(server) if mistakes.is_empty() => Ok((server, raw.digest)),
        Ok(_) => Err(mistakes),
        Err(error) => {
            mistakes.push(error.to_string());
            Err(mistakes)
        }
    }
}

/// The tools that it has now.
pub(crate) fn set(server: &McpServer, accepted: Option<&str>, client: &HttpClient) -> ToolSet {
    let mut set = ToolSet::new(SECTION, server.options().name.clone());
    let imported = match client.handle().block_on(server.import()) {
        Ok(imported) => imported,
        Err(failure) => {
            set.out_of_service = Some(failure.to_string());
            return set;
        }
    };
    for tool in &imported.tools {
        let background = ToolBackground { title: imported.server.clone(), details: tool.details.clone(), ..ToolBackground::default() };
        set.background.insert(tool.spec.name.clone(), background.bounded());
    }
    set.tools = imported.tools.iter().map(|tool| Arc::new(server.tool(tool)) as Arc<dyn Tool>).collect();
    set.skipped = imported.skipped.into_iter().map(|skipped| (skipped.name, skipped.reason.to_string())).collect();
    pin(set, accepted, &imported.digest)
}

//! A list of tools as specs.

use autoact_base::lines::one_line;
use autoact_http_tools::openapi::{Note, SkipReason};
use autoact_http_tools::remote::{Names, clean, definition, digest, usage};
use autoact_trajectory::{Asks, Effect, ToolSpec, cut};
use serde_json::json;

use crate::list::{Definition, List};
use crate::options::McpServerOptions;

/// The tools of a server.
#[derive(Debug, Clone)]
pub struct McpImport {
    /// The server's name and version, as it says, one line.
    pub server: String,
    /// The version of the protocol.
    pub protocol: String,
    /// The tools, in the order of the server's names for them.
    pub tools: Vec<ImportedTool>,
    /// Those that are wanted and cannot be imported.
    pub skipped: Vec<SkippedTool>,
    /// The SHA-256 of the imported tools' digests.
    pub digest: String,
}

/// A tool of a server: what [`McpServer::tool`](crate::McpServer::tool) takes.
#[derive(Debug, Clone)]
pub struct ImportedTool {
    /// What the agents know of it.
    pub spec: ToolSpec,
    /// What the server calls it.
    pub remote: String,
    /// The SHA-256 of all that a call depends on: name, description, schema, hints. It stays the same
    /// when the definition is only written differently.
    pub digest: String,
    /// All that the server says of it; any text.
    pub details: String,
    /// What was simplified.
    pub notes: Vec<Note>,
}

/// A tool that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedTool {
    /// What the server calls it, one line.
    pub name: String,
    /// Why not.
    pub reason: McpSkip,
}

/// Why a tool is not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpSkip {
    /// Its entry has no name or no schema.
    #[error("its entry has no name, or no schema that is an object")]
    Malformed,
    /// The server has several tools of this name.
    #[error("the server has several tools of this name")]
    Again,
    /// The server does not list it.
    #[error("the server does not list it")]
    Missing,
    /// Its definition is not the accepted one.
    #[error("its definition is not the accepted one: its digest is {found}")]
    NotAccepted {
        /// The digest of the definition.
        found: String,
    },
    /// Its schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SkipReason),
}

/// What the entry wants of a list.
pub(crate) fn import(list: &List, options: &McpServerOptions, (server, protocol): (String, String)) -> McpImport {
    let wanted = |name: &str| options.only.is_empty() || options.only.iter().any(|only| only == name);
    let (mut tools, mut skipped, mut names) = (Vec::new(), Vec::new(), Names::default());
    let mut skip = |name: &str, reason| skipped.push(SkippedTool { name: cut(one_line(name), 200).0, reason });
    for tool in list.tools.values().filter(|tool| wanted(&tool.name)) {
        if list.again.contains(&tool.name) {
            skip(&tool.name, McpSkip::Again);
            continue;
        }
        match imported(tool, options, &mut names) {
            Ok(imported) => tools.push(imported),
            Err(reason) => skip(&tool.name, reason),
        }
    }
    for name in list.malformed.iter().filter(|name| wanted(name)) {
        skip(name, McpSkip::Malformed);
    }
    let listed = |name: &String| list.tools.contains_key(name) || list.malformed.contains(name);
    for name in options.only.iter().filter(|name| !listed(name)) {
        skip(name, McpSkip::Missing);
    }
    let digests: Vec<_> = tools.iter().map(|tool| json!([tool.remote, tool.digest])).collect();
    McpImport { server, protocol, tools, skipped, digest: digest(&digests.into()) }
}

fn imported(tool: &Definition, options: &McpServerOptions, names: &mut Names) -> Result<ImportedTool, McpSkip> {
    let found = tool.digest();
    if !options.accepted.is_empty() && options.accepted.get(&tool.name) != Some(&found) {
        return Err(McpSkip::NotAccepted { found });
    }
    let cleaned = clean(&tool.schema)?;
    let name = names.of(&options.prefix, &tool.name);
    let effect = effect(tool, options.trusted);
    let spec = ToolSpec {
        usage: usage(&name, &cleaned.schema),
        definition: definition([tool.description.as_str(), &tool.name]),
        effect,
        timeout: options.timeout,
        max_observation_bytes: options.max_observation_bytes,
        terminal: None,
        schema: Some(cleaned.schema),
        examples: cleaned.example.into_iter().collect(),
        multiline: options.multiline,
        asks: (options.approval && effect != Effect::ReadOnly).then_some(Asks::Approval),
        name,
    };
    Ok(ImportedTool { spec, remote: tool.name.clone(), digest: found, details: tool.description.clone(), notes: cleaned.notes })
}

/// What the server's hints say, where they count. Whether a tool destroys does not matter here: one
/// that is idempotent destroys once.
fn effect(tool: &Definition, trusted: bool) -> Effect {
    match trusted {
        true if tool.hint("readOnlyHint") == Some(true) => Effect::ReadOnly,
        true if tool.hint("idempotentHint") == Some(true) => Effect::Idempotent,
        _ => Effect::SideEffect,
    }
}

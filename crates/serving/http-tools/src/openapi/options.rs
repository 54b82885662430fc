//! How a document is imported, and what comes of it.

use std::collections::BTreeMap;
use std::time::Duration;

use autoact_trajectory::ToolSpec;

use super::error::{Note, SkipReason};
use super::security::NeededSecret;
use crate::hosts::HostRule;
use crate::operation::{Limits, Operation};
use crate::secret::Secret;

/// How a document is imported.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// The URL that paths are appended to, instead of the document's servers.
    pub server: Option<String>,
    /// Values of the servers' variables, instead of their defaults.
    pub variables: BTreeMap<String, String>,
    /// Secrets by the names of their security schemes.
    pub secrets: BTreeMap<String, Secret>,
    /// Where requests and redirects may go; none: to each operation's own host.
    pub hosts: Vec<HostRule>,
    /// Whether the addresses of one's own networks are open.
    pub allow_private: bool,
    /// Whether deprecated operations are left out.
    pub skip_deprecated: bool,
    /// Stands before each tool's name; letters, digits and `_`, a letter first.
    pub prefix: String,
    /// Whether calls that are not read-only wait for a person's approval.
    pub approval: bool,
    /// The bounds of each call.
    pub limits: Limits,
    /// The time limit of each tool.
    pub timeout: Duration,
    /// The bound on each tool's observations.
    pub max_observation_bytes: usize,
}

impl Default for ImportOptions {
    fn default() -> ImportOptions {
        ImportOptions {
            server: None,
            variables: BTreeMap::new(),
            secrets: BTreeMap::new(),
            hosts: Vec::new(),
            allow_private: false,
            skip_deprecated: true,
            prefix: String::new(),
            approval: false,
            limits: Limits::default(),
            timeout: Duration::from_secs(20),
            max_observation_bytes: 4096,
        }
    }
}

/// What a document holds.
#[derive(Debug, Clone)]
pub struct Import {
    /// Its title, one line.
    pub title: String,
    /// What it says of itself, one line.
    pub about: String,
    /// The version of the API.
    pub version: String,
    /// The SHA-256 of the document's bytes, in hexadecimal.
    pub digest: String,
    /// The operations that became tools, in the document's order.
    pub operations: Vec<Imported>,
    /// The others.
    pub skipped: Vec<Skipped>,
    /// The secrets that the imported operations need.
    pub secrets: Vec<NeededSecret>,
}

/// An operation that became a tool: what [`HttpTool::new`](crate::HttpTool::new) takes.
#[derive(Debug, Clone)]
pub struct Imported {
    /// What the agents know of it.
    pub spec: ToolSpec,
    /// The request.
    pub operation: Operation,
    /// Method and path, as the document has them.
    pub at: String,
    /// What the document says of it beyond its definition; any text.
    pub details: String,
    /// Whether the document calls it deprecated.
    pub deprecated: bool,
    /// What was simplified.
    pub notes: Vec<Note>,
    /// The security schemes whose secrets it needs.
    pub secrets: Vec<String>,
    /// The SHA-256 of all that a call depends on: request, schema, definition, security. It stays the
    /// same when the document is only written differently.
    pub digest: String,
}

/// An operation that did not become a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Method and path, as the document has them.
    pub at: String,
    /// Why not.
    pub reason: SkipReason,
}

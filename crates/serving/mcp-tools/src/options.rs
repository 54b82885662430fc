//! What an entry says about a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use autoact_http_tools::{Credential, Endpoint, HostRule, OperationError, Secret};
use autoact_sandbox::Sandbox;

/// The longest name of a server, and the longest prefix of its tools.
const LONGEST_NAME: usize = 32;

/// An MCP server and what is taken from it.
#[derive(Debug, Clone)]
pub struct McpServerOptions {
    /// What errors and logs call it.
    pub name: String,
    /// How it is reached.
    pub transport: McpTransport,
    /// Stands before each tool's name; letters, digits and `_`, a letter first.
    pub prefix: String,
    /// The server's names of the tools that are wanted; none: all.
    pub only: Vec<String>,
    /// Whether its hints about effects count. Otherwise every tool has side effects.
    pub trusted: bool,
    /// Digests by the server's names: tools with others are not imported. Empty: as found.
    pub accepted: BTreeMap<String, String>,
    /// Whether observations keep their line breaks.
    pub multiline: bool,
    /// Whether calls that are not read-only wait for a person's approval.
    pub approval: bool,
    /// The time limit of each call.
    pub timeout: Duration,
    /// The bound on each tool's observations.
    pub max_observation_bytes: usize,
    /// The other bounds.
    pub limits: McpLimits,
}

impl McpServerOptions {
    /// A server of which all tools are taken, with the usual bounds.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> McpServerOptions {
        McpServerOptions {
            name: name.into(),
            transport,
            prefix: String::new(),
            only: Vec::new(),
            trusted: false,
            accepted: BTreeMap::new(),
            multiline: false,
            approval: false,
            timeout: Duration::from_secs(30),
            max_observation_bytes: 4096,
            limits: McpLimits::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), McpOptionsError> {
        let plain = |text: &str| text.len() <= LONGEST_NAME && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if self.name.is_empty() || !plain(&self.name.replace('-', "_")) {
            return Err(McpOptionsError::Name(self.name.clone()));
        }
        if !plain(&self.prefix) || self.prefix.starts_with(|c: char| !c.is_ascii_alphabetic()) {
            return Err(McpOptionsError::Prefix(self.prefix.clone()));
        }
        let McpLimits { connect, message_bytes, concurrency } = self.limits;
        for (zero, name) in [
            (self.timeout.is_zero(), "timeout"),
            (self.max_observation_bytes == 0, "max_observation_bytes"),
            (connect.is_zero(), "connect"),
            (message_bytes == 0, "message_bytes"),
            (concurrency == 0, "concurrency"),
        ] {
            if zero {
                return Err(McpOptionsError::Limit(name));
            }
        }
        match &self.transport {
            McpTransport::Stdio(StdioOptions { program, .. }) if program.is_empty() => Err(McpOptionsError::Program),
            McpTransport::Stdio(_) => Ok(()),
            McpTransport::Http(options) => options.endpoint().map(drop),
        }
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub enum McpTransport {
    /// A program: messages are lines on its standard input and output.
    Stdio(StdioOptions),
    /// A URL ("streamable HTTP").
    Http(HttpOptions),
}

/// A server that is a program.
#[derive(Debug, Clone, Default)]
pub struct StdioOptions {
    /// The program; one without a slash is looked for in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, beside `PATH` and `LANG`.
    pub env: BTreeMap<String, String>,
    /// Variables of its environment that are secrets.
    pub secrets: BTreeMap<String, Secret>,
    /// Where it starts; a temporary directory by default. A confined program always starts in one.
    pub directory: Option<PathBuf>,
    /// How it is confined. Processor time (`cpu_seconds`) is that of its whole life.
    pub sandbox: Option<Sandbox>,
}

/// A server that is reached by HTTP.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Its URL.
    pub url: String,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// Secrets for headers and cookies, read for each request.
    pub credentials: Vec<Credential>,
    /// Where requests may go; none: to the URL's own host.
    pub hosts: Vec<HostRule>,
    /// Whether the addresses of one's own networks are open.
    pub allow_private: bool,
}

impl HttpOptions {
    pub(crate) fn endpoint(&self) -> Result<Endpoint, McpOptionsError> {
        Ok(Endpoint::new(&self.url, self.headers.clone(), self.credentials.clone(), self.hosts.clone(), self.allow_private)?)
    }
}

/// Bounds on a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McpLimits {
    /// The time of connecting and of listing the tools, together.
    pub connect: Duration,
    /// The bytes of one message.
    pub message_bytes: usize,
    /// Calls of all its tools at once.
    pub concurrency: usize,
}

impl Default for McpLimits {
    fn default() -> McpLimits {
        McpLimits { connect: Duration::from_secs(20), message_bytes: 4 << 20, concurrency: 4 }
    }
}

/// Why no server can be made of options.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpOptionsError {
    /// The name is none.
    #[error("`{0}` is no name of a server; expected up to 32 letters, digits, `_` or `-`")]
    Name(String),
    /// The prefix cannot begin a name.
    #[error("the prefix `{0}` cannot begin a tool's name; expected up to 32 letters, digits or `_`, a letter first")]
    Prefix(String),
    /// There is no program.
    #[error("there is no program to start")]
    Program,
    /// A bound is zero.
    #[error("the limit `{0}` is zero")]
    Limit(&'static str),
    /// The URL, a header or a credential cannot be used.
    #[error(transparent)]
    Endpoint(#[from] OperationError),
}

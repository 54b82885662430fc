//! Tools of MCP servers (Model Context Protocol): programs that speak over their standard streams,
//! and servers that are reached by HTTP.
//!
//! An [`McpServer`] is made of [`McpServerOptions`]. [`McpServer::import`] connects to it and returns
//! specs; [`McpServer::tool`] makes a tool of one. Servers are not trusted: their lines, answers,
//! lists and time are bounded, what they say of effects counts only where the entry trusts them, and
//! a tool whose definition changed is out of service until it is imported again. A failure is an
//! [`McpFailure`].

mod backoff;
mod connection;
mod events;
mod failure;
mod handler;
mod http;
mod import;
mod lines;
mod list;
mod message;
mod observe;
mod options;
mod process;
mod server;
mod stderr;
mod tool;

pub use failure::{McpClass, McpFailure};
pub use import::{ImportedTool, McpImport, McpSkip, SkippedTool};
pub use options::{HttpOptions, McpLimits, McpOptionsError, McpServerOptions, McpTransport, StdioOptions};
pub use server::McpServer;
pub use tool::{IDEMPOTENCY_KEY, McpTool};

//! Entries of a `tools.toml` whose tools are elsewhere: a request (`kind = "http"`), the operations
//! of an OpenAPI document (`[[openapi]]`), the tools of an MCP server (`[[mcp]]`).
//!
//! [`Sources`] reads a library with them. A set whose definitions somebody else can change is in
//! service only as its entry accepted it: by a digest. One that cannot be reached or that changed is
//! out of service with its reason, and the rest of the library works.

mod http;
mod mcp;
mod openapi;
mod pin;
mod presets;
mod secret;
mod sources;

pub use presets::presets;
pub use sources::Sources;

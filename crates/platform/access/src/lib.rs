//! Who may do what: callers prove who they are with a token or a JWT, and get a tenant and roles.
//!
//! ```text
//! Guard (a door) ─▶ Authority ─┬─ Tokens: SHA-256 digests in a file, read again when it changes
//!                              └─ Jwt:    signatures by the keys of a JWKS file or URL
//!       ├─▶ the call, with its Caller among the request's extensions, and without the token
//!       └─▶ the reply, which ends when the token no longer holds
//! ```
//!
//! A door wraps one gRPC service. gRPC's health and reflection services are not wrapped: they are
//! open, and say nothing of tasks. The token ends at the door: no service sees it, and it is never
//! logged.

mod authority;
mod caller;
mod config;
mod error;
mod guard;
mod jwt;
mod keys;
mod proof;
mod signatures;
mod tokens;

pub use authority::{Authority, OpenError};
pub use caller::{Caller, Principal, Role, TENANT_HEADER, UnknownRole};
pub use config::{AccessConfig, AccessMode, JwtConfig};
pub use error::{AccessError, Problem};
pub use guard::{Anonymous, Guard, caller, principal};
pub use tokens::{Entry, NewToken, TokenFileError, Tokens};

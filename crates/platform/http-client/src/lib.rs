//! Requests to a server's JSON API: HTTP/1.1 with a connection pool, HTTPS with the system's
//! certificate authorities or those of a file, a key as a bearer token, and the trace context.
//!
//! [`Client`] sends; [`whole`] and [`more`] read bodies within a bound. [`retry`] says how long to
//! wait before another attempt, and [`said`] makes one line of what a server says about an error.
//! What a status means, and whether to ask again, is the caller's to decide.

mod client;
mod error;
pub mod retry;
pub mod said;
mod tls;

pub use client::{Client, ClientOptions, HttpError, more, whole};
pub use error::ClientError;
pub use tls::config as tls_config;

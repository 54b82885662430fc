//! Servers that behave, and servers that do not.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used)]

mod behaviour;
mod changes;
mod confined;
mod hostile;
mod http;
mod http_server;
mod imports;
mod world;

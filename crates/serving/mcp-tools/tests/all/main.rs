//! Servers that behave, servers that do not, and servers of the reference implementation.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used)]

mod behaviour;
mod changes;
mod confined;
mod hostile;
mod http;
mod http_server;
mod imports;
mod logs;
mod reference;
mod world;

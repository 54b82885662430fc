//! The bus over real NATS servers.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used)]

mod adapters;
mod audit_core;
mod bus;
mod cluster;
mod outbox;
mod rotation;
mod routes;
mod users;

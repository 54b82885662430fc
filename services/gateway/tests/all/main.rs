//! The gateway over real gRPC, with scripted agents behind it.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod access;
mod bus;
mod common;
mod context;
mod control;
mod faults;
mod hostile_clients;
#[path = "common/issuer.rs"]
mod issuer;
mod jwt;
mod recall;
mod replicas;
mod requests;
mod room;
mod tasks;
mod timing;
mod tool_choice;
mod trace;

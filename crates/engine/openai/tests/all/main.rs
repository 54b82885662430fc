//! Clients of servers that speak OpenAI's API.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::redundant_clone, clippy::result_large_err)]

mod astray;
mod chat;
mod common;
mod contract;
mod faults;
mod scores;
mod start;

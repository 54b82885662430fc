//! The memory service over real gRPC.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::redundant_clone, clippy::result_large_err, clippy::zombie_processes)]

mod common;
mod conversations;
mod documents;
mod door;
mod qdrant;
mod service;

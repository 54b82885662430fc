//! The trajectory: events, their fold, and what is derived from it.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::redundant_clone, clippy::result_large_err, clippy::zombie_processes)]

mod anew;
mod bus;
mod citations;
mod common;
mod confidence;
mod control;
mod fold;
mod properties;
mod shortening;

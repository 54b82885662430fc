//! The tools: what they take, what they give, and how they fail.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::redundant_clone, clippy::result_large_err, clippy::zombie_processes)]

mod calendar_tools;
mod command;
mod confined_kinds;
mod data_kinds;
mod knowledge;
mod library;
mod tools;
mod typed;

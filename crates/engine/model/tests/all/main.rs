//! The engine: models, formats, decoding, and what it promises.

// helpers of tests are no tests to clippy
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::redundant_clone, clippy::result_large_err, clippy::zombie_processes)]

mod common;
mod control_tokens;
mod crowd;
mod drafts;
mod engine;
mod formats;
mod golden;
mod grammar;
mod load;
mod owners;
mod scores;

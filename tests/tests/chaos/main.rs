//! Faults on purpose: real processes that are really killed, stopped and cut off, and what was
//! promised about them (docs/semantics.md) checked on what they left behind.
//!
//! `AUTOACT_TEST_LONG=1` lets them go on for minutes, as `cargo nextest run --profile long -p
//! autoact-tests chaos` does. `TESTKIT_SEED` chooses the faults, `TESTKIT_TASKS` how many tasks run
//! meanwhile, `TESTKIT_SECONDS` how long tests last that have a length.

mod checker;
mod clocks;
mod cost;
mod disk;
mod faults;
mod load;
mod mutations;
mod points;
mod rolling;
mod saturation;
mod servers;
mod student;

use std::time::Duration;

/// Whether to go on for minutes.
fn long() -> bool {
    std::env::var("AUTOACT_TEST_LONG").is_ok_and(|value| value == "1")
}

/// How long a test lasts that has a length.
fn lasts(short: u64, long_run: u64) -> Duration {
    let named = std::env::var("TESTKIT_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(named.unwrap_or(if long() { long_run } else { short }))
}

/// How many tasks run while faults are made.
fn tasks(short: usize, long_run: usize) -> usize {
    let named = std::env::var("TESTKIT_TASKS").ok().and_then(|tasks| tasks.parse().ok());
    named.unwrap_or(if long() { long_run } else { short })
}

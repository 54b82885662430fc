//! Faults on purpose: real processes that are really killed, stopped and cut off, and what was
//! promised about them (docs/semantics.md) checked on what they left behind.
//!
//! `AUTOACT_TEST_LONG=1` lets them go on for minutes, as `cargo nextest run --profile long -p
//! autoact-tests chaos` does. `TESTKIT_SEED` chooses the faults, `TESTKIT_TASKS` how many tasks run
//! meanwhile.

mod checker;
mod clocks;
mod disk;
mod faults;
mod load;
mod mutations;
mod points;
mod rolling;
mod servers;

/// Whether to go on for minutes.
fn long() -> bool {
    std::env::var("AUTOACT_TEST_LONG").is_ok_and(|value| value == "1")
}

/// How many tasks run while faults are made.
fn tasks(short: usize, long_run: usize) -> usize {
    let named = std::env::var("TESTKIT_TASKS").ok().and_then(|tasks| tasks.parse().ok());
    named.unwrap_or(if long() { long_run } else { short })
}

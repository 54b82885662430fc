//! Faults on purpose: real processes that are really killed and stopped, and what was promised
//! about them (docs/semantics.md) checked on what they left behind.
//!
//! `AUTOACT_TEST_LONG=1` lets them go on for minutes, as `cargo nextest run --profile long -p
//! autoact-tests chaos` does.

mod checker;
mod cluster;
mod faults;
mod points;

/// Whether to go on for minutes.
fn long() -> bool {
    std::env::var("AUTOACT_TEST_LONG").is_ok_and(|value| value == "1")
}

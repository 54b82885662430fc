//! What every crate may use: error chains, durations as text, lines of text, names as people write
//! them, progress of long work, files that change, seeded random numbers, where sentences end, points
//! at which tests end a process.
//!
//! Each of them has one implementation, and it is here. This crate depends on no other crate of the
//! workspace.

pub mod duration;
pub mod error;
pub mod failpoint;
mod files;
mod in_turn;
pub mod lines;
pub mod names;
pub mod progress;
pub mod random;
pub mod sentences;

pub use files::FileWatch;
pub use in_turn::in_turn;

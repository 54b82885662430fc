//! Load generator for a group over gRPC, with the attribution of every part of the latency.
//!
//! ```text
//! schedule ──▶ run ──▶ Target (a gateway) ──▶ Seen ──▶ Account ──▶ Collected ──▶ Report ──▶ report.json, report.html
//! arrivals     open    one task over a        what     where its    of all       Comparison of two
//! beforehand   loop    stream of events       came     time went    tasks ─▶ Trial ─▶ Pair ─▶ Paired
//!                                                                   of a phase    of two builds
//! ```
//!
//! The load is open-loop: tasks arrive on a schedule that is computed beforehand, and a task's
//! latency counts from its intended arrival. So a slow group cannot hide its latency by delaying
//! requests. Every part of the client's latency is attributed. The gateway records on each event
//! how the time since the previous one was spent. The agents report the phases of their calls.
//! [`Account`] adds them up.

mod account;
mod collect;
mod compare;
mod distribution;
mod error;
mod generator;
mod html;
mod paired;
mod phase;
mod question;
mod report;
mod report_files;
mod schedule;
mod seen;
mod summary;
mod target;
#[cfg(test)]
mod testing;

pub use account::{Account, Tokens};
pub use collect::{Collected, Record, Slice};
pub use compare::{Change, Comparison, Row};
pub use distribution::{Distribution, Durations, QUANTILES};
pub use error::LoadError;
pub use generator::{Load, Pace, Progress, Stop, run};
pub use html::ms;
pub use paired::{Build, Figure, LEAST_PAIRS, PAIRED_SCHEMA, Pair, Paired, PairedAsked, Trial};
pub use phase::{Agent, Call, Phase};
pub use question::{Question, questions, shuffled};
pub use report::{Asked, Coverage, Moment, Part, Report, SCHEMA, Score, Tasks};
pub use schedule::{Arrivals, UnknownArrivals, schedule};
pub use seen::{End, Seen};
pub use target::{Gateway, GatewayOptions, Target};

//! Load on a group over gRPC, and where its time goes.
//!
//! ```text
//! schedule ──▶ run ──▶ Target (a gateway) ──▶ Seen ──▶ Account ──▶ Collected ──▶ Report ──▶ report.json, report.html
//! arrivals     open    one task over a        what     where its    of all       Comparison of two
//! beforehand   loop    stream of events       came     time went    tasks
//! ```
//!
//! The load is open: tasks arrive on a schedule that is made beforehand, and a task's latency counts from the arrival it was meant for, so
//! that a group that falls behind cannot hide it by being asked less. Every part of what the client saw has an owner: the gateway says on
//! every event where the time since the one before went, the agents say what their calls were made of, and [`Account`] adds up.

mod account;
mod collect;
mod compare;
mod distribution;
mod error;
mod generator;
mod html;
mod phase;
mod question;
mod random;
mod report;
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
pub use phase::{Agent, Call, Phase};
pub use question::{Question, questions, shuffled};
pub use report::{Asked, Coverage, Moment, Part, Report, SCHEMA, Score, Tasks};
pub use schedule::{Arrivals, UnknownArrivals, schedule};
pub use seen::{End, Seen};
pub use target::{Gateway, GatewayOptions, Target};

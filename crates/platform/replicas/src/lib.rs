//! Calls to services of which several replicas run: which replica gets a call, what is known of
//! each, and where they are.
//!
//! [`set::Set`] decides, in plain code without clocks or sockets; [`breaker`] and [`budget`] are
//! its parts. [`Pool`] does what a set decides: it resolves names, keeps a connection to every
//! replica, and probes those that failed. `docs/replicas.md` says the same for operators.

pub mod breaker;
pub mod budget;
mod homes;
mod pool;
mod resolve;
pub mod set;

pub use crate::breaker::Outcome;
pub use crate::pool::{Call, Connect, Options, Pool, Unresolved, jitter};
pub use crate::resolve::{Resolver, SystemResolver};
pub use crate::set::Id;

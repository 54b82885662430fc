//! The bus: NATS JetStream as the store of trajectories and the queue of submitted tasks.
//!
//! | stream | subjects | what |
//! | --- | --- | --- |
//! | `AUTOACT_TRAJECTORY` | `autoact.trajectory.<task>` | every event of every task, in order: the source of truth |
//! | `AUTOACT_TASKS` | `autoact.tasks.<task>` | the work queue: tasks that are queued or running |
//! | `AUTOACT_INDEX` | `autoact.index.<task>` | one empty message per task, in order of submission: what a listing reads |
//!
//! The key-value bucket `AUTOACT_ADAPTERS` holds announcements of which adapter version is in service ([`AdapterBoard`]).
//!
//! Two plain subjects go beside them: `autoact.events.<task>` repeats every event once it is stored (watchers listen there), and
//! `autoact.cancel.<task>` tells a running task to look at its trajectory at once. Both are hints; nothing depends on their delivery.

mod adapters;
mod append;
mod cancel;
mod config;
mod connect;
mod error;
mod list;
mod patience;
mod queue;
mod read;
mod streams;

pub use adapters::{AdapterAnnouncement, AdapterBoard};
pub use append::MAX_EVENT_BYTES;
pub use config::BusConfig;
pub use connect::Bus;
pub use error::BusError;
pub use list::{Page, TaskHead};
pub use queue::{Lease, Leases};

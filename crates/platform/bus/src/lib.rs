//! The bus: NATS JetStream as the store of trajectories and the queue of submitted tasks.
//!
//! | stream | subjects | what |
//! | --- | --- | --- |
//! | `AUTOACT_TRAJECTORIES` | `autoact.<tenant>.traj.<task>` | every event of every task, in order: the source of truth |
//! | `AUTOACT_QUEUE` | `autoact.<tenant>.queue.<task>` | the work queue: tasks that are queued or running |
//! | `AUTOACT_OUTBOX` | `autoact.<tenant>.outbox.<conversation>.<task>` | ended tasks that memory has yet to hear of |
//! | `AUTOACT_RECEIPTS` | `autoact.<tenant>.receipt.<task>` | what is known of the effects of a task's steps |
//! | `AUTOACT_TASK_INDEX` | `autoact.<tenant>.index.<task>` | a record of every submission, every end and every removal, in order: what a listing and an audit read |
//!
//! The key-value bucket `AUTOACT_TOOLS` holds the specifications of tools, which events name by
//! digest. `AUTOACT_ADAPTERS` holds announcements of which adapter version is in service
//! ([`AdapterBoard`]).
//!
//! What tools return for people lies in an object store for each tenant,
//! `AUTOACT_ARTIFACTS_<tenant>` ([`Bus::keep_artifact`]).
//!
//! Three plain subjects go beside them: `autoact.<tenant>.events.<task>` repeats every event once
//! it is stored (watchers listen there), `autoact.<tenant>.words.<task>` carries the agents' words
//! as they are written, and `autoact.<tenant>.cancel.<task>` tells a running task to look at its
//! trajectory at once. All three are hints; nothing depends on their delivery.
//!
//! Before schema version 2 the streams were `AUTOACT_TRAJECTORY`, `AUTOACT_TASKS` and
//! `AUTOACT_INDEX`, without tenants. A bus that holds them is refused until [`migrate`] has moved
//! them.

mod adapters;
mod append;
mod artifacts;
mod audit;
mod backup;
mod cancel;
mod clock;
mod config;
mod connect;
mod durability;
mod error;
mod index;
mod list;
mod login;
mod migrate;
mod open;
mod outbox;
mod patience;
mod purge;
mod queue;
mod read;
mod receipts;
mod refusal;
mod retention;
mod scan;
mod streams;
mod subjects;
mod tenants;
mod tool_bucket;
mod tools;
mod unqueued;
mod users;
mod version_1;
mod walk;
mod words;

pub use adapters::{AdapterAnnouncement, AdapterBoard, AdapterNews};
pub use append::Stored;
pub use audit::{Audit, AuditOptions, Finding, Kind, Message, Progress, Report, audit};
pub use autoact_config::NatsConfig;
pub use backup::{BackedUp, BackupError, Restored, Summary, backup, restore};
pub use config::BusConfig;
pub use connect::{Bus, Encode};
pub use durability::check_durability;
pub use error::BusError;
pub use list::{Order, Page, TaskHead};
pub use migrate::{Migrated, migrate};
pub use open::{Full, OpenTasks};
pub use outbox::{Entry, Outbox};
pub use purge::Purged;
pub use queue::{Lease, Leases};
pub use receipts::{Known, ReceiptBook};
pub use retention::{Retention, Swept};
pub use unqueued::Unqueued;
pub use users::{
    KeyError, OPERATOR, PublicKey, Routes, ServerConfig, USERS, User, key_file, make_keys, public_keys, replace_key, routes_password,
    server_config, user,
};

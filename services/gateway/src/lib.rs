//! The gateway: the front door of the group, and the place where tasks run.
//!
//! ```text
//! doors/grpc ─▶ tasks (submit, get, list, watch, cancel) ─▶ bus: events, index, work queue
//!                                                             │ lease
//!               run: dispatcher ─▶ one actor per task ─▶ planning::Driver: decide, call, append
//!                                                             │
//!               agents: the group over gRPC, with retries, metrics and the words as they are written; memory at the end
//! ```
//!
//! Doors translate between a protocol and the application in `tasks`, which speaks domain types
//! only. Nothing is kept here: a task is the fold of its events on the bus, and this process only
//! holds a lease on it. Whoever gets the lease next replays the events and goes on where they end.
//! Every event is stored before it is acted on.

mod agents;
mod app;
mod config;
mod doors;
mod run;
mod tasks;

pub use app::{Gateway, build};
pub use config::{
    AgentsConfig, ApprovalConfig, BusSettings, GatewayConfig, LimitsConfig, QuotaConfig, RecallConfig, ReplicasConfig, TenantQuotaConfig,
    ToolChoiceConfig,
};

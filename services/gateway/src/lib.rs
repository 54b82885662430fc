//! The gateway: the front door of the group, and the planning loop.
//!
//! ```text
//! gRPC (api) ── SubmitTask ──▶ bus: Submitted event, work queue
//!      │                              │ lease
//!      └── WatchTask ◀── events ── dispatcher ── one actor per task ── run: decide → act → append → …
//!                                                                      │
//!                                          agents (traits; remote: gRPC) plan, tool, reflect; memory at the end
//! ```
//!
//! Nothing is kept here: a task is the fold of its events on the bus, and this process only holds a lease on it. Whoever gets the lease
//! next replays the events and goes on where they end. Every event is stored before it is acted on.

mod actor;
mod agents;
mod api;
mod app;
mod call;
mod cancel;
mod clock;
mod config;
mod dispatcher;
mod list;
mod memory;
mod remote;
mod retry;
mod run;
mod submit;
mod tools;
mod watch;

pub use agents::{AgentError, Agents, Ask, MemoryService, PlanAgent, ReflectAgent, ToolAgent};
pub use app::Gateway;
pub use config::{AgentsConfig, BusSettings, GatewayConfig, LimitsConfig};

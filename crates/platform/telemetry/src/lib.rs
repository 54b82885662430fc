//! Logs, traces and metrics, the same for every service.
//!
//! - [`init`] sets up logs on stderr and, when an endpoint is set, OTLP traces; its [`Guard`]
//!   flushes them at the end. JSON log lines within a trace carry its `trace_id` and `span_id`.
//! - [`propagate`] carries the trace context over gRPC metadata and over any map of strings (NATS
//!   headers).
//! - [`ServerTraceLayer`] makes a span and a latency sample of every gRPC call a server answers,
//!   under the names of the [`Methods`] that are known.
//! - [`gen_ai`] has the attribute names of the GenAI conventions.
//! - [`prometheus`] has the metrics recorder and the routes `/metrics`, `/livez` and `/readyz`.

pub mod gen_ai;
mod init;
mod methods;
pub mod prometheus;
pub mod propagate;
mod server;
#[cfg(feature = "testing")]
pub mod testing;
mod trace_ids;

pub use init::{Guard, TelemetryError, check_filter, init};
pub use methods::Methods;
pub use server::{ServerTraceLayer, ServerTraceService};

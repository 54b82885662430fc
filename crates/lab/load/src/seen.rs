//! What the client observed of one task.

use std::time::Duration;

use autoact_wire::v1;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::error::code_name;

/// One task, from its sending to its end.
#[derive(Debug)]
pub struct Seen {
    /// When the request was sent.
    pub sent: Instant,
    /// When its end was observed, whatever the outcome.
    pub done: Instant,
    /// Its outcome.
    pub end: End,
    /// The events that came.
    pub events: Vec<v1::TrajectoryEvent>,
    /// From the arrival of the request at the gateway until it passed the last event on. A task whose stream was resumed has none: it
    /// had several requests, and what its client waited in between has no owner.
    pub elapsed: Option<Duration>,
    /// Of that: until the task was stored and queued.
    pub accepted: Option<Duration>,
    /// How long the memory service took to recall something like the question, if it was asked; an error is its code.
    pub recall: Option<Result<Duration, &'static str>>,
    /// How often its stream broke, as a gateway stopped, and was resumed.
    pub reconnects: u32,
}

/// The outcome of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// It ended, approved or not.
    Finished(v1::Finished),
    /// The gateway refused it, or its stream broke.
    Status {
        /// The code's name.
        code: &'static str,
        /// What the gateway said.
        message: String,
    },
    /// The stream ended before the task did.
    Cut,
    /// We stopped waiting.
    TimedOut,
}

impl End {
    /// A status as an end.
    pub fn status(status: &Status) -> End {
        End::Status { code: code_name(status), message: status.message().to_owned() }
    }

    /// The name of the outcome in reports.
    pub fn outcome(&self) -> String {
        match self {
            End::Finished(finished) => finished.reason().as_str_name().trim_start_matches("FINISH_REASON_").to_lowercase(),
            End::Status { code, .. } if *code == "RESOURCE_EXHAUSTED" => "refused".to_owned(),
            End::Status { .. } => "error".to_owned(),
            End::Cut => "cut off".to_owned(),
            End::TimedOut => "timed out".to_owned(),
        }
    }

    /// The name of its gRPC code.
    pub fn code(&self) -> &'static str {
        match self {
            End::Finished(_) => "OK",
            End::Status { code, .. } => code,
            // the client's own deadline, or no status at all
            End::TimedOut => code_name(&Status::new(Code::DeadlineExceeded, "")),
            End::Cut => code_name(&Status::new(Code::Unknown, "")),
        }
    }

    /// Whether the task ended as tasks do.
    pub fn finished(&self) -> Option<&v1::Finished> {
        match self {
            End::Finished(finished) => Some(finished),
            _ => None,
        }
    }
}

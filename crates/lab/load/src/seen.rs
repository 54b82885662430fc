//! The client's observations of one task.

use std::time::Duration;

use autoact_wire::v1;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::error::code_name;

/// The observations of one task, from sending to its end.
#[derive(Debug)]
pub struct Seen {
    /// When the request was sent.
    pub sent: Instant,
    /// When its end was observed, with any outcome.
    pub done: Instant,
    /// Its outcome.
    pub end: End,
    /// The received events.
    pub events: Vec<v1::TrajectoryEvent>,
    /// From the arrival of the request at the gateway until it sent the last event. `None` if the
    /// stream was resumed: there were several requests, and the time between them cannot be
    /// attributed.
    pub elapsed: Option<Duration>,
    /// The part of `elapsed` until the task was stored and queued.
    pub accepted: Option<Duration>,
    /// Duration of a query of the memory service with the question, or its error code; `None`
    /// without one.
    pub recall: Option<Result<Duration, &'static str>>,
    /// Number of times that its stream broke because a gateway stopped, and was resumed.
    pub reconnects: u32,
}

/// The outcome of a task.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// The task ended, approved or not.
    Finished(v1::Finished),
    /// The gateway refused it, or its stream broke.
    Status {
        /// The code's name.
        code: &'static str,
        /// The gateway's message.
        message: String,
    },
    /// The stream ended before the task did.
    Cut,
    /// The client's time limit was reached.
    TimedOut,
}

impl End {
    /// The end for a status.
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
            // the client's own deadline, or no status
            End::TimedOut => code_name(&Status::new(Code::DeadlineExceeded, "")),
            End::Cut => code_name(&Status::new(Code::Unknown, "")),
        }
    }

    /// The task's final event, if it ended regularly.
    pub fn finished(&self) -> Option<&v1::Finished> {
        match self {
            End::Finished(finished) => Some(finished),
            _ => None,
        }
    }
}

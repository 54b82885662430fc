//! What can be wrong with a call of `Execute`.

use std::time::Duration;

use autoact_tools::UnknownTool;
use autoact_wire::status::{STALE_EPOCH, ServiceError};
use tonic::Code;

/// Tools answer within seconds, so a slot is free again soon.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// Why an action was not run. A tool that runs and fails is no error: its observation says so.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// A field the call needs is empty.
    #[error("missing field `{0}`")]
    Missing(&'static str),
    /// A field does not fit the contract.
    #[error(transparent)]
    Conversion(#[from] autoact_wire::ConversionError),
    /// The library does not have the tool.
    #[error(transparent)]
    Unknown(#[from] UnknownTool),
    /// The tool is never run.
    #[error("`{0}` is a terminal tool: its parameters are for the judge and nothing is run")]
    Terminal(String),
    /// The parameters are longer than any tool reads.
    #[error("the parameters are {found} bytes long, expected at most {limit}")]
    TooLong {
        /// Their length.
        found: usize,
        /// The bound.
        limit: usize,
    },
    /// Every slot is taken and the line is full.
    #[error("{running} tools are running and {waiting} calls wait already; call again shortly, or raise `max_runs`")]
    Busy {
        /// Runs in progress.
        running: usize,
        /// Calls waiting.
        waiting: usize,
    },
    /// The same step was run with another action.
    #[error("step {step} of task `{task}` was already run as `{ran}`, now it is `{asked}`; a step has one action")]
    OtherAction {
        /// The task.
        task: String,
        /// The step.
        step: u32,
        /// What was run.
        ran: String,
        /// What is asked now.
        asked: String,
    },
    /// The step ran, and its outcome had to make room for others.
    #[error("step {step} of task `{task}` was run already and its outcome is no longer held; it is not run again")]
    OutcomeDropped {
        /// The task.
        task: String,
        /// The step.
        step: u32,
    },
    /// A newer holder of the task's lease has taken it over.
    #[error("step {step} of task `{task}` was asked for by holder {epoch} of its lease, and holder {newer} has taken it over")]
    StaleEpoch {
        /// The task.
        task: String,
        /// The step.
        step: u32,
        /// Who asks.
        epoch: u64,
        /// The oldest holder whose calls are run.
        newer: u64,
    },
    /// The step was claimed for another action.
    #[error("step {step} of task `{task}` was claimed for another action; a step has one action")]
    ClaimedForOther {
        /// The task.
        task: String,
        /// The step.
        step: u32,
    },
    /// Nobody waits for the outcome any more.
    #[error("the caller's deadline has passed; nothing was run")]
    Expired,
    /// Receipts cannot be read or written, so nothing with an effect is run.
    #[error("no effect is run without a receipt: {0}")]
    Receipts(#[from] autoact_bus::BusError),
    /// The process ends.
    #[error("this tool-agent is stopping; nothing was run")]
    Stopping,
    /// The tool panicked.
    #[error("`{tool}` broke while it ran; see the log of tool-agent")]
    Broke {
        /// The tool.
        tool: String,
    },
}

impl ServiceError for ExecuteError {
    fn code(&self) -> Code {
        match self {
            ExecuteError::Busy { .. } => Code::ResourceExhausted,
            ExecuteError::OtherAction { .. }
            | ExecuteError::OutcomeDropped { .. }
            | ExecuteError::StaleEpoch { .. }
            | ExecuteError::ClaimedForOther { .. } => Code::FailedPrecondition,
            ExecuteError::Expired => Code::DeadlineExceeded,
            ExecuteError::Receipts(_) | ExecuteError::Stopping => Code::Unavailable,
            ExecuteError::Broke { .. } => Code::Internal,
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            ExecuteError::Missing(_) | ExecuteError::Conversion(_) => "BAD_REQUEST",
            ExecuteError::Unknown(_) => "UNKNOWN_TOOL",
            ExecuteError::Terminal(_) => "TERMINAL_TOOL",
            ExecuteError::TooLong { .. } => "PARAMS_TOO_LONG",
            ExecuteError::Busy { .. } => "TOOLS_BUSY",
            ExecuteError::OtherAction { .. } | ExecuteError::ClaimedForOther { .. } => "OTHER_ACTION",
            ExecuteError::StaleEpoch { .. } => STALE_EPOCH,
            ExecuteError::Expired => "DEADLINE_PASSED",
            ExecuteError::Receipts(_) => "RECEIPTS_AWAY",
            ExecuteError::Stopping => "STOPPING",
            ExecuteError::OutcomeDropped { .. } => "OUTCOME_DROPPED",
            ExecuteError::Broke { .. } => "TOOL_BROKE",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, ExecuteError::Busy { .. } | ExecuteError::Receipts(_) | ExecuteError::Stopping).then_some(RETRY_DELAY)
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            ExecuteError::Missing(field) => Some(field),
            ExecuteError::Unknown(_) | ExecuteError::Terminal(_) => Some("action.tool"),
            ExecuteError::TooLong { .. } => Some("action.params"),
            _ => None,
        }
    }
}

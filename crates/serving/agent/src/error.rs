//! Why an agent did not answer, and as which gRPC status that travels.

use std::time::Duration;

use autoact_model::GenerateError;
use autoact_speaker::SpeakError;
use autoact_trajectory::{InvalidSampling, PromptSize};
use autoact_wire::ConversionError;
use autoact_wire::status::{ServiceError, too_long};
use tonic::Code;

/// Why an agent did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A field is absent or empty.
    #[error("missing field `{0}`")]
    Missing(&'static str),
    /// A field of the trajectory does not fit the contract.
    #[error("the trajectory does not fit the contract")]
    Conversion(#[from] ConversionError),
    /// A list is longer than any task's.
    #[error("`{field}` has {found} entries, expected at most {limit}")]
    TooMany {
        /// The list.
        field: &'static str,
        /// Its length.
        found: usize,
        /// The bound.
        limit: usize,
    },
    /// The agent is not the one whose turn it is.
    #[error("it is not the {agent} agent's turn: expected {expected}, found {found}")]
    Order {
        /// Who was asked.
        agent: &'static str,
        /// How the trajectory has to end.
        expected: &'static str,
        /// How it ends, or which turn is wrong.
        found: String,
    },
    /// A step names a tool that was not selected.
    #[error("step {step} uses the tool `{tool}`, which is none of the trajectory's tools: `{}`", known.join("`, `"))]
    UnknownTool {
        /// The step, from 1.
        step: usize,
        /// Its tool.
        tool: String,
        /// The selected tools.
        known: Vec<String>,
    },
    /// A sampling parameter is out of range.
    #[error("`sampling.{}` is `{}`; expected {}", .0.field, .0.value, .0.expected)]
    Sampling(InvalidSampling),
    /// The model did not speak, or not as its role does.
    #[error(transparent)]
    Speak(#[from] SpeakError),
}

impl ServiceError for AgentError {
    fn code(&self) -> Code {
        match self {
            AgentError::Speak(SpeakError::Generate(error)) => match error {
                GenerateError::Overloaded { .. } => Code::ResourceExhausted,
                GenerateError::PromptTooLong { .. } => Code::InvalidArgument,
                GenerateError::DeadlineExceeded => Code::DeadlineExceeded,
                GenerateError::Cancelled => Code::Cancelled,
                GenerateError::UnknownAdapter { .. }
                | GenerateError::InvalidGrammar { .. }
                | GenerateError::Malformed { .. }
                | GenerateError::Engine { .. } => Code::Internal,
            },
            AgentError::Speak(SpeakError::Template(_) | SpeakError::Reply(_)) => Code::Internal,
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            AgentError::Missing(_) | AgentError::Conversion(_) => "BAD_REQUEST",
            AgentError::TooMany { .. } => "TOO_MANY",
            AgentError::Order { .. } => "WRONG_TURN",
            AgentError::UnknownTool { .. } => "UNKNOWN_TOOL",
            AgentError::Sampling(_) => "BAD_SAMPLING",
            AgentError::Speak(SpeakError::Template(_)) => "TEMPLATE_FAILED",
            AgentError::Speak(SpeakError::Reply(_)) => "BAD_REPLY",
            AgentError::Speak(SpeakError::Generate(error)) => match error {
                GenerateError::Overloaded { .. } => "QUEUE_FULL",
                GenerateError::PromptTooLong { .. } => "PROMPT_TOO_LONG",
                GenerateError::DeadlineExceeded => "DEADLINE_EXCEEDED",
                GenerateError::Cancelled => "CANCELLED",
                GenerateError::UnknownAdapter { .. } => "UNKNOWN_ADAPTER",
                GenerateError::InvalidGrammar { .. } => "INVALID_GRAMMAR",
                GenerateError::Malformed { .. } => "BAD_REPLY",
                GenerateError::Engine { .. } => "ENGINE_FAILED",
            },
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            AgentError::Speak(SpeakError::Generate(GenerateError::Overloaded { retry_after })) => Some(*retry_after),
            _ => None,
        }
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match *self {
            AgentError::Speak(SpeakError::Generate(GenerateError::PromptTooLong { tokens, limit })) => {
                too_long(PromptSize { tokens, limit })
            }
            _ => Vec::new(),
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            AgentError::Missing(field) | AgentError::TooMany { field, .. } => Some(field),
            AgentError::Sampling(error) => Some(match error.field {
                "temperature" => "sampling.temperature",
                "top_p" => "sampling.top_p",
                _ => "sampling",
            }),
            AgentError::Conversion(_) | AgentError::Speak(SpeakError::Generate(GenerateError::PromptTooLong { .. })) => Some("trajectory"),
            AgentError::Order { .. } | AgentError::UnknownTool { .. } => Some("trajectory.turns"),
            _ => None,
        }
    }
}

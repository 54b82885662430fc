//! Why an agent did not answer, and as which gRPC status that travels.

use std::time::Duration;

use autoact_model::GenerateError;
use autoact_prompt::ParseError;
use autoact_proto::ConversionError;
use autoact_proto::status::ServiceError;
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
    #[error("`{field}` must be {expected}, found `{found}`")]
    Sampling {
        /// The field.
        field: &'static str,
        /// Its range.
        expected: &'static str,
        /// What came.
        found: f32,
    },
    /// The chat template of the model failed on the prompt.
    #[error("the model's chat template cannot render the prompt: {0}")]
    Template(String),
    /// The model did not complete.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The reply has not the role's form.
    #[error("the model's reply cannot be used")]
    Reply(#[from] ParseError),
}

impl ServiceError for AgentError {
    fn code(&self) -> Code {
        match self {
            AgentError::Generate(error) => match error {
                GenerateError::Overloaded { .. } => Code::ResourceExhausted,
                GenerateError::PromptTooLong { .. } => Code::InvalidArgument,
                GenerateError::DeadlineExceeded => Code::DeadlineExceeded,
                GenerateError::Cancelled => Code::Cancelled,
                GenerateError::UnknownAdapter { .. } | GenerateError::InvalidGrammar { .. } | GenerateError::Engine { .. } => {
                    Code::Internal
                }
            },
            AgentError::Template(_) | AgentError::Reply(_) => Code::Internal,
            _ => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            AgentError::Missing(_) | AgentError::Conversion(_) => "BAD_REQUEST",
            AgentError::Order { .. } => "WRONG_TURN",
            AgentError::UnknownTool { .. } => "UNKNOWN_TOOL",
            AgentError::Sampling { .. } => "BAD_SAMPLING",
            AgentError::Template(_) => "TEMPLATE_FAILED",
            AgentError::Reply(_) => "BAD_REPLY",
            AgentError::Generate(error) => match error {
                GenerateError::Overloaded { .. } => "QUEUE_FULL",
                GenerateError::PromptTooLong { .. } => "PROMPT_TOO_LONG",
                GenerateError::DeadlineExceeded => "DEADLINE_EXCEEDED",
                GenerateError::Cancelled => "CANCELLED",
                GenerateError::UnknownAdapter { .. } => "UNKNOWN_ADAPTER",
                GenerateError::InvalidGrammar { .. } => "INVALID_GRAMMAR",
                GenerateError::Engine { .. } => "ENGINE_FAILED",
            },
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            AgentError::Generate(GenerateError::Overloaded { retry_after }) => Some(*retry_after),
            _ => None,
        }
    }

    fn field(&self) -> Option<&'static str> {
        match self {
            AgentError::Missing(field) | AgentError::Sampling { field, .. } => Some(field),
            AgentError::Conversion(_) | AgentError::Generate(GenerateError::PromptTooLong { .. }) => Some("trajectory"),
            AgentError::Order { .. } | AgentError::UnknownTool { .. } => Some("trajectory.turns"),
            _ => None,
        }
    }
}

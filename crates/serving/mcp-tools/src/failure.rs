//! Why a call has no result.

use std::time::Duration;

use autoact_http_tools::HttpFailure;
use autoact_tools::ToolError;

/// Why a server is not connected, or a call has no result. No text in it holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpFailure {
    /// A secret is not where it should be.
    #[error("there is no secret in {name}")]
    Secret {
        /// The variable or the file.
        name: String,
    },
    /// The program cannot be started.
    #[error("the server `{server}` cannot be started: {reason}")]
    Start {
        /// The server.
        server: String,
        /// Why not.
        reason: String,
    },
    /// The server failed before, and is left alone for a while.
    #[error("the server `{server}` is not connected; it is tried again after {}", autoact_base::duration::format(*again))]
    NotConnected {
        /// The server.
        server: String,
        /// When it is tried again.
        again: Duration,
    },
    /// The request was not made, or was answered with an error of HTTP.
    #[error(transparent)]
    Http(HttpFailure),
    /// The server ended before the call reached it.
    #[error("the server `{server}` ended: {reason}")]
    Ended {
        /// The server.
        server: String,
        /// How, as far as it is known.
        reason: String,
    },
    /// The server ended while the call was under way: it may have had its effect.
    #[error("the server `{server}` ended during the call, which may have run: {reason}")]
    MayHaveRun {
        /// The server.
        server: String,
        /// How, as far as it is known.
        reason: String,
    },
    /// No answer within the time limit. The server was told that the call is cancelled.
    #[error("no answer within {}", autoact_base::duration::format(*after))]
    TimedOut {
        /// The bound.
        after: Duration,
    },
    /// All calls that may be under way at once are.
    #[error("{limit} calls of the server are under way already")]
    Busy {
        /// The bound.
        limit: usize,
    },
    /// The server refused the request.
    #[error("the server refused the request (code {code}): {message}")]
    Refused {
        /// JSON-RPC's code.
        code: i32,
        /// Its beginning as text.
        message: String,
    },
    /// The tool ran and says that it failed.
    #[error("the tool reported an error: {message}")]
    Tool {
        /// Its beginning as text.
        message: String,
    },
    /// The server does not keep to the protocol, or wants what is not supported.
    #[error("the server `{server}` does not keep to the protocol: {reason}")]
    Protocol {
        /// The server.
        server: String,
        /// What was found.
        reason: String,
    },
    /// A message is longer than allowed.
    #[error("a message of the server has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// The list of tools is longer than allowed.
    #[error("the server lists more than {limit} {what}")]
    TooMany {
        /// The bound.
        limit: usize,
        /// Of what.
        what: &'static str,
    },
    /// The server's definition of the tool is not the one that was imported.
    #[error("the tool `{tool}` of the server `{server}` has changed or is gone; it is out of service until it is imported again")]
    Changed {
        /// The server.
        server: String,
        /// The server's name of the tool.
        tool: String,
    },
    /// Something of ours failed.
    #[error("{0}")]
    Internal(String),
}

/// What a failure means for the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum McpClass {
    /// The call did not reach the server.
    NotSent,
    /// The call may have had its effect.
    MayHaveRun,
    /// Too much at once, or too early: another attempt may succeed.
    Busy,
    /// No answer in time.
    TimedOut,
    /// The server or the tool refused it.
    Refused,
    /// The server broke the contract, or something failed.
    Broken,
}

impl McpFailure {
    /// What it means for the next step.
    pub fn class(&self) -> McpClass {
        match self {
            McpFailure::Secret { .. } | McpFailure::Start { .. } | McpFailure::Ended { .. } => McpClass::NotSent,
            McpFailure::MayHaveRun { .. } => McpClass::MayHaveRun,
            McpFailure::Busy { .. } | McpFailure::NotConnected { .. } => McpClass::Busy,
            McpFailure::TimedOut { .. } => McpClass::TimedOut,
            McpFailure::Refused { .. } | McpFailure::Tool { .. } | McpFailure::Changed { .. } => McpClass::Refused,
            McpFailure::Http(HttpFailure::Status { .. }) => McpClass::Refused,
            McpFailure::Http(HttpFailure::Broken { .. }) => McpClass::MayHaveRun,
            McpFailure::Http(_) => McpClass::NotSent,
            McpFailure::Protocol { .. } | McpFailure::TooLarge { .. } | McpFailure::TooMany { .. } | McpFailure::Internal(_) => {
                McpClass::Broken
            }
        }
    }
}

impl From<HttpFailure> for McpFailure {
    fn from(failure: HttpFailure) -> McpFailure {
        match failure {
            HttpFailure::Secret { name } => McpFailure::Secret { name },
            HttpFailure::TooLarge { limit } => McpFailure::TooLarge { limit },
            other => McpFailure::Http(other),
        }
    }
}

impl From<McpFailure> for ToolError {
    fn from(failure: McpFailure) -> ToolError {
        match failure {
            McpFailure::TimedOut { after } => ToolError::Timeout { after, written: String::new() },
            McpFailure::Tool { message } => ToolError::Failed { status: "the tool reported an error".to_owned(), message },
            McpFailure::MayHaveRun { .. } => {
                ToolError::Failed { status: "the outcome is unknown".to_owned(), message: failure.to_string() }
            }
            McpFailure::Http(failure) => failure.into(),
            McpFailure::Internal(told) => ToolError::Internal(told),
            other => ToolError::Failed { status: "no result".to_owned(), message: other.to_string() },
        }
    }
}

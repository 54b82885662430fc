//! Why a call has no result.

use std::time::Duration;

use autoact_tools::ToolError;

use crate::address::AddressClass;

/// Why a request was not made, or has no result. No text in it holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpFailure {
    /// An argument cannot be part of a request.
    #[error("`/{name}`: {reason}")]
    Argument {
        /// The argument.
        name: String,
        /// What was expected of it.
        reason: String,
    },
    /// A secret is not where it should be.
    #[error("there is no secret in {name}")]
    Secret {
        /// The variable or the file.
        name: String,
    },
    /// The request would go where it must not.
    #[error("no request may go to `{host}`: {reason}")]
    Refused {
        /// The host.
        host: String,
        /// Why not.
        reason: Refusal,
    },
    /// A redirect is not followed.
    #[error("`{host}` sent a redirect that is not followed: {reason}")]
    Redirect {
        /// Who sent it.
        host: String,
        /// Why it is not followed.
        reason: RedirectRefusal,
    },
    /// The host cannot be reached.
    #[error("cannot reach `{host}`: {reason}")]
    Unreachable {
        /// The host.
        host: String,
        /// The error.
        reason: String,
    },
    /// The answer broke off.
    #[error("the answer of `{host}` broke off: {reason}")]
    Broken {
        /// The host.
        host: String,
        /// The error.
        reason: String,
    },
    /// The answer is longer than allowed.
    #[error("the answer has more than {limit} bytes")]
    TooLarge {
        /// The bound.
        limit: usize,
    },
    /// The answer is compressed, which was not asked for.
    #[error("the answer has the encoding `{encoding}`; expected none")]
    Encoded {
        /// Its `Content-Encoding`.
        encoding: &'static str,
    },
    /// All requests that may be under way at once are.
    #[error("{limit} calls are under way already")]
    Busy {
        /// The bound.
        limit: usize,
    },
    /// No answer within the time limit.
    #[error("no answer within {}", autoact_base::duration::format(*after))]
    TimedOut {
        /// The bound.
        after: Duration,
    },
    /// The server refused or failed.
    #[error("{class}, status {status}{}: {body}", wait(retry_after))]
    Status {
        /// The status.
        status: u16,
        /// What it means for the next step.
        class: StatusClass,
        /// When the server wants to be asked again.
        retry_after: Option<Duration>,
        /// The beginning of its body as text.
        body: String,
    },
    /// Something of ours failed.
    #[error("{0}")]
    Internal(String),
}

/// What a status that is no success means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum StatusClass {
    /// 401, 403, 407: the credentials are missing, wrong or not enough.
    #[error("not authorised")]
    Auth,
    /// 429: asked too often.
    #[error("rate limited")]
    RateLimited,
    /// Another 4xx: the request is wrong.
    #[error("client error")]
    Client,
    /// 5xx: the server failed.
    #[error("server error")]
    Server,
    /// 3xx without a place to go, or 1xx.
    #[error("unexpected answer")]
    Unexpected,
}

impl StatusClass {
    /// What a status means; `None`: success.
    pub fn of(status: u16) -> Option<StatusClass> {
        match status {
            200..=299 => None,
            401 | 403 | 407 => Some(StatusClass::Auth),
            429 => Some(StatusClass::RateLimited),
            400..=499 => Some(StatusClass::Client),
            500..=599 => Some(StatusClass::Server),
            _ => Some(StatusClass::Unexpected),
        }
    }
}

/// Why no request may go to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// It is none of the allowed hosts.
    #[error("it is not one of the allowed hosts")]
    Host,
    /// Its address is not of the public internet.
    #[error("its address is {}", .0.name())]
    Address(AddressClass),
    /// The scheme is neither http nor https.
    #[error("its scheme is neither http nor https")]
    Scheme,
    /// The URL has a user or a password.
    #[error("the URL holds a user")]
    UserInfo,
    /// The URL has another path or host than its template.
    #[error("the arguments change the URL")]
    Changed,
}

/// Why a redirect is not followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum RedirectRefusal {
    /// The place is no URL.
    #[error("its place is no URL")]
    Place,
    /// From https to http.
    #[error("it leads from https to http")]
    Downgrade,
    /// More than the bound.
    #[error("there were {0} already")]
    TooMany(u8),
    /// None is followed here.
    #[error("none is followed here")]
    Never,
    /// It would tell another host a secret.
    #[error("it would tell another host a secret")]
    Secret,
}

fn wait(retry_after: &Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |after| format!(", to be asked again after {}", autoact_base::duration::format(after)))
}

impl From<HttpFailure> for ToolError {
    fn from(failure: HttpFailure) -> ToolError {
        match failure {
            HttpFailure::Argument { .. } => ToolError::Params(failure.to_string()),
            HttpFailure::TimedOut { after } => ToolError::Timeout { after, written: String::new() },
            HttpFailure::Status { status, class, retry_after, body } => {
                ToolError::Failed { status: format!("{class}, status {status}{}", wait(&retry_after)), message: body }
            }
            HttpFailure::Internal(told) => ToolError::Internal(told),
            other => ToolError::Failed { status: "no result".to_owned(), message: other.to_string() },
        }
    }
}

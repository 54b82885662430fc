//! Why a caller is refused at a door.

use std::time::Duration;

use autoact_trajectory::InvalidTenant;
use autoact_wire::status::ServiceError;
use tonic::Code;

use crate::caller::{Role, TENANT_HEADER};

/// When keys that could not be read may be there.
const KEYS_DELAY: Duration = Duration::from_secs(2);

/// What is wrong with a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// Nobody gave it out, or it was taken back.
    Unknown,
    /// The header is no `Bearer` token, or the token no JWT.
    Malformed,
    /// It is signed with a method that is not accepted, or none.
    Algorithm,
    /// No key of the issuer has the id that it names.
    Key,
    /// The signature is not that of the issuer's key.
    Signature,
    /// It was issued by somebody else.
    Issuer,
    /// It was issued for another service.
    Audience,
    /// A claim is missing or has another form: the expiry, the tenant.
    Claims,
}

impl Problem {
    /// The word for it in an error's metadata.
    pub fn as_str(self) -> &'static str {
        match self {
            Problem::Unknown => "unknown",
            Problem::Malformed => "malformed",
            Problem::Algorithm => "algorithm",
            Problem::Key => "key",
            Problem::Signature => "signature",
            Problem::Issuer => "issuer",
            Problem::Audience => "audience",
            Problem::Claims => "claims",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Problem::Unknown => "it is not among those that this service knows; it may have been taken back",
            Problem::Malformed => "expected the metadata `authorization: Bearer TOKEN`, once, with a token or a JWT",
            Problem::Algorithm => "a JWT has to be signed with RS256, ES256 or EdDSA, as its key says",
            Problem::Key => "the issuer has no key of the id that the JWT names",
            Problem::Signature => "the JWT's signature is not that of the issuer's key",
            Problem::Issuer => "the JWT is of another issuer than `access.jwt.issuer`",
            Problem::Audience => "the JWT is for another audience than `access.jwt.audience`",
            Problem::Claims => "the JWT lacks its expiry or a valid tenant in the claim `access.jwt.tenant_claim`",
        }
    }
}

/// Why a caller is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// No token.
    #[error("this service asks for a token; send the metadata `authorization: Bearer TOKEN` (`autoact --token-file FILE`)")]
    Missing,
    /// A token that proves nothing.
    #[error("the token is not accepted: {}", .0.told())]
    Invalid(Problem),
    /// A token from before.
    #[error("the token has expired; ask for a new one")]
    Expired,
    /// A token for later.
    #[error("the token is not valid yet; compare the clocks of its issuer and of this service")]
    NotYet,
    /// A stream's token stands for another tenant than at its beginning, or for a lower role.
    #[error("the token no longer stands for what it did when the stream began; call again")]
    Changed,
    /// The issuer's keys have not been read yet.
    #[error("the keys of the tokens' issuer (`access.jwt.jwks`) cannot be read now; call again")]
    NoKeys,
    /// The role is too low.
    #[error("`{name}` may not do this: it needs the role `{needed}`")]
    Role {
        /// The least role that may.
        needed: Role,
        /// The caller.
        name: String,
    },
    /// Another tenant than the caller's.
    #[error("`{name}` may not act for the tenant `{asked}`; leave `tenant` empty for its own")]
    Tenant {
        /// The beginning of what was asked for.
        asked: String,
        /// The caller.
        name: String,
    },
    /// The name of a tenant that cannot be one.
    #[error("the metadata `{TENANT_HEADER}` or the request's `tenant` is not valid")]
    BadTenant {
        /// What is wrong with it.
        source: InvalidTenant,
    },
}

impl ServiceError for AccessError {
    fn code(&self) -> Code {
        match self {
            AccessError::Missing | AccessError::Invalid(_) | AccessError::Expired | AccessError::NotYet | AccessError::Changed => {
                Code::Unauthenticated
            }
            AccessError::NoKeys => Code::Unavailable,
            AccessError::Role { .. } | AccessError::Tenant { .. } => Code::PermissionDenied,
            AccessError::BadTenant { .. } => Code::InvalidArgument,
        }
    }

    fn reason(&self) -> &'static str {
        match self {
            AccessError::Missing => "TOKEN_MISSING",
            AccessError::Invalid(_) => "TOKEN_INVALID",
            AccessError::Expired => "TOKEN_EXPIRED",
            AccessError::NotYet => "TOKEN_NOT_YET_VALID",
            AccessError::Changed => "TOKEN_CHANGED",
            AccessError::NoKeys => "TOKEN_KEYS_UNAVAILABLE",
            AccessError::Role { .. } => "ROLE_TOO_LOW",
            AccessError::Tenant { .. } => "TENANT_REFUSED",
            AccessError::BadTenant { .. } => "BAD_TENANT",
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, AccessError::NoKeys).then_some(KEYS_DELAY)
    }

    fn field(&self) -> Option<&'static str> {
        matches!(self, AccessError::BadTenant { .. }).then_some("tenant")
    }

    fn metadata(&self) -> Vec<(&'static str, String)> {
        match self {
            AccessError::Invalid(problem) => vec![("problem", problem.as_str().to_owned())],
            AccessError::Role { needed, .. } => vec![("role", needed.to_string())],
            AccessError::Tenant { asked, .. } => vec![("tenant", asked.clone())],
            AccessError::BadTenant { source } => vec![("value", source.shown().to_owned())],
            _ => Vec::new(),
        }
    }
}

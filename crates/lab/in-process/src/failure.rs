//! Classification of a model's errors as failures of calls.

use autoact_model::GenerateError;
use autoact_planning::{Failure, FailureClass};
use autoact_speaker::SpeakError;
use autoact_trajectory::{PromptSize, Role};

/// Converts an error in the call of a role to a failure.
pub(crate) fn failure(role: Role, error: SpeakError) -> Failure {
    let class = match &error {
        SpeakError::Generate(error) => match error {
            GenerateError::Overloaded { .. } => FailureClass::Busy,
            GenerateError::DeadlineExceeded => FailureClass::TimedOut,
            GenerateError::Cancelled => FailureClass::MayHaveRun,
            GenerateError::PromptTooLong { .. } | GenerateError::UnknownAdapter { .. } | GenerateError::InvalidGrammar { .. } => {
                FailureClass::Refused
            }
            GenerateError::Malformed { .. } | GenerateError::Engine { .. } => FailureClass::Broken,
        },
        SpeakError::Template(_) | SpeakError::Reply(_) => FailureClass::Broken,
    };
    let retry_after = match &error {
        SpeakError::Generate(GenerateError::Overloaded { retry_after }) => Some(*retry_after),
        _ => None,
    };
    let too_long = match error {
        SpeakError::Generate(GenerateError::PromptTooLong { tokens, limit }) => Some(PromptSize { tokens, limit }),
        _ => None,
    };
    Failure { retry_after, too_long, ..Failure::new(class, format!("{}-agent", role.as_str()), error) }
}

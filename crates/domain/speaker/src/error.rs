//! Why there is no reply, or none that can be used.

use autoact_model::GenerateError;

/// Why an agent said nothing that can be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SpeakError {
    /// The model's chat template failed on the prompt.
    #[error("the model's chat template cannot render the prompt: {0}")]
    Template(String),
    /// The model did not complete.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The reply cannot be used.
    #[error(transparent)]
    Reply(#[from] ParseError),
}

/// A complete reply that is not what its role says. Only a reply that was cut can be that: decoding
/// is constrained.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// A part is missing.
    #[error(transparent)]
    Form(#[from] autoact_prompt::ParseError),
    /// Plan-Agent chose a tool that the task does not have.
    #[error("the plan agent's reply chooses the tool `{tool}`, which is none of the task's: `{}`", known.join("`, `"))]
    UnknownTool {
        /// What was chosen.
        tool: String,
        /// The task's tools.
        known: Vec<String>,
    },
}

//! `Finish[answer]` and `NotFound[what is missing]`

use autoact_trajectory::{Terminal, ToolSpec};

use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// A terminal tool: its parameters are the answer, or what is missing. It is in the library to be
/// chosen, never to be run.
pub struct Finish {
    spec: ToolSpec,
}

impl Finish {
    /// The tool whose input is the answer; its spec becomes terminal if it was not.
    pub fn new(mut spec: ToolSpec) -> Finish {
        spec.terminal = Some(Terminal::Answer);
        Finish { spec }
    }

    /// The tool whose input is what is missing: there is no answer.
    pub fn not_found(mut spec: ToolSpec) -> Finish {
        spec.terminal = Some(Terminal::NoAnswer);
        Finish { spec }
    }
}

impl Tool for Finish {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, _call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Params(format!("`{}` is never run: its input is what the task ends with", self.spec.name)))
    }
}

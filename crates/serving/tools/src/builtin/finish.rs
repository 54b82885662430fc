//! `Finish[answer]`

use autoact_trajectory::ToolSpec;

use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// The terminal tool: its parameters are the answer. It is in the library to be chosen, never to be
/// run.
pub struct Finish {
    spec: ToolSpec,
}

impl Finish {
    /// The tool; its spec becomes terminal if it was not.
    pub fn new(mut spec: ToolSpec) -> Finish {
        spec.terminal = true;
        Finish { spec }
    }
}

impl Tool for Finish {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, _call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        Err(ToolError::Params(format!("`{}` is never run: its input is the answer", self.spec.name)))
    }
}

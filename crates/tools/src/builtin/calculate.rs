//! `Calculate[expression]`

use autoact_trajectory::ToolSpec;

use crate::expression::calculate;
use crate::tool::{Tool, ToolCall, ToolError};

/// Computes an arithmetic expression or a comparison.
pub struct Calculate {
    spec: ToolSpec,
}

impl Calculate {
    /// The tool under the name of its spec.
    pub fn new(spec: ToolSpec) -> Calculate {
        Calculate { spec }
    }
}

impl Tool for Calculate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<String, ToolError> {
        calculate(call.params).map(|value| value.to_string()).map_err(|error| ToolError::Params(error.to_string()))
    }
}

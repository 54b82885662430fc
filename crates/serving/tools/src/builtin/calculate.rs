//! `Calculate[expression]`

use autoact_trajectory::ToolSpec;

use crate::expression::calculate;
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// Computes an arithmetic expression, compares two numbers, or says whether two texts are the same.
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

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        match calculate(call.params) {
            Ok(value) => Ok(value.to_string().into()),
            Err(error) => same_text(call.params).map(|same| same.to_string().into()).ok_or_else(|| ToolError::Params(error.to_string())),
        }
    }
}

/// Whether the texts on the two sides of `a = b` are the same but for case; `None` if there are not
/// just two.
fn same_text(expression: &str) -> Option<bool> {
    let (a, b) = expression.split_once(" = ")?;
    let (a, b) = (a.trim(), b.trim());
    let texts = !a.is_empty() && !b.is_empty() && !b.contains(" = ");
    texts.then(|| a.to_lowercase() == b.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::same_text;

    #[test]
    fn texts_are_compared_whole() {
        assert_eq!(same_text("New York = new york"), Some(true));
        assert_eq!(same_text("York = New York"), Some(false));
        assert_eq!(same_text("17700 km² = 17700 km²"), Some(true));
        for odd in ["a = b = c", " = b", "a =", "a"] {
            assert_eq!(same_text(odd), None, "{odd}");
        }
    }
}

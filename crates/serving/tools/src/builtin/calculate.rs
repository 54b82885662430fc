//! `Calculate[expression]`

use autoact_trajectory::ToolSpec;

use crate::expression::calculate;
use crate::knowledge::Knowledge;
use crate::spoken::in_signs;
use crate::text::{fold, stems};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// Computes an arithmetic expression, compares two numbers, or says whether two texts are the same.
pub struct Calculate {
    spec: ToolSpec,
    knowledge: Option<Knowledge>,
}

impl Calculate {
    /// The tool under the name of its spec. It compares texts by their letters.
    pub fn new(spec: ToolSpec) -> Calculate {
        Calculate { spec, knowledge: None }
    }

    /// The tool that also knows two names as the same if they lead to the same page: `Verdi` and
    /// `Giuseppe Verdi`.
    pub fn over(spec: ToolSpec, knowledge: impl Into<Knowledge>) -> Calculate {
        Calculate { spec, knowledge: Some(knowledge.into()) }
    }

    fn same(&self, call: &ToolCall<'_>, a: &str, b: &str) -> Result<bool, ToolError> {
        if same_text(a, b) {
            return Ok(true);
        }
        match &self.knowledge {
            Some(knowledge) if is_name(a) && is_name(b) && same_signs(a, b) => knowledge.same_page(call, a, b),
            _ => Ok(false),
        }
    }
}

impl Tool for Calculate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let mut error = match calculate(call.params) {
            Ok(value) => return Ok(value.to_string().into()),
            Err(error) => error.to_string(),
        };
        if let Some(signs) = in_signs(call.params) {
            match calculate(&signs) {
                Ok(value) => return Ok(value.to_string().into()),
                // a sum, all of it: what is wrong with it says more than that it is in words
                Err(other) if !signs.contains(char::is_alphabetic) => error = other.to_string(),
                Err(_) => {}
            }
        }
        match two_texts(call.params) {
            Some((a, b)) => Ok(self.same(call, a, b)?.to_string().into()),
            None => Err(ToolError::Params(error)),
        }
    }
}

/// The texts on the two sides of `a = b`; `None` if there are not just two.
fn two_texts(expression: &str) -> Option<(&str, &str)> {
    let (a, b) = expression.split_once(" = ")?;
    let (a, b) = (a.trim(), b.trim());
    (!a.is_empty() && !b.is_empty() && !b.contains(" = ")).then_some((a, b))
}

/// Whether two texts are the same but for case, diacritics, punctuation, a leading article, or the
/// endings of words: `euro` and `euros`.
fn same_text(a: &str, b: &str) -> bool {
    let bare = |text: &str| {
        let folded = fold(text);
        ["the ", "a ", "an "].iter().find_map(|article| folded.strip_prefix(article).map(str::to_owned)).unwrap_or(folded)
    };
    let written = (bare(a), bare(b));
    if written.0.is_empty() || !same_signs(a, b) {
        return a.to_lowercase() == b.to_lowercase();
    }
    // endings of a letter or two alone: `organ` and `organization` have one stem
    let (a, b) = written;
    a == b || a.len().abs_diff(b.len()) <= 2 && stems(&a) == stems(&b)
}

/// Whether two texts have as many signs that are more than punctuation: `C` is not `C++`.
fn same_signs(a: &str, b: &str) -> bool {
    let signs = |text: &str| text.chars().filter(|c| matches!(c, '+' | '#')).count();
    signs(a) == signs(b)
}

/// Whether a text can be a name of something that has a page: numbers are no names.
fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_numeric())
}

#[cfg(test)]
mod tests {
    use super::{same_text, two_texts};

    #[test]
    fn texts_are_compared_whole() {
        for (a, b, same) in [
            ("New York", "new york", true),
            ("York", "New York", false),
            ("17700 km²", "17700 km²", true),
            ("euro", "euros", true),
            ("Bílá", "Bila", true),
            ("The Hague", "Hague", true),
            ("a mountain", "mountain", true),
            ("organ", "organization", false),
            ("C", "C++", false),
            ("+", "−", false),
            ("1998", "1999", false),
        ] {
            assert_eq!(same_text(a, b), same, "{a} = {b}");
        }
        for odd in ["a = b = c", " = b", "a =", "a"] {
            assert_eq!(two_texts(odd), None, "{odd}");
        }
    }
}

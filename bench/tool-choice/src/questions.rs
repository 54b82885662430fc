//! The questions.

use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::library::Library;

/// A question, and the tools that serve it.
pub(crate) struct Question {
    pub(crate) text: String,
    /// Names of tools; none: no tool of the library serves it.
    pub(crate) tools: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    split: String,
    question: String,
    /// Document, method and path.
    tools: Vec<String>,
}

/// The questions of a split. One whose operations could not be imported is left out.
pub(crate) fn read(path: &Path, split: &str, library: &Library) -> anyhow::Result<Vec<Question>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let mut questions = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line: Line = serde_json::from_str(line).with_context(|| format!("not a question: {line}"))?;
        if line.split != split {
            continue;
        }
        let tools: Vec<String> = line.tools.iter().filter_map(|operation| library.names.get(operation).cloned()).collect();
        if !tools.is_empty() || line.tools.is_empty() {
            questions.push(Question { text: line.question, tools });
        }
    }
    anyhow::ensure!(!questions.is_empty(), "`{}` has no questions of the split `{split}`", path.display());
    Ok(questions)
}

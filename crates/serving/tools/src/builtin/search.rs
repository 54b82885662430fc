//! `Search[query]`

use std::collections::HashSet;

use autoact_trajectory::ToolSpec;

use crate::corpus::Page;
use crate::knowledge::Knowledge;
use crate::text::{analyzer, one_line, query_stems, quoted, stems_with};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// How many pages an observation tells.
const PAGES: usize = 3;

/// The best pages for a query: `Title: its best sentence | Title: … | Title: …`.
pub struct Search {
    spec: ToolSpec,
    knowledge: Knowledge,
}

impl Search {
    /// The tool over a corpus, or over more.
    pub fn new(spec: ToolSpec, knowledge: impl Into<Knowledge>) -> Search {
        Search { spec, knowledge: knowledge.into() }
    }
}

impl Tool for Search {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let query = call.params.trim();
        let hits = self.knowledge.search(call, query, PAGES)?;
        if hits.is_empty() {
            return Ok(format!("No page matches {}.", quoted(query)).into());
        }
        let wanted: HashSet<String> = query_stems(query).into_iter().collect();
        let told: Vec<String> =
            hits.iter().map(|found| format!("{}: {}", found.page.title, one_line(best_sentence(&found.page, &wanted)))).collect();
        Ok(told.join(" | ").into())
    }
}

/// The sentence with the most distinct words of the query; the earliest of several. Words of the
/// title count only between equals: they hold for the whole page, and the page of France should
/// answer `capital of France` with its capital.
fn best_sentence<'a>(page: &'a Page, wanted: &HashSet<String>) -> &'a str {
    let mut analyzer = analyzer();
    let title = stems_with(&mut analyzer, &page.title);
    let mut best = ("", None);
    for sentence in page.sentences() {
        let found: HashSet<String> = stems_with(&mut analyzer, sentence).into_iter().filter(|stem| wanted.contains(stem)).collect();
        let score = (found.iter().filter(|stem| !title.contains(stem)).count(), found.len());
        if best.1.is_none_or(|most| score > most) {
            best = (sentence, Some(score));
        }
    }
    best.0
}

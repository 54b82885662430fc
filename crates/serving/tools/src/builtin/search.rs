//! `Search[query]`

use std::collections::HashSet;
use std::ops::Range;

use autoact_trajectory::ToolSpec;

use crate::knowledge::{Knowledge, PlacedPage};
use crate::text::{analyzer, one_line, query_stems, quoted};
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
        let mut analyzer = analyzer();
        let best: Vec<Range<usize>> = hits.iter().map(|found| found.page.best_sentence(&mut analyzer, &wanted, usize::MAX).0).collect();
        let told =
            |(found, best): (&PlacedPage, &Range<usize>)| format!("{}: {}", found.page.title, one_line(&found.page.text[best.clone()]));
        let text = hits.iter().zip(&best).map(told).collect::<Vec<_>>().join(" | ");
        let sources = hits.iter().zip(best).map(|(found, best)| found.source(best)).collect();
        Ok(ToolOutput { text, sources, ..ToolOutput::default() })
    }
}

//! `Retrieve[title]`

use std::sync::Arc;

use autoact_trajectory::ToolSpec;

use crate::corpus::Corpus;
use crate::text::{one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// A page's lead: that many of its first sentences.
pub const LEAD_SENTENCES: usize = 6;

/// How many similar titles an unknown one is answered with.
const SIMILAR: usize = 3;

/// The first sentences of the page that a name means, or the titles like it.
pub struct Retrieve {
    spec: ToolSpec,
    corpus: Arc<Corpus>,
    /// The tool that shows the rest of a page, when the library has one.
    lookup: Option<String>,
}

impl Retrieve {
    /// The tool over a corpus; `lookup` names the tool that a long page's observation points to.
    pub fn new(spec: ToolSpec, corpus: Arc<Corpus>, lookup: Option<String>) -> Retrieve {
        Retrieve { spec, corpus, lookup }
    }
}

impl Tool for Retrieve {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let title = call.params.trim();
        let Some(page) = self.corpus.meant(title) else {
            let mut text = format!("No page is titled {}.", quoted(title));
            let similar: Vec<&str> = self.corpus.similar(title, SIMILAR).into_iter().map(|page| page.title.as_str()).collect();
            if !similar.is_empty() {
                text.push_str(&format!(" Similar: {}.", similar.join("; ")));
            }
            return Ok(text.into());
        };
        let sentences = page.sentences();
        let mut text = one_line(&sentences[..sentences.len().min(LEAD_SENTENCES)].join(" "));
        // who asked by another name must see the title
        if !self.corpus.is_title(title) && !text.contains(&page.title) {
            text = format!("{}: {text}", page.title);
        }
        if sentences.len() > LEAD_SENTENCES {
            match &self.lookup {
                Some(lookup) => text.push_str(&format!(" (More: use {lookup}.)")),
                None => text.push_str(" (There is more.)"),
            }
        }
        Ok(text.into())
    }
}

//! `Retrieve[title]`

use autoact_trajectory::ToolSpec;

use crate::knowledge::{Knowledge, Opened, Place};
use crate::text::{fold, one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// A page's lead: that many of its first sentences.
pub const LEAD_SENTENCES: usize = 6;

/// How many similar titles an unknown one is answered with.
const SIMILAR: usize = 3;

/// The first sentences of the page that a name means, or the titles like it.
pub struct Retrieve {
    spec: ToolSpec,
    knowledge: Knowledge,
    /// The tool that shows the rest of a page, when the library has one.
    lookup: Option<String>,
}

impl Retrieve {
    /// The tool over a corpus, or over more; `lookup` names the tool that a long page's observation
    /// points to.
    pub fn new(spec: ToolSpec, knowledge: impl Into<Knowledge>, lookup: Option<String>) -> Retrieve {
        Retrieve { spec, knowledge: knowledge.into(), lookup }
    }
}

impl Tool for Retrieve {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let title = call.params.trim();
        let (page, by_title, also) = match self.knowledge.open(call, title, SIMILAR)? {
            Opened::Page { page, by_title, also } => (page, by_title, also),
            Opened::Unknown { similar } => {
                let mut text = format!("No page is titled {}.", quoted(title));
                if !similar.is_empty() {
                    text.push_str(&format!(" Similar: {}.", similar.join("; ")));
                }
                return Ok(text.into());
            }
        };
        let sentences = page.page.sentence_spans();
        let lead = &sentences[..sentences.len().min(LEAD_SENTENCES)];
        let shown = lead.first().map_or(0, |first| first.start)..lead.last().map_or(0, |last| last.end);
        let sources = vec![page.source(shown.clone())];
        let name = &page.page.title;
        let mut text = one_line(&page.page.text[shown]);
        // who asked by another name must see the title; the heading is what a reader calls it
        let by_heading = page.place.heading.as_deref().is_some_and(|heading| fold(heading) == fold(title));
        if !by_title && !by_heading && !text.contains(name) {
            text = format!("{name}: {text}");
        }
        if sentences.len() > LEAD_SENTENCES {
            match &self.lookup {
                Some(lookup) => text.push_str(&format!(" (More: use {lookup}.)")),
                None => text.push_str(" (There is more.)"),
            }
        }
        if !also.is_empty() {
            text.push_str(&format!(" (Also in: {}.)", also.iter().map(place).collect::<Vec<_>>().join("; ")));
        }
        Ok(ToolOutput { text, sources, ..ToolOutput::default() })
    }
}

/// A place, as a model reads it.
fn place(place: &Place) -> String {
    let Place { collection, file, .. } = place;
    if file.is_empty() { "the group's own pages".to_owned() } else { one_line(&format!("{collection}/{file}")) }
}

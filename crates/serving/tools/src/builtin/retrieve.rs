//! `Retrieve[title]`

use autoact_base::sentences::running_text;
use autoact_trajectory::ToolSpec;

use crate::knowledge::{Knowledge, Opened, Place};
use crate::text::{fold, one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// A page's lead: that many of its first sentences.
pub const LEAD_SENTENCES: usize = 6;

/// How many similar titles an unknown one is answered with.
const SIMILAR: usize = 3;

/// Bytes of the longest word before a name that counts as an article.
const LONGEST_ARTICLE: usize = 3;

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
        let (page, by_title, also) = match self.knowledge.open_written(call, title, call.trajectory.steps().count(), SIMILAR)? {
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
        let mut text = running_text(&page.page.text[shown]);
        // the heading is what a reader calls it
        let heading = page.place.heading.as_deref().filter(|heading| fold(heading) == fold(title));
        let name = heading.unwrap_or(&page.page.title);
        let asked_otherwise = !by_title && heading.is_none();
        if !begins_with_name(&text, name) || (asked_otherwise && !text.contains(name)) {
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

/// Whether a text says at its beginning what it is about: with the name, at most after an article.
/// What tells namesakes apart, as in `Volcano (film)`, is no part of it. A model that reads `She is 99
/// metres long` takes what comes first for the name.
fn begins_with_name(text: &str, name: &str) -> bool {
    let bare = name.rsplit_once(" (").map_or(name, |(bare, _)| bare);
    let (name, text) = (fold(bare), fold(text));
    let begins = |text: &str| text.strip_prefix(&name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '));
    begins(&text) || text.split_once(' ').is_some_and(|(article, rest)| article.len() <= LONGEST_ARTICLE && begins(rest))
}

/// A place, as a model reads it.
fn place(place: &Place) -> String {
    let Place { collection, file, .. } = place;
    if file.is_empty() { "the group's own pages".to_owned() } else { one_line(&format!("{collection}/{file}")) }
}

//! `Retrieve[title]`

use std::num::NonZeroUsize;
use std::ops::Range;

use autoact_base::sentences::running_text;
use autoact_trajectory::{Step, ToolSpec};

use crate::knowledge::{Knowledge, Opened, Place, PlacedPage};
use crate::telling::{Wanted, most_telling};
use crate::text::{fold, one_line, quoted};
use crate::tool::{Tool, ToolCall, ToolError, ToolOutput};

/// A page's lead: that many of its first sentences.
pub const LEAD_SENTENCES: usize = 6;

/// How many similar titles an unknown one is answered with.
const SIMILAR: usize = 3;

/// Bytes of the longest word before a name that counts as an article.
const LONGEST_ARTICLE: usize = 3;

/// Sentences of the page that a name means, or the titles like it. They are the first ones, or those
/// that say most of what the question and the thought are about.
pub struct Retrieve {
    spec: ToolSpec,
    knowledge: Knowledge,
    /// How many of the most telling ones; `None`: the first ones.
    sentences: Option<NonZeroUsize>,
    /// The tool that shows the rest of a page, when the library has one.
    lookup: Option<String>,
}

impl Retrieve {
    /// The tool over a corpus, or over more; `lookup` names the tool that a long page's observation
    /// points to.
    pub fn new(spec: ToolSpec, knowledge: impl Into<Knowledge>, lookup: Option<String>) -> Retrieve {
        Retrieve { spec, knowledge: knowledge.into(), sentences: None, lookup }
    }

    /// The same, showing so many of the page's most telling sentences.
    #[must_use]
    pub fn showing(self, sentences: NonZeroUsize) -> Retrieve {
        Retrieve { sentences: Some(sentences), ..self }
    }

    /// What of the page is shown.
    fn spans(&self, call: &ToolCall<'_>, page: &PlacedPage, sentences: &[Range<usize>]) -> Vec<Range<usize>> {
        let Some(count) = self.sentences else {
            let lead = &sentences[..sentences.len().min(LEAD_SENTENCES)];
            return lead.first().zip(lead.last()).map(|(first, last)| first.start..last.end).into_iter().collect();
        };
        let steps: Vec<&Step> = call.trajectory.steps().collect();
        let thought = steps.last().filter(|step| step.observation.is_none()).map_or("", |step| step.thought.as_str());
        let read = steps.iter().filter_map(|step| step.observation.as_deref()).collect::<Vec<_>>().join(" ");
        let wanted = Wanted { question: &call.trajectory.question, thought, read: &read };
        let texts: Vec<&str> = sentences.iter().map(|span| &page.page.text[span.clone()]).collect();
        most_telling(&texts, &wanted, &page.page.title, count.get()).into_iter().map(|at| sentences[at].clone()).collect()
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
        let spans = self.spans(call, &page, &sentences);
        let sources = spans.iter().map(|span| page.source(span.clone())).collect();
        let mut text = spans.iter().map(|span| running_text(&page.page.text[span.clone()])).collect::<Vec<_>>().join(" ");
        // the heading is what a reader calls it
        let heading = page.place.heading.as_deref().filter(|heading| fold(heading) == fold(title));
        let name = heading.unwrap_or(&page.page.title);
        let asked_otherwise = !by_title && heading.is_none();
        if !begins_with_name(&text, name) || (asked_otherwise && !text.contains(name)) {
            text = format!("{name}: {text}");
        }
        if self.sentences.is_none() && sentences.len() > LEAD_SENTENCES {
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

//! The passages of a document that fit a question.

use std::collections::HashSet;

use autoact_base::lines::several_lines;
use autoact_documents::{Document, Segment};
use autoact_tools::text::{query_stems, stems};
use autoact_tools::{PageIndex, ToolError};
use autoact_trajectory::{MAX_SOURCE_PATH_BYTES, Source};
use url::Url;

use crate::address::named;

/// The bound of a passage in characters: some sentences, so that two or three of them stand within
/// the first 300 tokens of an observation.
const PASSAGE_CHARS: usize = 400;
/// Passages that are shown.
const SHOWN: usize = 4;
/// Passages that are looked at: those of menus among them come last.
const LOOKED_AT: usize = 64;

/// What an observation shows of a document.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// A line or more for each passage, with its heading.
    pub(crate) lines: Vec<String>,
    pub(crate) sources: Vec<Source>,
    /// Whether a word of the question stands in the document; otherwise its beginning is shown.
    pub(crate) fits: bool,
}

/// The best passages for a question in at most `room` bytes, best first: by BM25 over the words of
/// the passages and of their headings. The first one has room in any case. Passages of the sections
/// `but` are left out, and passages that are made of `links` come last.
pub(crate) fn best(
    document: &Document,
    url: &Url,
    question: &str,
    room: usize,
    but: &[&str],
    links: &HashSet<String>,
) -> Result<Shown, ToolError> {
    let mut segments = document.segments(PASSAGE_CHARS);
    segments.retain(|segment| segment.heading.as_deref().is_none_or(|heading| !but.contains(&heading)));
    let heading = |segment: &Segment| segment.heading.clone().unwrap_or_else(|| document.title.clone());
    let headings: Vec<String> = segments.iter().map(heading).collect();
    let pairs = headings.iter().zip(&segments).map(|(heading, segment)| (heading.as_str(), segment.text.as_str()));
    let failed = |error: &dyn std::fmt::Display| ToolError::Internal(format!("cannot search the page: {error}"));
    let index = PageIndex::new(pairs).map_err(|error| failed(&error))?;
    let wanted = query_stems(question);
    let own: HashSet<String> = stems(&document.title).into_iter().collect();
    // words of the title hold for the whole page: they count only after all others
    let rest: Vec<String> = wanted.iter().filter(|stem| !own.contains(*stem)).cloned().collect();
    let mut found: Vec<usize> = Vec::new();
    for query in [&rest, &wanted] {
        for (at, _) in index.search(query, LOOKED_AT).map_err(|error| failed(&error))? {
            if !found.contains(&at) {
                found.push(at);
            }
        }
    }
    let fits = !found.is_empty();
    // stable: the order of the others stays
    found.sort_by_key(|at| segments.get(*at).is_some_and(|segment| is_menu(segment, links)));
    found.truncate(SHOWN);
    let order = if fits { found } else { (0..segments.len().min(SHOWN)).collect() };
    let mut shown = Shown { fits, ..Shown::default() };
    let mut left = room;
    for segment in order.into_iter().filter_map(|at| segments.get(at)) {
        let line = line(segment, &document.title);
        if line.len() > left && !shown.lines.is_empty() {
            continue;
        }
        left = left.saturating_sub(line.len() + 1);
        shown.lines.push(line);
        shown.sources.extend(source(segment, &document.title, url));
    }
    Ok(shown)
}

/// Whether most of a passage are lines that are links and nothing else.
fn is_menu(segment: &Segment, links: &HashSet<String>) -> bool {
    let lines = segment.text.lines().map(str::trim).filter(|line| links.contains(*line));
    lines.map(str::len).sum::<usize>() * 2 > segment.text.len()
}

/// `- Geography: The Loire is a river.`, `- (page 3) …`
fn line(segment: &Segment, title: &str) -> String {
    let text = several_lines(&segment.text).replace("\n\n", "\n");
    let heading = segment.heading.as_deref().filter(|heading| *heading != title && !text.starts_with(*heading));
    let page = segment.page.map_or_else(String::new, |page| format!("(page {page}) "));
    format!("- {page}{}{text}", heading.map_or_else(String::new, |heading| format!("{heading}: ")))
}

/// A passage as the source of an observation: its file is the page's URL.
fn source(segment: &Segment, title: &str, url: &Url) -> Option<Source> {
    Some(Source {
        collection: String::new(),
        file: named(url, MAX_SOURCE_PATH_BYTES)?,
        title: title.to_owned(),
        heading: segment.heading.clone().unwrap_or_default(),
        page: segment.page,
        start: segment.span.start as u64,
        end: segment.span.end as u64,
        text: segment.text.clone(),
    })
}

//! Which passages of the documents an answer rests on.
//!
//! Computed from the history, not written by a model: a model can misquote, and a small one cannot
//! cite at all. What the agents think restates what they read, so the rule compares words. Each
//! statement of a thought is matched with the sentences that were shown before it. A sentence
//! supports a statement if it has a name or a number of it that nobody knew before the sentence was
//! shown, or if it says nearly all of it. It is cited if the answer, or a statement or an action
//! that led to the answer, uses what it says. Numbers and names count more than other words, and
//! every word of a page's title counts for each of its sentences.
//!
//! So each hop of a chain is cited, and each fact of a comparison; a page that was opened in vain,
//! or that a search only listed, is not. What was computed has no source: the facts that went into
//! it are cited.

mod choice;
mod passage;
pub(crate) mod words;

use std::collections::BTreeSet;

use crate::bounds::{MAX_CITATIONS, MAX_QUOTES_BYTES};
use crate::citation::choice::Choice;
use crate::citation::passage::Passages;
use crate::history::{Step, Turn};
use crate::source::Source;

/// A passage that an answer rests on.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Citation {
    /// The step whose observation showed it, from 1.
    pub step: u32,
    /// The collection of documents; empty: the group's own knowledge base.
    pub collection: String,
    /// The document's path in its collection; empty for the group's own pages.
    pub file: String,
    /// Of the page or section.
    pub title: String,
    /// Under which the passage stands; empty: none.
    pub heading: String,
    /// Of a PDF, from 1.
    pub page: Option<u32>,
    /// Where the quote begins in the document's extracted text, in bytes; of the group's own pages
    /// in the page's text.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// One or more whole sentences, exactly as the document has them.
    pub quote: String,
}

impl Citation {
    /// The sentences of a source from one byte of its text to another; `step` counts from 0.
    fn of(step: usize, source: &Source, from: usize, to: usize) -> Citation {
        let Source { collection, file, title, heading, page, start, end: _, text } = source;
        Citation {
            step: u32::try_from(step + 1).unwrap_or(u32::MAX),
            collection: collection.clone(),
            file: file.clone(),
            title: title.clone(),
            heading: heading.clone(),
            page: *page,
            start: start + from as u64,
            end: start + to as u64,
            quote: text[from..to].to_owned(),
        }
    }
}

/// The passages that `answer` rests on, in the order in which they were shown. The last of `turns`
/// is the step that gave it. A pure function: the same history gives the same citations.
pub fn citations(question: &str, turns: &[Turn], answer: &str) -> Vec<Citation> {
    let steps = turns.iter().filter_map(|turn| match turn {
        Turn::Step(step) => Some(step),
        Turn::Reflection(_) => None,
    });
    let steps: Vec<&Step> = steps.collect();
    let passages = Passages::new(&steps);
    if passages.all.is_empty() || answer.is_empty() {
        return Vec::new();
    }
    let chosen = Choice::new(question, &steps, answer, &passages).run();
    // the most important ones stay, and are told in the order of the history
    let mut room = MAX_QUOTES_BYTES;
    let mut kept: Vec<usize> = Vec::with_capacity(MAX_CITATIONS);
    for at in chosen {
        let length = passages.all[at].span.len();
        if kept.len() < MAX_CITATIONS && length <= room {
            room -= length;
            kept.push(at);
        }
    }
    kept.sort_by_key(|at| (passages.all[*at].step, passages.all[*at].source, passages.all[*at].number));
    let mut told = BTreeSet::new();
    let mut citations = Vec::with_capacity(kept.len());
    for at in kept {
        let passage = &passages.all[at];
        let source = &steps[passage.step].sources[passage.source];
        let citation = Citation::of(passage.step, source, passage.span.start, passage.span.end);
        let Citation { collection, file, title, start, end, .. } = &citation;
        if told.insert((collection.clone(), file.clone(), title.clone(), *start, *end)) {
            citations.push(citation);
        }
    }
    citations
}

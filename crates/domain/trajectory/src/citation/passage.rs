//! The sentences that the observations of a task showed.

use std::collections::BTreeMap;
use std::ops::Range;

use autoact_base::sentences::sentence_spans;

use crate::citation::words::{Words, words, words_under};
use crate::history::Step;

/// The most sentences that are looked at, those of the last steps first: a bound on the work.
const MAX_PASSAGES: usize = 2048;

/// A sentence of a source.
#[derive(Debug)]
pub(super) struct Passage {
    /// The place of its step, from 0.
    pub(super) step: usize,
    /// The place of its source in the step.
    pub(super) source: usize,
    /// Which sentence of the source it is.
    pub(super) number: usize,
    /// Its bytes in the source's text.
    pub(super) span: Range<usize>,
    pub(super) words: Words,
    /// Words of the title and the heading: every sentence is about them.
    pub(super) title: Words,
}

/// All sentences, and which of them have a word.
#[derive(Debug, Default)]
pub(super) struct Passages {
    pub(super) all: Vec<Passage>,
    with: BTreeMap<String, Vec<usize>>,
}

impl Passages {
    pub(super) fn new(steps: &[&Step]) -> Passages {
        let mut passages = Passages::default();
        for (step, shown) in steps.iter().enumerate().rev() {
            for (source, shown) in shown.sources.iter().enumerate() {
                let mut title = words(&shown.title);
                title.extend(words(&shown.heading));
                for (number, span) in sentence_spans(&shown.text).into_iter().enumerate() {
                    if passages.all.len() == MAX_PASSAGES {
                        return passages;
                    }
                    let words = words_under(&title, &shown.text[span.clone()]);
                    passages.add(Passage { step, source, number, span, words, title: title.clone() });
                }
            }
        }
        passages
    }

    fn add(&mut self, passage: Passage) {
        for word in passage.words.keys() {
            self.with.entry(word.clone()).or_default().push(self.all.len());
        }
        self.all.push(passage);
    }

    /// The sentences with at least one of the words.
    pub(super) fn with_any(&self, words: &Words) -> Vec<usize> {
        let mut found: Vec<usize> = words.keys().filter_map(|word| self.with.get(word)).flatten().copied().collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

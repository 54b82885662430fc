//! The interface to a source of training documents.

use std::ops::Range;

use autoact_base::random::SplitMix64;

/// One training document: token ids with a loss mask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Loss mask: if `loss[i]`, token `i` is a target, predicted from tokens `0..i`. `loss[0]` has
    /// no effect.
    pub loss: Vec<bool>,
    /// For activated LoRA (<https://arxiv.org/abs/2504.12397>): the ranges of tokens on which an
    /// adapter acts, ascending and disjoint. Each is read after the tokens before it as the base
    /// alone reads them, those of earlier ranges too, and only targets within a range count. Empty:
    /// the adapter acts on all tokens.
    pub invocations: Vec<Range<usize>>,
}

impl Document {
    /// Number of token positions that a training step spends on the document: those that the base
    /// reads, and those of every invocation. The last token of each is only a target.
    #[must_use]
    pub fn positions(&self) -> usize {
        match self.invocations.last() {
            None => self.tokens.len().saturating_sub(1),
            Some(last) => last.start + self.invocations.iter().map(|range| range.len().saturating_sub(1)).sum::<usize>(),
        }
    }
}

/// An endless seeded source of documents.
///
/// Document `i` must be a pure function of the source's seed and `i`, because a resumed training
/// seeks back and must get the same documents again.
pub trait DocumentSource: Send {
    /// The next document.
    fn next(&mut self) -> Document;
    /// Makes [`DocumentSource::next`] return document `index` (the first one is 0).
    fn seek(&mut self, index: u64);
}

/// An endless repetition of a fixed list of documents, with a new random order in each epoch.
#[derive(Debug, Clone)]
pub struct Cycle {
    documents: Vec<Document>,
    seed: u64,
    at: u64,
    round: Option<(u64, Vec<usize>)>,
}

impl Cycle {
    /// Repeats `documents`. An empty list gives empty documents, which training refuses.
    #[must_use]
    pub fn new(documents: Vec<Document>, seed: u64) -> Self {
        Self { documents, seed, at: 0, round: None }
    }
}

impl DocumentSource for Cycle {
    fn next(&mut self) -> Document {
        let n = self.documents.len();
        if n == 0 {
            return Document::default();
        }
        let round = self.at / n as u64;
        let order = match &mut self.round {
            Some((r, order)) if *r == round => order,
            stale => {
                let mut rng = SplitMix64::stream(self.seed, round);
                let mut order: Vec<usize> = (0..n).collect();
                for i in (1..n).rev() {
                    order.swap(i, rng.below(i + 1));
                }
                &mut stale.insert((round, order)).1
            }
        };
        let pick = order[(self.at % n as u64) as usize];
        self.at += 1;
        self.documents[pick].clone()
    }

    fn seek(&mut self, index: u64) {
        self.at = index;
    }
}

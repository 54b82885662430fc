//! The interface to a source of training documents.

use autoact_base::random::SplitMix64;

/// One training document: token ids with a loss mask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    /// Token ids.
    pub tokens: Vec<u32>,
    /// Loss mask: if `loss[i]`, token `i` is a target, predicted from tokens `0..i`. `loss[0]` has
    /// no effect.
    pub loss: Vec<bool>,
    /// Index of the first token on which adapters act; 0: all tokens. It is larger than 0 for
    /// activated LoRA (<https://arxiv.org/abs/2504.12397>): earlier tokens are computed without the
    /// adapter.
    pub adapter_from: usize,
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

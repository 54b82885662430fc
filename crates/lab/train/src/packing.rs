//! Packs documents into micro-batches.
//!
//! A document of `n` tokens needs `n - 1` positions, because the last token is only a target.
//! Tokens after its last target need none. Documents are adjacent, without padding. Attention and
//! positions start again at each document.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::config::TrainConfig;
use crate::data::{Document, DocumentSource};
use crate::error::{Result, TrainError};

/// Number of documents among which the packer chooses those that fill a micro-batch best.
const LOOK_AHEAD: usize = 48;
/// Number of successive documents without a target after which a source is considered invalid.
const MAX_EMPTY: u64 = 100_000;

/// The documents that one worker computes at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MicroBatch {
    /// Input tokens of all documents, one after the other.
    pub(crate) tokens: Vec<u32>,
    /// Position of each token within its document.
    pub(crate) positions: Vec<u32>,
    /// Index of the first token and length of each document.
    pub(crate) docs: Vec<(usize, usize)>,
    /// Indices of the tokens whose next token is a target, ascending.
    pub(crate) loss_rows: Vec<u32>,
    /// The targets of these tokens.
    pub(crate) targets: Vec<u32>,
    /// Ranges of tokens on which adapters do not act.
    pub(crate) base_rows: Vec<Range<usize>>,
    /// The same tokens, as ranges of indices into `loss_rows`.
    pub(crate) base_loss_rows: Vec<Range<usize>>,
}

impl MicroBatch {
    fn push(&mut self, doc: &Document) {
        let len = doc.tokens.len() - 1;
        let start = self.tokens.len();
        self.docs.push((start, len));
        self.tokens.extend_from_slice(&doc.tokens[..len]);
        self.positions.extend(0..len as u32);
        let base = doc.adapter_from.min(len);
        if base > 0 {
            self.base_rows.push(start..start + base);
            let (first, targets) = (self.targets.len(), (0..base).filter(|i| doc.loss[i + 1]).count());
            self.base_loss_rows.push(first..first + targets);
        }
        for i in (0..len).filter(|i| doc.loss[i + 1]) {
            self.loss_rows.push((start + i) as u32);
            self.targets.push(doc.tokens[i + 1]);
        }
    }
}

/// The packer's position in its source, sufficient to continue exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPosition {
    /// Index of the next document to draw.
    pub next: u64,
    /// Documents drawn but not used yet, oldest first.
    pub pending: Vec<u64>,
}

/// Counts of documents and positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackStats {
    /// Documents drawn.
    pub documents: u64,
    /// Documents cut because they were longer than `seq_len`.
    pub cut: u64,
    /// Documents without a target (after cutting), which are left out.
    pub without_target: u64,
    /// Token positions used.
    pub positions: u64,
    /// Token positions available.
    pub capacity: u64,
}

/// All micro-batches of one optimiser step.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) micros: Vec<MicroBatch>,
    pub(crate) tokens: u64,
    pub(crate) loss_tokens: u64,
    /// The packer's position after this batch.
    pub(crate) position: DataPosition,
    pub(crate) stats: PackStats,
}

/// Draws documents from a source and packs them into batches.
pub(crate) struct Packer<'a> {
    source: &'a mut dyn DocumentSource,
    pending: VecDeque<(u64, Document)>,
    next: u64,
    seq_len: usize,
    vocab: usize,
    capacity: usize,
    micros: usize,
    stats: PackStats,
}

impl<'a> Packer<'a> {
    pub(crate) fn new(
        source: &'a mut dyn DocumentSource,
        config: &TrainConfig,
        vocab: usize,
        position: &DataPosition,
        stats: PackStats,
    ) -> Result<Self> {
        let mut packer = Self {
            source,
            pending: VecDeque::new(),
            next: position.next,
            seq_len: config.seq_len,
            vocab,
            capacity: config.micro_capacity(),
            micros: config.micro_batches(),
            stats,
        };
        for index in &position.pending {
            packer.source.seek(*index);
            let doc = packer.source.next();
            if let Some(doc) = packer.accept(*index, doc)? {
                packer.pending.push_back((*index, doc));
            }
        }
        packer.source.seek(position.next);
        packer.stats = stats;
        Ok(packer)
    }

    /// Checks and trims a document; `None` if it has no target.
    fn accept(&mut self, index: u64, doc: Document) -> Result<Option<Document>> {
        let (doc, was_cut) = prepare(index, doc, self.seq_len, self.vocab)?;
        self.stats.documents += 1;
        self.stats.cut += u64::from(was_cut);
        self.stats.without_target += u64::from(doc.is_none());
        Ok(doc)
    }

    fn refill(&mut self) -> Result<()> {
        let mut empty = 0;
        while self.pending.len() < LOOK_AHEAD {
            let index = self.next;
            self.next += 1;
            let doc = self.source.next();
            match self.accept(index, doc)? {
                Some(doc) => self.pending.push_back((index, doc)),
                None => {
                    empty += 1;
                    if empty > MAX_EMPTY {
                        let message = format!("the last {MAX_EMPTY} documents have no target");
                        return Err(TrainError::Document { index, message });
                    }
                }
            }
        }
        Ok(())
    }

    fn micro(&mut self) -> Result<MicroBatch> {
        let mut micro = MicroBatch::default();
        loop {
            self.refill()?;
            let room = self.capacity - micro.tokens.len();
            let lens = self.pending.iter().map(|(_, d)| d.tokens.len() - 1);
            let lens: Vec<usize> = lens.collect();
            // far from full: the oldest document; nearly full: the one that fills the rest best
            let pick = if micro.tokens.is_empty() || room >= 3 * self.seq_len {
                lens.iter().position(|l| *l <= room)
            } else {
                best_fit(&lens, room)
            };
            let Some((_, doc)) = pick.and_then(|i| self.pending.remove(i)) else { break };
            micro.push(&doc);
        }
        self.stats.positions += micro.tokens.len() as u64;
        self.stats.capacity += self.capacity as u64;
        Ok(micro)
    }

    /// The next batch.
    pub(crate) fn batch(&mut self) -> Result<Batch> {
        let micros = (0..self.micros).map(|_| self.micro()).collect::<Result<Vec<_>>>()?;
        Ok(Batch {
            tokens: micros.iter().map(|m| m.tokens.len() as u64).sum(),
            loss_tokens: micros.iter().map(|m| m.targets.len() as u64).sum(),
            position: DataPosition { next: self.next, pending: self.pending.iter().map(|(i, _)| *i).collect() },
            stats: self.stats,
            micros,
        })
    }
}

/// The index of the document that fills `room` best, alone or as the first of a pair. The oldest
/// one on a tie.
fn best_fit(lens: &[usize], room: usize) -> Option<usize> {
    let mut best: Option<(usize, usize)> = None;
    let mut offer = |sum: usize, i: usize| {
        if sum <= room && best.is_none_or(|(s, _)| sum > s) {
            best = Some((sum, i));
        }
    };
    for (i, a) in lens.iter().enumerate() {
        offer(*a, i);
        for b in &lens[i + 1..] {
            offer(a + b, i);
        }
    }
    best.map(|(_, i)| i)
}

/// Cuts a document to `seq_len` positions and removes the tokens after its last target.
fn prepare(index: u64, mut doc: Document, seq_len: usize, vocab: usize) -> Result<(Option<Document>, bool)> {
    let bad = |message: String| TrainError::Document { index, message };
    if doc.loss.len() != doc.tokens.len() {
        let (t, l) = (doc.tokens.len(), doc.loss.len());
        return Err(bad(format!("{t} tokens but {l} loss flags")));
    }
    if let Some(token) = doc.tokens.iter().find(|t| **t as usize >= vocab) {
        return Err(bad(format!("token {token} is outside the vocabulary of {vocab}")));
    }
    let was_cut = doc.tokens.len() > seq_len + 1;
    doc.tokens.truncate(seq_len + 1);
    doc.loss.truncate(seq_len + 1);
    let end = doc.loss.iter().rposition(|l| *l).map_or(0, |i| i + 1);
    doc.tokens.truncate(end);
    doc.loss.truncate(end);
    Ok(((end >= 2).then_some(doc), was_cut))
}

/// Packs a finite list in order, for evaluation.
pub(crate) fn pack_all(docs: &[Document], config: &TrainConfig, vocab: usize) -> Result<Vec<MicroBatch>> {
    let mut micros = vec![MicroBatch::default()];
    for (i, doc) in docs.iter().enumerate() {
        let (Some(doc), _) = prepare(i as u64, doc.clone(), config.seq_len, vocab)? else {
            continue;
        };
        let full = micros.last().is_none_or(|m| m.tokens.len() + doc.tokens.len() - 1 > config.micro_capacity());
        if full {
            micros.push(MicroBatch::default());
        }
        if let Some(last) = micros.last_mut() {
            last.push(&doc);
        }
    }
    micros.retain(|m| !m.tokens.is_empty());
    Ok(micros)
}

#[cfg(test)]
#[path = "packing_tests.rs"]
mod tests;

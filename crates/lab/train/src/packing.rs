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

/// Adjacent rows of a micro-batch that attend to each other, and to a context before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sequence {
    /// Its rows.
    pub(crate) rows: Range<usize>,
    /// The rows of the base that it reads before its own: the history of an activated adapter's
    /// invocation; otherwise empty.
    pub(crate) context: Range<usize>,
}

/// The documents that one worker computes at a time. A row is one input token.
///
/// The rows of histories come first. They are computed by the base alone, so no gradient passes
/// through them, and the backward pass leaves them out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MicroBatch {
    /// Input tokens of all rows.
    pub(crate) tokens: Vec<u32>,
    /// Position of each token within its document.
    pub(crate) positions: Vec<u32>,
    /// Number of rows at the beginning on which adapters do not act.
    pub(crate) base: usize,
    /// The rows that belong together, in order and without gaps.
    pub(crate) sequences: Vec<Sequence>,
    /// Indices of the rows whose next token is a target, ascending.
    pub(crate) loss_rows: Vec<u32>,
    /// The targets of these rows.
    pub(crate) targets: Vec<u32>,
}

impl MicroBatch {
    fn new(docs: &[Document]) -> Self {
        let mut micro = Self::default();
        let mut histories = Vec::with_capacity(docs.len());
        for doc in docs {
            let history = doc.invocations.last().map_or(0, |last| last.start);
            histories.push(micro.tokens.len());
            micro.push(doc, 0..history, 0..0);
        }
        micro.base = micro.tokens.len();
        for (doc, history) in docs.iter().zip(histories) {
            for range in &doc.invocations {
                micro.learn(doc, range.start..range.end - 1, history..history + range.start);
            }
            if doc.invocations.is_empty() {
                micro.learn(doc, 0..doc.tokens.len() - 1, 0..0);
            }
        }
        micro
    }

    /// The sequences that the base alone reads.
    pub(crate) fn histories(&self) -> &[Sequence] {
        &self.sequences[..self.sequences.partition_point(|sequence| sequence.rows.start < self.base)]
    }

    /// Adds the tokens of `range`.
    fn push(&mut self, doc: &Document, range: Range<usize>, context: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let start = self.tokens.len();
        self.tokens.extend_from_slice(&doc.tokens[range.clone()]);
        self.positions.extend(range.start as u32..range.end as u32);
        self.sequences.push(Sequence { rows: start..self.tokens.len(), context });
    }

    /// Adds the tokens of `range`, with the targets that follow them.
    fn learn(&mut self, doc: &Document, range: Range<usize>, context: Range<usize>) {
        let start = self.tokens.len();
        for (row, next) in (range.start + 1..=range.end).enumerate().filter(|(_, next)| doc.loss[*next]) {
            self.loss_rows.push((start + row) as u32);
            self.targets.push(doc.tokens[next]);
        }
        self.push(doc, range, context);
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
    limits: Limits,
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
            limits: Limits::new(config, vocab),
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
        let (doc, was_cut) = prepare(index, doc, &self.limits)?;
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
        let mut docs = Vec::new();
        let mut room = self.limits.capacity;
        loop {
            self.refill()?;
            let lens: Vec<usize> = self.pending.iter().map(|(_, doc)| doc.positions()).collect();
            // far from full: the oldest document; nearly full: the one that fills the rest best
            let pick = if docs.is_empty() || room >= 3 * self.limits.seq_len {
                lens.iter().position(|l| *l <= room)
            } else {
                best_fit(&lens, room)
            };
            let Some((_, doc)) = pick.and_then(|i| self.pending.remove(i)) else { break };
            room -= doc.positions();
            docs.push(doc);
        }
        let micro = MicroBatch::new(&docs);
        self.stats.positions += micro.tokens.len() as u64;
        self.stats.capacity += self.limits.capacity as u64;
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

/// What a document may have.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// Positions.
    seq_len: usize,
    /// Rows; more than positions if the base and an adapter read the same tokens.
    capacity: usize,
    /// Token ids below this.
    vocab: usize,
    /// Whether adapters are trained. Otherwise invocations have no meaning.
    adapters: bool,
}

impl Limits {
    fn new(config: &TrainConfig, vocab: usize) -> Self {
        Self { seq_len: config.seq_len, capacity: config.micro_capacity(), vocab, adapters: config.lora.is_some() }
    }
}

/// Cuts a document to what the limits allow and removes the tokens after its last target; `None` if
/// it has no target. The flag says whether it was cut.
fn prepare(index: u64, mut doc: Document, limits: &Limits) -> Result<(Option<Document>, bool)> {
    let bad = |message: String| TrainError::Document { index, message };
    if doc.loss.len() != doc.tokens.len() {
        let (t, l) = (doc.tokens.len(), doc.loss.len());
        return Err(bad(format!("{t} tokens but {l} loss flags")));
    }
    if let Some(token) = doc.tokens.iter().find(|t| **t as usize >= limits.vocab) {
        return Err(bad(format!("token {token} is outside the vocabulary of {}", limits.vocab)));
    }
    let ends = std::iter::once(0).chain(doc.invocations.iter().map(|range| range.end));
    if doc.invocations.iter().zip(ends).any(|(range, before)| range.start < before || range.end < range.start || range.end > doc.loss.len())
    {
        return Err(bad(format!("the invocations {:?} overlap or are outside of its {} tokens", doc.invocations, doc.loss.len())));
    }
    let mut was_cut = doc.tokens.len() > limits.seq_len + 1;
    doc.tokens.truncate(limits.seq_len + 1);
    doc.loss.truncate(limits.seq_len + 1);
    if !limits.adapters {
        doc.invocations.clear();
    }
    let activated = !doc.invocations.is_empty();
    let loss = &doc.loss;
    doc.invocations.retain_mut(|range| {
        range.end = range.end.min(loss.len());
        let last = (range.start + 1..range.end).rfind(|at| loss[*at]);
        range.end = last.map_or(range.start, |at| at + 1);
        last.is_some()
    });
    while doc.positions() > limits.capacity && doc.invocations.pop().is_some() {
        was_cut = true;
    }
    let end = match doc.invocations.last() {
        Some(last) => last.end,
        None if activated => 0,
        None => doc.loss.iter().rposition(|l| *l).map_or(0, |i| i + 1),
    };
    doc.tokens.truncate(end);
    doc.loss.truncate(end);
    Ok(((end >= 2).then_some(doc), was_cut))
}

/// Packs a finite list in order, for evaluation.
pub(crate) fn pack_all(docs: &[Document], config: &TrainConfig, vocab: usize) -> Result<Vec<MicroBatch>> {
    let limits = Limits::new(config, vocab);
    let (mut micros, mut fits, mut rows) = (Vec::new(), Vec::new(), 0);
    for (i, doc) in docs.iter().enumerate() {
        let (Some(doc), _) = prepare(i as u64, doc.clone(), &limits)? else {
            continue;
        };
        if rows + doc.positions() > limits.capacity {
            micros.push(MicroBatch::new(&fits));
            fits.clear();
            rows = 0;
        }
        rows += doc.positions();
        fits.push(doc);
    }
    if !fits.is_empty() {
        micros.push(MicroBatch::new(&fits));
    }
    Ok(micros)
}

#[cfg(test)]
#[path = "packing_tests.rs"]
mod tests;

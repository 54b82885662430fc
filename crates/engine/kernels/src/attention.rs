//! Grouped-query attention over blocks of the KV cache, with a sliding window if the model has one.

use std::cell::RefCell;
use std::ops::Range;

use crate::exp::exp;
use crate::line::Line;
use crate::simd::{self, COLUMNS, Chunks, Isa, Keep, Span, Words};
use crate::{BLOCK, KvFormat, Team};

/// The shape of a layer's attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttentionShape {
    /// Number of query heads.
    pub heads: usize,
    /// Number of key/value heads, each shared by `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Elements of a head.
    pub dim: usize,
    /// Sliding window: the number of positions that a query attends to, including its own;
    /// `usize::MAX` for no limit.
    pub window: usize,
    /// The number format of keys and values.
    pub format: KvFormat,
}

impl AttentionShape {
    /// Words of one layer's part of a block.
    pub fn block_len(&self) -> usize {
        self.format.block_len(self.kv_heads, self.dim)
    }
}

/// The queries of one sequence. Row `row + i` is at position `first + i` and attends to the
/// positions `max(0, first + i + 1 - window) ..= first + i`.
#[derive(Debug, Clone, Copy)]
pub struct Queries<'a> {
    /// Index of the first row in the queries and outputs.
    pub row: usize,
    /// Number of rows.
    pub rows: usize,
    /// Position of the first row in the sequence.
    pub first: usize,
    /// This layer's part of each block of the sequence. Block `b` holds the positions from
    /// `BLOCK * b` on.
    pub blocks: &'a [&'a [u32]],
}

/// Number of positions in a stretch. Each query has its own maximum, sum and weighted values for
/// every stretch (counted from position 0), and the stretches are merged in order. So a query's
/// result depends neither on other queries nor on the assignment of stretches to threads.
pub(crate) const STRETCH: usize = 256;
/// Maximum number of rows that are computed together. A row is one head of one query.
const ROWS: usize = 48;
/// Rows of a register tile.
const TILE: usize = 6;
/// Minimum number of multiply-adds for which another thread is worth its cost.
const SMALL: usize = 1 << 17;

/// Attention of all queries. Keys and values in bf16 are multiplied by queries and probabilities in
/// bf16 where the machine has an instruction for such pairs, else in f32; sums, scores and the
/// softmax are in f32. `q` has rows of `stride` elements that begin with the query
/// `[heads * dim]`. `out` is `[rows, heads * dim]`. Scores are scaled by `1 / sqrt(dim)`.
///
/// # Panics
/// If the shapes are inconsistent, a sequence lacks blocks, or two sequences share a row.
pub fn attend(team: &Team, shape: &AttentionShape, q: &[f32], stride: usize, sequences: &[Queries<'_>], out: &mut [f32]) {
    let &AttentionShape { heads, kv_heads, dim, window, .. } = shape;
    let width = heads.saturating_mul(dim);
    if width == 0 {
        return;
    }
    assert!(kv_heads > 0 && heads.is_multiple_of(kv_heads), "{heads} heads cannot share {kv_heads} keys and values evenly");
    assert!(window > 0, "a window of 0 positions");
    assert!(width <= stride, "{heads} heads of {dim} do not fit in rows of {stride}");
    let block_len = width.checked_mul(2 * BLOCK).map(|_| shape.block_len());
    for s in sequences.iter().filter(|s| s.rows > 0) {
        let end = s.row.saturating_add(s.rows);
        assert!(end.saturating_mul(width) <= out.len(), "no outputs for rows {}..{end}", s.row);
        assert!((end - 1).saturating_mul(stride).saturating_add(width) <= q.len(), "no queries for rows {}..{end}", s.row);
        let positions = s.first.saturating_add(s.rows);
        let blocks = positions.div_ceil(BLOCK);
        assert!(blocks <= s.blocks.len(), "{} blocks for {positions} positions", s.blocks.len());
        let seen = &s.blocks[(s.first + 1).saturating_sub(window) / BLOCK..blocks];
        assert!(seen.iter().all(|b| Some(b.len()) == block_len), "a block is not {block_len:?} words");
    }

    let isa = Isa::get();
    let words = Words::of(isa, shape.format);
    let group = heads / kv_heads;
    let tokens = (ROWS / group).max(1);
    let mut units = Vec::new();
    for s in sequences {
        // the longest tasks first
        for t in (0..s.rows).step_by(tokens).rev() {
            let tokens = t..(t + tokens).min(s.rows);
            units.extend((0..kv_heads).map(|kv| Unit { shape, words, group, s, kv, tokens: tokens.clone(), isa }));
        }
    }
    let work: usize = units.iter().map(|u| 2 * u.rows() * u.stretches().len() * STRETCH * dim).sum();
    let out = Chunks::new(out, group * dim);
    let alone = work < SMALL || team.threads() == 1;
    if alone || units.len() >= 4 * team.threads() {
        let task = |i: usize| units[i].whole(q, stride, &out);
        return if alone { (0..units.len()).for_each(task) } else { team.run(units.len(), &task) };
    }

    // few queries and many keys: one task per stretch, then the merge
    let tasks: Vec<(&Unit<'_>, usize)> = units.iter().flat_map(|u| u.stretches().map(move |c| (u, c))).collect();
    let len = units.iter().map(|u| u.rows() * u.state()).max().unwrap_or(0);
    let mut states = vec![0f32; tasks.len() * len];
    let parts = Chunks::new(&mut states, len);
    team.run(tasks.len(), &|i| {
        let (unit, stretch) = tasks[i];
        SCRATCH.with_borrow_mut(|scratch| {
            unit.pack(q, stride, &mut scratch.work);
            unit.stretch(stretch, &mut scratch.work, parts.take(i));
        });
    });
    let mut parts = states.chunks_exact_mut(len);
    for unit in &units {
        let Some(sum) = parts.next() else { break };
        for stretch in unit.stretches().skip(1) {
            let Some(part) = parts.next() else { break };
            unit.merge(stretch, sum, part);
        }
        unit.finish(sum, &out);
    }
}

/// Some queries of a sequence for one key/value head, with all query heads that share it. A row is
/// one of these heads of one query.
struct Unit<'a> {
    shape: &'a AttentionShape,
    words: Words,
    group: usize,
    s: &'a Queries<'a>,
    kv: usize,
    tokens: Range<usize>,
    isa: Isa,
}

/// Buffers of a thread.
#[derive(Default)]
struct Scratch {
    work: Work,
    sum: Vec<f32>,
    part: Vec<f32>,
}

/// What a stretch is computed from and in, without tiles and with them.
#[derive(Default)]
struct Work {
    q: Vec<f32>,
    scores: Vec<f32>,
    packed: Vec<Line>,
    seen: Vec<Range<usize>>,
    tiles: simd::Buffers,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

impl Unit<'_> {
    fn rows(&self) -> usize {
        self.tokens.len() * self.group
    }

    /// Elements of a row's state: its weighted values, then its maximum and sum.
    fn state(&self) -> usize {
        self.shape.dim + 16
    }

    /// The positions that a row attends to.
    fn seen(&self, row: usize) -> Range<usize> {
        let end = self.s.first + self.tokens.start + row / self.group + 1;
        end.saturating_sub(self.shape.window)..end
    }

    /// The stretches that any row attends to.
    fn stretches(&self) -> Range<usize> {
        self.seen(0).start / STRETCH..self.seen(self.rows() - 1).end.div_ceil(STRETCH)
    }

    /// The positions of a stretch that a row attends to, relative to the start of the stretch.
    fn seen_of(&self, row: usize, stretch: usize) -> Range<usize> {
        let (seen, from) = (self.seen(row), stretch * STRETCH);
        let start = seen.start.max(from).min(from + STRETCH) - from;
        start..(seen.end.max(from).min(from + STRETCH) - from).max(start)
    }

    fn whole(&self, q: &[f32], stride: usize, out: &Chunks<'_, f32>) {
        SCRATCH.with_borrow_mut(|Scratch { work, sum, part }| {
            let len = self.rows() * self.state();
            sum.resize(len.max(sum.len()), 0.0);
            part.resize(len.max(part.len()), 0.0);
            self.pack(q, stride, work);
            let stretches = self.stretches();
            self.stretch(stretches.start, work, &mut sum[..len]);
            for stretch in stretches.skip(1) {
                self.stretch(stretch, work, &mut part[..len]);
                self.merge(stretch, &mut sum[..len], &part[..len]);
            }
            self.finish(&sum[..len], out);
        });
    }

    /// Numbers of keys, or of values of one dimension, in a word.
    fn per_word(&self) -> usize {
        self.shape.format.per_word()
    }

    /// Words of a key.
    fn key_len(&self) -> usize {
        self.shape.dim.div_ceil(self.per_word())
    }

    /// Copies the rows of the queries, scaled, to `work.q`: `[rows]` of the words that multiply a
    /// key, with a zero after an odd last dimension. Those for tiles are in `work.packed`.
    fn pack(&self, q: &[f32], stride: usize, work: &mut Work) {
        let dim = self.shape.dim;
        let scale = 1.0 / (dim as f32).sqrt();
        let width = self.group * dim;
        let row = |token: usize| &q[(self.s.row + token) * stride + self.kv * width..][..width];
        if self.words == Words::Tiles {
            let lines = self.group * simd::query_lines(dim);
            work.packed.resize(self.tokens.len() * lines, Line::default());
            for (token, packed) in self.tokens.clone().zip(work.packed.chunks_exact_mut(lines)) {
                simd::pack_queries(self.isa, row(token), dim, scale, packed);
            }
            return;
        }
        let packed = &mut work.q;
        packed.clear();
        for token in self.tokens.clone() {
            for head in row(token).chunks_exact(dim) {
                packed.extend(head.iter().map(|q| q * scale));
                packed.resize(packed.len().next_multiple_of(self.per_word()), 0.0);
            }
        }
        if self.words == Words::Pairs {
            simd::pair_up(self.isa, packed);
            packed.truncate(packed.len() / 2);
        }
    }

    /// Computes the state of every row over a stretch. The state is zero for rows that do not
    /// attend to it.
    fn stretch(&self, stretch: usize, work: &mut Work, states: &mut [f32]) {
        let (dim, state, rows) = (self.shape.dim, self.state(), self.rows());
        if self.words == Words::Tiles {
            return self.stretch_on_tiles(stretch, work, states);
        }
        let Work { q, scores, .. } = work;
        scores.resize((rows * STRETCH).max(scores.len()), 0.0);
        self.scores(stretch, q, scores);
        for (row, state) in states.chunks_exact_mut(state).enumerate().take(rows) {
            let seen = self.seen_of(row, stretch);
            let row = &mut scores[row * STRETCH..][..STRETCH];
            let (max, sum) = match self.words {
                Words::F32 | Words::Widened => simd::softmax(self.isa, row, seen.start, seen.end),
                Words::Pairs | Words::Tiles => simd::softmax_pairs(self.isa, row, seen.start, seen.end),
            };
            state[..dim].fill(0.0);
            (state[dim], state[dim + 1]) = (max, sum);
        }
        for first in (0..rows).step_by(TILE) {
            let tile = first..(first + TILE).min(rows);
            let (lanes, mut column) = (self.isa.lanes(), 0);
            while column + COLUMNS * lanes <= dim {
                self.values::<COLUMNS>(stretch, tile.clone(), column, scores, states);
                column += COLUMNS * lanes;
            }
            while column < dim {
                self.values::<1>(stretch, tile.clone(), column, scores, states);
                column += lanes;
            }
        }
    }

    fn stretch_on_tiles(&self, stretch: usize, work: &mut Work, states: &mut [f32]) {
        let AttentionShape { kv_heads, dim, format, .. } = *self.shape;
        work.seen.clear();
        for row in (0..self.rows()).step_by(self.group) {
            work.seen.resize(row + self.group, self.seen_of(row, stretch));
        }
        let stretch = simd::Stretch {
            dim,
            blocks: &self.s.blocks[stretch * (STRETCH / BLOCK)..],
            keys: self.kv * self.key_len() * BLOCK,
            values: format.keys_len(kv_heads, dim) + self.kv * format.values_len(dim),
            q: &work.packed,
            seen: &work.seen,
        };
        simd::attend_on_tiles(self.isa, &stretch, &mut work.tiles, states, self.state());
    }

    /// Computes the scores of all rows for the positions of a stretch that any row attends to.
    fn scores(&self, stretch: usize, q: &[f32], scores: &mut [f32]) {
        let (len, rows, lanes) = (self.key_len(), self.rows(), self.isa.lanes());
        let (from, to) = (self.seen_of(0, stretch).start, self.seen_of(rows - 1, stretch).end);
        let keys = COLUMNS * lanes;
        for start in (from / keys * keys..to).step_by(keys) {
            // other keys are replaced by valid ones; their scores are not used
            let b = std::array::from_fn(|c| {
                let key = start + c * lanes;
                let block = (key / BLOCK).clamp(from / BLOCK, (to - 1) / BLOCK);
                let block = self.s.blocks[stretch * (STRETCH / BLOCK) + block];
                &block[self.kv * len * BLOCK + key % BLOCK..][..(len - 1) * BLOCK + lanes]
            });
            let span = Span::<COLUMNS> { at: 0, count: len, keep: Keep::Both, b };
            let q_len = len * self.words.left();
            simd::multiply(self.isa, self.shape.format, rows, q, q_len, &[span], BLOCK, lanes, true, &mut scores[start..], STRETCH);
        }
    }

    /// Adds the weighted values of a stretch for the rows of a tile, in `C` vectors from `column`
    /// on. Positions that share a word are added at once, unless a row attends to one of them only.
    /// That depends on nothing but the row's own position, so every row has its own fixed chain.
    fn values<const C: usize>(&self, stretch: usize, tile: Range<usize>, column: usize, scores: &[f32], states: &mut [f32]) {
        let (state, per) = (self.state(), self.per_word());
        let seen = |row| self.seen_of(row, stretch);
        let common = seen(tile.end - 1).start.next_multiple_of(per)..seen(tile.start).end / per * per;
        let mut add = |rows: Range<usize>, keys: Range<usize>| {
            if keys.start < keys.end {
                let mut spans = [Span { at: 0, count: 0, keep: Keep::Both, b: [&[][..]; C] }; STRETCH / BLOCK + 2];
                let spans = self.spans(stretch, keys, column, &mut spans);
                let last = self.shape.dim - column;
                let (scores, states) = (&scores[rows.start * STRETCH..], &mut states[rows.start * state + column..]);
                let format = self.shape.format;
                simd::multiply(self.isa, format, rows.len(), scores, STRETCH, spans, self.shape.dim, last, false, states, state);
            }
        };
        // the rows of a query attend to the same positions
        let query = |i: usize| (i * self.group).max(tile.start)..((i + 1) * self.group).min(tile.end);
        let queries = tile.start / self.group..tile.end.div_ceil(self.group);
        if common.start >= common.end {
            return queries.for_each(|i| add(query(i), seen(query(i).start)));
        }
        queries.clone().for_each(|i| add(query(i), seen(query(i).start).start..common.start));
        add(tile.clone(), common.clone());
        queries.for_each(|i| add(query(i), common.end..seen(query(i).start).end));
    }

    /// The memory spans of the values of some keys, at most one of half a word at either end.
    fn spans<'s, 'b, const C: usize>(
        &'b self,
        stretch: usize,
        keys: Range<usize>,
        column: usize,
        spans: &'s mut [Span<'b, C>; STRETCH / BLOCK + 2],
    ) -> &'s [Span<'b, C>] {
        let AttentionShape { kv_heads, dim, format, .. } = *self.shape;
        let (per, lanes) = (self.per_word(), self.isa.lanes());
        let head = format.keys_len(kv_heads, dim) + self.kv * format.values_len(dim);
        let mut found = 0;
        let mut add = |at: usize, count: usize, keep: Keep| {
            if count > 0 {
                let values = &self.s.blocks[stretch * (STRETCH / BLOCK) + at / BLOCK][head + at % BLOCK / per * dim..];
                let b = std::array::from_fn(|c| &values[column + c * lanes..]);
                spans[found] = Span { at: at / per * self.words.left(), count, keep, b };
                found += 1;
            }
        };
        for block in keys.start / BLOCK..keys.end.div_ceil(BLOCK) {
            let (from, to) = (keys.start.max(block * BLOCK), keys.end.min((block + 1) * BLOCK));
            let (first, last) = (from.next_multiple_of(per), to / per * per);
            add(from / per * per, usize::from(first > from), Keep::Second);
            add(first, last.saturating_sub(first) / per, Keep::Both);
            add(last, usize::from(to > last && last >= from), Keep::First);
        }
        &spans[..found]
    }

    /// Merges the states of a later stretch into those of the earlier ones.
    fn merge(&self, stretch: usize, sums: &mut [f32], parts: &[f32]) {
        let (dim, state) = (self.shape.dim, self.state());
        let tokens = sums.chunks_exact_mut(self.group * state).zip(parts.chunks_exact(self.group * state));
        for (token, (sums, parts)) in tokens.enumerate().take(self.tokens.len()) {
            let row = token * self.group;
            if self.seen_of(row, stretch).is_empty() {
                continue;
            }
            let first = self.seen(row).start / STRETCH == stretch;
            for (sum, part) in sums.chunks_exact_mut(state).zip(parts.chunks_exact(state)) {
                if first {
                    sum[..dim + 2].copy_from_slice(&part[..dim + 2]);
                    continue;
                }
                // the factors are e^(maximum - common maximum); that of the larger one is 1
                let larger = part[dim] > sum[dim];
                let distance = sum[dim] - part[dim];
                let factor = exp::<false>(if larger { distance } else { -distance });
                let (a, b) = if larger { (factor, 1.0) } else { (1.0, factor) };
                sum[dim] = if larger { part[dim] } else { sum[dim] };
                sum[dim + 1] = sum[dim + 1] * a + part[dim + 1] * b;
                simd::merge(self.isa, &mut sum[..dim], a, &part[..dim], b);
            }
        }
    }

    fn finish(&self, sums: &[f32], out: &Chunks<'_, f32>) {
        let (dim, state) = (self.shape.dim, self.state());
        for (token, sums) in self.tokens.clone().zip(sums.chunks_exact(self.group * state)) {
            let out = out.take((self.s.row + token) * self.shape.kv_heads + self.kv);
            for (out, sum) in out.chunks_exact_mut(dim).zip(sums.chunks_exact(state)) {
                let scale = 1.0 / sum[dim + 1];
                for (out, sum) in out.iter_mut().zip(sum) {
                    *out = sum * scale;
                }
            }
        }
    }
}

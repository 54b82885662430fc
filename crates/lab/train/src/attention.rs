//! Causal grouped-query attention within one sequence and the context before it, in tiles of query
//! rows. The context gets no gradient, because only the base computes it.
//!
//! The forward pass keeps only the log-sum-exp of each row. The backward pass recomputes the
//! probabilities from it, as FlashAttention-2 does (<https://arxiv.org/abs/2307.08691>). A tile of
//! queries `[first, last)` uses only the keys `0..last`, so that blocks above the diagonal are
//! never computed. A sequence's keys and values are packed once per head.

use crate::aligned::Aligned;
use crate::element::{Element, depth};
use crate::panels::Panels;
use crate::product::{Left, Segment, Target, product};
use crate::rope::RopeTable;
use crate::simd;

/// Query rows per tile: a multiple of the rows that the products keep in registers. On tile units
/// they are whole tiles, also as the summed index of the gradients.
fn tile<E: Element>() -> usize {
    if simd::has_tiles::<E>() { 64 } else { 48 }
}
/// Scores of a row are padded to a multiple of this, a cache line of f32.
const PAD: usize = 16;

/// Numbers of heads and their width.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) dim: usize,
}

impl Shape {
    /// Elements of a packed row of queries, keys and values.
    fn ld(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.dim
    }

    fn scale(&self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }

    /// The offsets of the key and the value of a head in a packed row.
    fn offsets(&self, kv: usize) -> (usize, usize) {
        let k = (self.heads + kv) * self.dim;
        (k, k + self.kv_heads * self.dim)
    }

    /// The query heads that share a key head.
    fn group(&self, kv: usize) -> std::ops::Range<usize> {
        let group = self.heads / self.kv_heads;
        kv * group..(kv + 1) * group
    }
}

/// Buffers of one worker.
pub(crate) struct Scratch<E> {
    /// Scores `[tile, longest document]`.
    scores: Aligned<f32>,
    /// The gradient of the probabilities, the same shape.
    dscores: Aligned<f32>,
    /// Rounded probabilities and gradients of scores, the same shape.
    p: Aligned<E>,
    ds: Aligned<E>,
    /// The same, interleaved.
    p_words: Aligned<u32>,
    ds_words: Aligned<u32>,
    /// Queries and gradients of outputs of a tile, interleaved `[tile, dim]`.
    q_words: Aligned<u32>,
    do_words: Aligned<u32>,
    /// The keys of a document as `[dim, L]`, and its values as `[dim, L]` and `[L, dim]`.
    keys_t: Panels,
    values_t: Panels,
    keys: Panels,
    values: Panels,
    /// Results of a tile `[tile, dim]`.
    out: Aligned<f32>,
    /// Gradients of a document's keys and values `[L, dim]`.
    dk: Aligned<f32>,
    dv: Aligned<f32>,
    /// Values per row of a tile.
    sums: Vec<f32>,
    /// The rows of a context and those of the sequence after it.
    joined: Vec<E>,
}

impl<E: Element> Scratch<E> {
    pub(crate) fn new(longest: usize, dim: usize) -> Self {
        let longest = longest.next_multiple_of(PAD);
        let rows = tile::<E>();
        let tile = rows * longest;
        Self {
            scores: Aligned::new(tile),
            dscores: Aligned::new(tile),
            p: Aligned::new(tile),
            ds: Aligned::new(tile),
            p_words: Aligned::new(tile),
            ds_words: Aligned::new(tile),
            q_words: Aligned::new(rows * dim),
            do_words: Aligned::new(rows * dim),
            keys_t: Panels::room::<E>(dim, longest),
            values_t: Panels::room::<E>(dim, longest),
            keys: Panels::room::<E>(longest, dim),
            values: Panels::room::<E>(longest, dim),
            out: Aligned::new(rows * dim),
            dk: Aligned::new(longest * dim),
            dv: Aligned::new(longest * dim),
            sums: vec![0.0; rows],
            joined: Vec::new(),
        }
    }
}

/// What both passes know of a sequence before they begin.
struct Sequence<'a, E> {
    /// Elements of a packed row, and of a row of outputs.
    ld: usize,
    od: usize,
    /// Tokens of the context, and of the sequence after it.
    past: usize,
    len: usize,
    /// The rows of both, one after the other.
    all: &'a [E],
}

impl<'a, E: Element> Sequence<'a, E> {
    fn new(s: Shape, context: &[E], qkv: &'a [E], joined: &'a mut Vec<E>) -> Self {
        let ld = s.ld();
        let all = join(context, qkv, joined);
        Self { ld, od: s.heads * s.dim, past: context.len() / ld, len: qkv.len() / ld, all }
    }
}

/// The rows of `context` and `qkv`, one after the other.
fn join<'a, E: Element>(context: &[E], qkv: &'a [E], joined: &'a mut Vec<E>) -> &'a [E] {
    if context.is_empty() {
        return qkv;
    }
    joined.clear();
    joined.extend_from_slice(context);
    joined.extend_from_slice(qkv);
    joined
}

/// A tile of query rows.
#[derive(Clone, Copy)]
struct Tile {
    first: usize,
    last: usize,
    /// Keys before the sequence.
    past: usize,
    /// Elements of a row of scores.
    ld: usize,
}

impl Tile {
    /// The tiles of a sequence of `len` tokens after `past` others.
    fn all<E: Element>(past: usize, len: usize) -> impl Iterator<Item = Self> {
        let tile = tile::<E>();
        (0..len).step_by(tile).map(move |first| {
            let last = (first + tile).min(len);
            Self { first, last, past, ld: (past + last).next_multiple_of(PAD) }
        })
    }

    /// The keys that its last query sees.
    fn keys(self) -> usize {
        self.past + self.last
    }

    fn rows(self) -> usize {
        self.last - self.first
    }

    /// Elements of a tile of scores.
    fn len(self) -> usize {
        self.rows() * self.ld
    }

    /// `rows[rows, keys] * panels`, with the sum over the tile's keys.
    fn over_keys<'a, E: Element>(self, rows: &'a [E], panels: &'a Panels) -> Segment<'a, E> {
        Segment { left: Left::Rows { data: rows, ld: self.ld }, right: panels.right(), depth: depth::<E>(self.keys()) }
    }
}

/// Forward pass of one sequence of `L` tokens: `qkv` `[L, q + 2 kv]`, after the rows of `context`
/// `[P, q + 2 kv]`, to `out` `[L, q]`. `lse` `[heads, L]` gets the log-sum-exp of each row, for the
/// backward pass.
pub(crate) fn forward<E: Element>(s: Shape, context: &[E], qkv: &[E], out: &mut [E], lse: &mut [f32], w: &mut Scratch<E>) {
    let Sequence { ld, od, past, len, all } = Sequence::new(s, context, qkv, &mut w.joined);
    let dim = s.dim;
    for kv in 0..s.kv_heads {
        let (k, v) = s.offsets(kv);
        w.keys_t.pack_transposed::<E, E>(&all[k..], ld, past + len, dim);
        w.values.pack_rows::<E, E>(&all[v..], ld, past + len, dim);
        for head in s.group(kv) {
            let lse = &mut lse[head * len..(head + 1) * len];
            for tile in Tile::all::<E>(past, len) {
                let rows = tile.rows();
                let (scores, p) = (&mut w.scores[..tile.len()], &mut w.p[..tile.len()]);
                let queries = &qkv[tile.first * ld + head * dim..];
                let target = Target::Store { out: scores, ld: tile.ld };
                product(rows, tile.keys(), 1.0, &[Segment::rows(queries, ld, &w.keys_t)], target);
                let sums = &mut w.sums[..rows];
                simd::softmax_tile(scores, tile.ld, past + tile.first, s.scale(), p, sums, &mut lse[tile.first..tile.last]);
                let target = Target::Store { out: &mut w.out, ld: dim };
                product(rows, dim, 1.0, &[tile.over_keys(p, &w.values)], target);
                simd::divide_rows(&w.out, dim, sums, &mut out[tile.first * od + head * dim..], od);
            }
        }
    }
}

/// The values of one sequence's forward pass that its backward pass needs.
#[derive(Clone, Copy)]
pub(crate) struct Forwarded<'a, E> {
    /// `[P, q + 2 kv]`.
    pub(crate) context: &'a [E],
    /// `[L, q + 2 kv]`.
    pub(crate) qkv: &'a [E],
    /// `[L, q]`.
    pub(crate) out: &'a [E],
    /// `[heads, L]`.
    pub(crate) lse: &'a [f32],
}

/// Backward pass: `dout` `[L, q]` to `dqkv` `[L, q + 2 kv]`, the gradient before the rotation.
#[allow(clippy::too_many_arguments)]
pub(crate) fn backward<E: Element>(
    s: Shape,
    forwarded: Forwarded<'_, E>,
    dout: &[E],
    dqkv: &mut [E],
    rope: &RopeTable,
    positions: &[u32],
    w: &mut Scratch<E>,
) {
    let Forwarded { context, qkv, out, lse } = forwarded;
    let Sequence { ld, od, past, len, all } = Sequence::new(s, context, qkv, &mut w.joined);
    let dim = s.dim;
    for kv in 0..s.kv_heads {
        let (k, v) = s.offsets(kv);
        w.keys_t.pack_transposed::<E, E>(&all[k..], ld, past + len, dim);
        w.values_t.pack_transposed::<E, E>(&all[v..], ld, past + len, dim);
        w.keys.pack_rows::<E, E>(&all[k..], ld, past + len, dim);
        let (dk, dv) = (&mut w.dk[..(past + len) * dim], &mut w.dv[..(past + len) * dim]);
        dk.fill(0.0);
        dv.fill(0.0);
        for head in s.group(kv) {
            let lse = &lse[head * len..(head + 1) * len];
            for tile in Tile::all::<E>(past, len) {
                let (rows, size) = (tile.rows(), tile.len());
                let (queries, column) = (&qkv[tile.first * ld + head * dim..], tile.first * od + head * dim);
                let (o, grad) = (&out[column..], &dout[column..]);
                let (scores, dscores) = (&mut w.scores[..size], &mut w.dscores[..size]);
                let target = Target::Store { out: scores, ld: tile.ld };
                product(rows, tile.keys(), 1.0, &[Segment::rows(queries, ld, &w.keys_t)], target);
                let target = Target::Store { out: dscores, ld: tile.ld };
                product(rows, tile.keys(), 1.0, &[Segment::rows(grad, od, &w.values_t)], target);
                let delta = &mut w.sums[..rows];
                simd::row_dots(o, grad, od, dim, delta);
                let (p, ds) = (&mut w.p[..size], &mut w.ds[..size]);
                simd::gradient_tile(scores, dscores, tile.ld, past + tile.first, s.scale(), &lse[tile.first..tile.last], delta, p, ds);
                simd::interleave(p, tile.ld, rows, tile.ld, &mut w.p_words);
                simd::interleave(ds, tile.ld, rows, tile.ld, &mut w.ds_words);
                simd::interleave(queries, ld, rows, dim, &mut w.q_words);
                simd::interleave(grad, od, rows, dim, &mut w.do_words);
                let outer = |left, right| Segment::<E>::outer(left, tile.ld, right, dim, rows);
                product(tile.keys(), dim, 1.0, &[outer(&w.p_words, &w.do_words)], Target::Add { out: dv, ld: dim });
                product(tile.keys(), dim, 1.0, &[outer(&w.ds_words, &w.q_words)], Target::Add { out: dk, ld: dim });
                let target = Target::Store { out: &mut w.out, ld: dim };
                product(rows, dim, 1.0, &[tile.over_keys(ds, &w.keys)], target);
                let at = &mut dqkv[tile.first * ld + head * dim..];
                let positions = &positions[tile.first..tile.last];
                simd::rotate(&w.out, dim, dim, dim, positions, &rope.cos, &rope.neg_sin, at, ld);
            }
        }
        simd::rotate(&dk[past * dim..], dim, dim, dim, positions, &rope.cos, &rope.neg_sin, &mut dqkv[k..], ld);
        simd::rotate(&dv[past * dim..], dim, 0, dim, positions, &rope.cos, &rope.neg_sin, &mut dqkv[v..], ld);
    }
}

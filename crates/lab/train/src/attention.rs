//! Causal grouped-query attention within one document, in tiles of query rows.
//!
//! The forward pass keeps only the log-sum-exp of each row. The backward pass recomputes the
//! probabilities from it, as FlashAttention-2 does (<https://arxiv.org/abs/2307.08691>). A tile of
//! queries `[first, last)` uses only the keys `0..last`, so that blocks above the diagonal are
//! never computed.

use crate::config::Precision;
use crate::simd::{self, Mat, gemm};

/// Query rows per tile.
pub(crate) const TILE: usize = 64;

/// Numbers of heads and their width; a row of the packed q/k/v matrix has `ld` elements.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) heads: usize,
    pub(crate) kv_heads: usize,
    pub(crate) dim: usize,
    pub(crate) precision: Precision,
}

impl Shape {
    fn ld(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.dim
    }
    fn scale(&self) -> f32 {
        1.0 / (self.dim as f32).sqrt()
    }
    /// Offsets of a query head's q, k and v in a packed row.
    fn offsets(&self, head: usize) -> (usize, usize, usize) {
        let kv = head / (self.heads / self.kv_heads);
        let k = (self.heads + kv) * self.dim;
        (head * self.dim, k, k + self.kv_heads * self.dim)
    }
}

/// Buffers of one worker.
pub(crate) struct Scratch {
    /// Scores, then probabilities: `[TILE, longest document]`.
    scores: Vec<f32>,
    /// Their gradient, the same shape.
    dscores: Vec<f32>,
    /// One value per row of a tile.
    rows: Vec<f32>,
}

impl Scratch {
    pub(crate) fn new(longest: usize) -> Self {
        let tile = vec![0.0; TILE * longest];
        Self { scores: tile.clone(), dscores: tile, rows: vec![0.0; TILE] }
    }
}

/// Forward pass of one document of `L` tokens: `qkv` `[L, q + 2 kv]` to `out` `[L, q]`. `lse`
/// `[heads, L]` gets the log-sum-exp of each row, for the backward pass.
pub(crate) fn forward(s: Shape, qkv: &[f32], out: &mut [f32], lse: &mut [f32], w: &mut Scratch) {
    let (ld, od) = (s.ld(), s.heads * s.dim);
    let len = qkv.len() / ld;
    for head in 0..s.heads {
        let (q, k, v) = s.offsets(head);
        let lse = &mut lse[head * len..(head + 1) * len];
        for first in (0..len).step_by(TILE) {
            let last = (first + TILE).min(len);
            let rows = last - first;
            let scores = &mut w.scores[..rows * last];
            let queries = Mat::rows(&qkv[first * ld + q..], ld);
            let keys = Mat::rows(&qkv[k..], ld);
            gemm(s.precision, (rows, last, s.dim), scores, last, queries, keys.t(), 1.0, false);
            let sums = &mut w.rows[..rows];
            simd::softmax_tile(scores, last, first, s.scale(), sums, &mut lse[first..last]);
            let out = &mut out[first * od + q..];
            let values = Mat::rows(&qkv[v..], ld);
            gemm(s.precision, (rows, s.dim, last), out, od, Mat::rows(scores, last), values, 1.0, false);
            simd::scale_rows(out, od, s.dim, sums);
        }
    }
}

/// Backward pass: `dout` `[L, q]` to `dqkv` `[L, q + 2 kv]`, which is overwritten.
pub(crate) fn backward(s: Shape, qkv: &[f32], out: &[f32], lse: &[f32], dout: &[f32], dqkv: &mut [f32], w: &mut Scratch) {
    let (ld, od) = (s.ld(), s.heads * s.dim);
    let len = qkv.len() / ld;
    for row in dqkv.chunks_exact_mut(ld) {
        row[od..].fill(0.0);
    }
    for head in 0..s.heads {
        let (q, k, v) = s.offsets(head);
        let lse = &lse[head * len..(head + 1) * len];
        for first in (0..len).step_by(TILE) {
            let last = (first + TILE).min(len);
            let rows = last - first;
            let (p, ds) = (&mut w.scores[..rows * last], &mut w.dscores[..rows * last]);
            let delta = &mut w.rows[..rows];
            let queries = Mat::rows(&qkv[first * ld + q..], ld);
            let keys = Mat::rows(&qkv[k..], ld);
            let values = Mat::rows(&qkv[v..], ld);
            let (o, grad) = (&out[first * od + q..], &dout[first * od + q..]);
            gemm(s.precision, (rows, last, s.dim), p, last, queries, keys.t(), 1.0, false);
            simd::probabilities_tile(p, last, first, s.scale(), &lse[first..last]);
            simd::row_dots(o, grad, od, s.dim, delta);
            let grad = Mat::rows(grad, od);
            gemm(s.precision, (rows, last, s.dim), ds, last, grad, values.t(), 1.0, false);
            simd::dscores_tile(p, ds, last, first, s.scale(), delta);
            let (p, ds) = (Mat::rows(p, last), Mat::rows(ds, last));
            gemm(s.precision, (last, s.dim, rows), &mut dqkv[v..], ld, p.t(), grad, 1.0, true);
            gemm(s.precision, (rows, s.dim, last), &mut dqkv[first * ld + q..], ld, ds, keys, 1.0, false);
            gemm(s.precision, (last, s.dim, rows), &mut dqkv[k..], ld, ds.t(), queries, 1.0, true);
        }
    }
}

//! Softmax of rows of attention scores, and its gradient. `simd.rs` compiles each function for
//! every instruction set.

use crate::vecmath::{dot, exp, exp_sum, fma, max};

/// Unnormalised softmax of a tile. Row `r` of `s` (rows `ld` elements apart) has `first + r + 1`
/// valid scores; the others become 0. `sums` gets the row sums, `lse` the log-sum-exp of each row.
#[inline(always)]
pub(crate) fn softmax_tile<const FMA: bool>(s: &mut [f32], ld: usize, first: usize, scale: f32, sums: &mut [f32], lse: &mut [f32]) {
    for (r, ((row, sum), lse)) in s.chunks_exact_mut(ld).zip(sums).zip(lse).enumerate() {
        let (valid, masked) = row.split_at_mut(first + r + 1);
        let top = max(valid) * scale;
        *sum = exp_sum::<FMA>(valid, scale, top);
        *lse = top + sum.ln();
        masked.fill(0.0);
    }
}

/// Probabilities from scores and log-sum-exp; masked ones become 0.
#[inline(always)]
pub(crate) fn probabilities_tile<const FMA: bool>(s: &mut [f32], ld: usize, first: usize, scale: f32, lse: &[f32]) {
    for (r, (row, lse)) in s.chunks_exact_mut(ld).zip(lse).enumerate() {
        let (valid, masked) = row.split_at_mut(first + r + 1);
        for v in valid {
            *v = exp::<FMA>(fma::<FMA>(*v, scale, -lse));
        }
        masked.fill(0.0);
    }
}

/// Converts the gradient of the probabilities to that of the scores: `p * (dp - delta) * scale`.
#[inline(always)]
pub(crate) fn dscores_tile<const FMA: bool>(p: &[f32], ds: &mut [f32], ld: usize, _first: usize, scale: f32, delta: &[f32]) {
    for ((p, ds), delta) in p.chunks_exact(ld).zip(ds.chunks_exact_mut(ld)).zip(delta) {
        for (d, p) in ds.iter_mut().zip(p) {
            *d = p * ((*d - delta) * scale);
        }
    }
}

/// Row-wise dot products: `out[r] = a[r] . b[r]`. Rows have `dim` elements, `ld` elements apart.
#[inline(always)]
pub(crate) fn row_dots<const FMA: bool>(a: &[f32], b: &[f32], ld: usize, dim: usize, out: &mut [f32]) {
    for (r, out) in out.iter_mut().enumerate() {
        let at = r * ld;
        *out = dot::<FMA>(&a[at..at + dim], &b[at..at + dim]);
    }
}

/// Divides each row by its sum. Rows have `dim` elements, `ld` elements apart.
#[inline(always)]
pub(crate) fn scale_rows<const FMA: bool>(x: &mut [f32], ld: usize, dim: usize, sums: &[f32]) {
    for (r, sum) in sums.iter().enumerate() {
        let k = 1.0 / sum;
        for v in &mut x[r * ld..r * ld + dim] {
            *v *= k;
        }
    }
}

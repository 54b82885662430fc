//! Softmax of rows of attention scores, and its gradient. `simd.rs` compiles each function for
//! every instruction set.

use crate::element::Element;
use crate::vecmath::{LANES, exp, exp_sum, fma, fold, max};

/// Unnormalised softmax of a tile. Row `r` of `s` (rows `ld` elements apart) has `first + r + 1`
/// valid scores, which are overwritten; the others count as `-inf`. `p` has the same shape. `sums`
/// gets the row sums, `lse` the log-sum-exp of each row.
#[inline(always)]
pub(crate) fn softmax_tile<const FMA: bool, E: Element>(
    s: &mut [f32],
    ld: usize,
    first: usize,
    scale: f32,
    p: &mut [E],
    sums: &mut [f32],
    lse: &mut [f32],
) {
    let rows = s.chunks_exact_mut(ld).zip(p.chunks_exact_mut(ld)).zip(sums).zip(lse);
    for (r, (((row, p), sum), lse)) in rows.enumerate() {
        let valid = &mut row[..first + r + 1];
        let top = max(valid) * scale;
        *sum = exp_sum::<FMA>(valid, scale, top);
        *lse = top + sum.ln();
        let (kept, masked) = p.split_at_mut(first + r + 1);
        for (p, v) in kept.iter_mut().zip(&*valid) {
            *p = E::round(*v);
        }
        masked.fill(E::default());
    }
}

/// From scores `s`, log-sum-exp and the gradient `ds` of the probabilities: the probabilities
/// `p_out`, and the gradient `ds_out = p * (ds - delta) * scale` of the scores. All have the same
/// shape (rows `ld` elements apart); masked elements become 0. `s` is overwritten.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn gradient_tile<const FMA: bool, E: Element>(
    s: &mut [f32],
    ds: &[f32],
    ld: usize,
    first: usize,
    scale: f32,
    lse: &[f32],
    delta: &[f32],
    p_out: &mut [E],
    ds_out: &mut [E],
) {
    let rows = s.chunks_exact_mut(ld).zip(ds.chunks_exact(ld)).zip(p_out.chunks_exact_mut(ld)).zip(ds_out.chunks_exact_mut(ld));
    for (r, ((((s, ds), p), out), (lse, delta))) in rows.zip(lse.iter().zip(delta)).enumerate() {
        let valid = first + r + 1;
        let s = &mut s[..valid];
        for v in s.iter_mut() {
            *v = exp::<FMA>(fma::<FMA>(*v, scale, -lse));
        }
        for (p, v) in p.iter_mut().zip(&*s) {
            *p = E::round(*v);
        }
        for ((out, v), d) in out.iter_mut().zip(&*s).zip(ds) {
            *out = E::round(v * ((d - delta) * scale));
        }
        p[valid..].fill(E::default());
        out[valid..].fill(E::default());
    }
}

/// Row-wise dot products: `out[r] = a[r] . b[r]`. Rows have `dim` elements, `ld` elements apart.
#[inline(always)]
pub(crate) fn row_dots<const FMA: bool, E: Element>(a: &[E], b: &[E], ld: usize, dim: usize, out: &mut [f32]) {
    for (r, out) in out.iter_mut().enumerate() {
        let at = r * ld;
        let mut acc = [0.0f32; LANES];
        let (a, a_tail) = a[at..at + dim].as_chunks::<LANES>();
        let (b, b_tail) = b[at..at + dim].as_chunks::<LANES>();
        for (a, b) in a.iter().zip(b) {
            for i in 0..LANES {
                acc[i] = fma::<FMA>(a[i].widen(), b[i].widen(), acc[i]);
            }
        }
        *out = fold(acc, |x, y| x + y);
        for (a, b) in a_tail.iter().zip(b_tail) {
            *out = fma::<FMA>(a.widen(), b.widen(), *out);
        }
    }
}

/// Divides each row of `x` `[rows, dim]` by its sum, into rows of `out`, `ld` elements apart.
#[inline(always)]
pub(crate) fn divide_rows<const FMA: bool, E: Element>(x: &[f32], dim: usize, sums: &[f32], out: &mut [E], ld: usize) {
    for ((x, out), sum) in x.chunks_exact(dim).zip(out.chunks_mut(ld)).zip(sums) {
        let k = 1.0 / sum;
        for (out, x) in out[..dim].iter_mut().zip(x) {
            *out = E::round(x * k);
        }
    }
}

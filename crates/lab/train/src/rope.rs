//! Rotary position embedding (<https://arxiv.org/abs/2104.09864>) in Hugging Face's layout: element
//! `i` of a head is rotated with element `i + dim / 2`.

use crate::element::Element;

/// Cosines and sines for every position.
pub(crate) struct RopeTable {
    /// `[positions, dim / 2]`.
    pub(crate) cos: Vec<f32>,
    /// `[positions, dim / 2]`.
    pub(crate) sin: Vec<f32>,
    /// `-sin`, for the inverse rotation, which is the gradient.
    pub(crate) neg_sin: Vec<f32>,
}

impl RopeTable {
    pub(crate) fn new(positions: usize, dim: usize, theta: f64) -> Self {
        let half = dim / 2;
        let angles = (0..positions * half).map(|i| {
            let (p, j) = (i / half, i % half);
            p as f64 / theta.powf(2.0 * j as f64 / dim as f64)
        });
        let cos = angles.clone().map(|a| a.cos() as f32).collect();
        let sin: Vec<f32> = angles.map(|a| a.sin() as f32).collect();
        let neg_sin = sin.iter().map(|s| -s).collect();
        Self { cos, sin, neg_sin }
    }
}

/// Rotates the first `turned` elements, in heads of `dim`, of every row of `x` `[T, width]`, and
/// rounds all to rows of `out`, which are `ld` elements apart. For the halves `a`, `b` of a head:
/// `a' = a cos - b sin`, `b' = b cos + a sin`.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(crate) fn rotate<const FMA: bool, E: Element>(
    x: &[f32],
    width: usize,
    turned: usize,
    dim: usize,
    positions: &[u32],
    cos: &[f32],
    sin: &[f32],
    out: &mut [E],
    ld: usize,
) {
    let half = dim / 2;
    for ((x, out), p) in x.chunks_exact(width).zip(out.chunks_mut(ld)).zip(positions) {
        let p = *p as usize * half;
        let (cos, sin) = (&cos[p..p + half], &sin[p..p + half]);
        let (heads, plain) = x.split_at(turned);
        let (out_heads, out_plain) = out[..width].split_at_mut(turned);
        for (head, out) in heads.chunks_exact(dim).zip(out_heads.chunks_exact_mut(dim)) {
            let (a, b) = head.split_at(half);
            let (out_a, out_b) = out.split_at_mut(half);
            for ((((a, b), c), s), out) in a.iter().zip(b).zip(cos).zip(sin).zip(out_a) {
                *out = E::round(a * c - b * s);
            }
            for ((((a, b), c), s), out) in a.iter().zip(b).zip(cos).zip(sin).zip(out_b) {
                *out = E::round(b * c + a * s);
            }
        }
        for (x, out) in plain.iter().zip(out_plain) {
            *out = E::round(*x);
        }
    }
}

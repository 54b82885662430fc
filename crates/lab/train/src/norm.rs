//! RMSNorm (<https://arxiv.org/abs/1910.07467>): `y = x / sqrt(mean(x^2) + eps) * w` for each row.

use crate::element::Element;
use crate::vecmath::{LANES, dot, fma, fold};

/// Forward pass: `x` `[T, C]` to `y` `[T, C]`. `rstd` `[T]` gets the reciprocal roots of the mean
/// squares, for the backward pass.
#[inline(always)]
pub(crate) fn forward<const FMA: bool, E: Element>(x: &[f32], w: &[f32], eps: f32, y: &mut [E], rstd: &mut [f32]) {
    let c = w.len();
    for ((x, y), r) in x.chunks_exact(c).zip(y.chunks_exact_mut(c)).zip(rstd) {
        *r = 1.0 / (dot::<FMA>(x, x) / c as f32 + eps).sqrt();
        for ((y, x), w) in y.iter_mut().zip(x).zip(w) {
            *y = E::round(x * *r * w);
        }
    }
}

/// Backward pass from `dy` `[T, C]`. Adds the gradient of `x` to `dx` `[T, C]`, and that of `w` to
/// `dw` `[C]`. `dw` is empty if the weight is frozen.
#[inline(always)]
pub(crate) fn backward<const FMA: bool>(dy: &[f32], x: &[f32], w: &[f32], rstd: &[f32], dx: &mut [f32], dw: &mut [f32]) {
    let c = w.len();
    let rows = dy.chunks_exact(c).zip(x.chunks_exact(c)).zip(dx.chunks_exact_mut(c)).zip(rstd);
    for (((dy, x), dx), r) in rows {
        let mut acc = [0.0f32; LANES];
        let (dy16, dy_tail) = dy.as_chunks::<LANES>();
        let (x16, x_tail) = x.as_chunks::<LANES>();
        let (w16, w_tail) = w.as_chunks::<LANES>();
        for ((dy, x), w) in dy16.iter().zip(x16).zip(w16) {
            for i in 0..LANES {
                acc[i] = fma::<FMA>(dy[i] * w[i], x[i], acc[i]);
            }
        }
        let mut sum = fold(acc, |a, b| a + b);
        for ((dy, x), w) in dy_tail.iter().zip(x_tail).zip(w_tail) {
            sum = fma::<FMA>(dy * w, *x, sum);
        }
        let k = -sum * r * r * r / c as f32;
        for (((dx, dy), x), w) in dx.iter_mut().zip(dy).zip(x).zip(w) {
            *dx += fma::<FMA>(*x, k, dy * w * *r);
        }
        for ((dw, dy), x) in dw.iter_mut().zip(dy).zip(x) {
            *dw = fma::<FMA>(dy * x, *r, *dw);
        }
    }
}

//! Elementwise operations between the matrix products: one row at a time, on the calling thread.

use crate::exp::exp;
use crate::lanes::{LANES, reduce};
use crate::simd::{self, Isa};

/// Root-mean-square normalisation: `y = x / sqrt(mean(x^2) + eps) * weight`, for rows as long as `weight`.
///
/// # Panics
/// If `x` is not whole rows, or `y` is not as long as `x`.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "as many outputs as inputs");
    if weight.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(weight.len()), "{} numbers are no whole rows of {}", x.len(), weight.len());
    simd::rms_norm(Isa::get(), x, weight, eps, y);
}

#[inline(always)]
pub(crate) fn rms_norm_rows<const FMA: bool>(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    for (x, y) in x.chunks_exact(weight.len()).zip(y.chunks_exact_mut(weight.len())) {
        let scale = 1.0 / (sum_squares(x) / weight.len() as f32 + eps).sqrt();
        for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
            *y = x * scale * w;
        }
    }
}

#[inline(always)]
fn sum_squares(x: &[f32]) -> f32 {
    let mut acc = [0f32; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc += x * x;
        }
    }
    for (acc, x) in acc.iter_mut().zip(rest) {
        *acc += x * x;
    }
    reduce(acc, |a, b| a + b)
}

/// `silu(gate) * up` of rows `[gate (width) | up (width)]`.
///
/// # Panics
/// If `gate_up` is not twice as long as `y`, or `y` is not whole rows.
pub fn swiglu(gate_up: &[f32], width: usize, y: &mut [f32]) {
    assert_eq!(gate_up.len(), 2 * y.len(), "two inputs for an output");
    if width == 0 {
        return;
    }
    assert!(y.len().is_multiple_of(width), "{} numbers are no whole rows of {width}", y.len());
    simd::swiglu(Isa::get(), gate_up, width, y);
}

#[inline(always)]
pub(crate) fn swiglu_rows<const FMA: bool>(gate_up: &[f32], width: usize, y: &mut [f32]) {
    for (row, y) in gate_up.chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for ((y, g), u) in y.iter_mut().zip(gate).zip(up) {
            *y = g / (1.0 + exp::<FMA>(-g)) * u;
        }
    }
}

/// `x += y`.
///
/// # Panics
/// If they are not equally long.
pub fn add(x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len(), "as many numbers to add as there are");
    simd::add(Isa::get(), x, y);
}

#[inline(always)]
pub(crate) fn add_rows<const FMA: bool>(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// Rotary position embedding of the first `heads * dim` numbers of each row of `stride`: within a head, number `i` is
/// paired with `i + dim / 2`. `cos` and `sin` are `[rows, dim / 2]`.
///
/// # Panics
/// If `dim` is odd, the heads do not fit in a row, or the lengths do not agree.
pub fn rotate(x: &mut [f32], stride: usize, heads: usize, dim: usize, cos: &[f32], sin: &[f32]) {
    if x.is_empty() || heads == 0 || dim == 0 {
        return;
    }
    let half = dim / 2;
    assert!(
        dim.is_multiple_of(2) && heads.checked_mul(dim).is_some_and(|width| width <= stride),
        "{heads} heads of {dim} do not fit in rows of {stride}"
    );
    assert!(x.len().is_multiple_of(stride), "{} numbers are no whole rows of {stride}", x.len());
    let rows = x.len() / stride;
    assert!(cos.len() == rows * half && sin.len() == rows * half, "cos and sin for {rows} rows of {half}");
    if half > 0 {
        simd::rotate(Isa::get(), x, stride, heads, dim, cos, sin);
    }
}

#[inline(always)]
pub(crate) fn rotate_rows<const FMA: bool>(x: &mut [f32], stride: usize, heads: usize, dim: usize, cos: &[f32], sin: &[f32]) {
    let half = dim / 2;
    for ((row, cos), sin) in x.chunks_exact_mut(stride).zip(cos.chunks_exact(half)).zip(sin.chunks_exact(half)) {
        for head in row[..heads * dim].chunks_exact_mut(dim) {
            let (a, b) = head.split_at_mut(half);
            for (((a, b), c), s) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
            }
        }
    }
}

//! Elementwise operations between the matrix products: one row at a time, on the calling thread.

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

/// `x += y`.
///
/// # Panics
/// If they are not equally long.
pub fn add(x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len(), "as many numbers to add as there are");
    simd::add(Isa::get(), x, y);
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

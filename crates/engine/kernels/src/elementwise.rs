//! Elementwise operations between matrix products and sums over a row, on the calling thread.

use crate::simd::{self, Isa};

/// RMSNorm (<https://arxiv.org/abs/1910.07467>): `y = x / sqrt(mean(x^2) + eps) * weight`. `x` and
/// `y` are `[rows, weight.len()]`.
///
/// # Panics
/// If `x` is not a whole number of rows, or `y` differs from `x` in length.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "as many outputs as inputs");
    if weight.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(weight.len()), "{} numbers are no whole rows of {}", x.len(), weight.len());
    simd::rms_norm(Isa::get(), x, weight, eps, y);
}

/// Layer normalisation (<https://arxiv.org/abs/1607.06450>):
/// `y = (x - mean(x)) / sqrt(variance(x) + eps) * weight + bias`. `x` and `y` are
/// `[rows, weight.len()]`.
///
/// # Panics
/// If `x` is not a whole number of rows, `y` differs from `x` in length, or `bias` from `weight`.
pub fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, y: &mut [f32]) {
    assert_eq!(x.len(), y.len(), "as many outputs as inputs");
    assert_eq!(weight.len(), bias.len(), "a bias for each weight");
    if weight.is_empty() {
        return;
    }
    assert!(x.len().is_multiple_of(weight.len()), "{} numbers are no whole rows of {}", x.len(), weight.len());
    simd::layer_norm(Isa::get(), x, weight, bias, eps, y);
}

/// GELU (<https://arxiv.org/abs/1606.08415>) with the error function: `x = x / 2 * (1 + erf(x /
/// sqrt(2)))`, within 3e-7 times the larger of 1 and `|x|`.
pub fn gelu(x: &mut [f32]) {
    simd::gelu(Isa::get(), x);
}

/// Softmax of each row of `width` numbers: `x = e^x / sum_i e^x[i]`.
///
/// # Panics
/// If `x` is not a whole number of rows.
pub fn softmax(x: &mut [f32], width: usize) {
    if x.is_empty() {
        return;
    }
    assert!(width > 0 && x.len().is_multiple_of(width), "{} numbers are no whole rows of {width}", x.len());
    simd::softmax_rows(Isa::get(), x, width);
}

/// SwiGLU (<https://arxiv.org/abs/2002.05202>): `y = silu(gate) * up`. `gate_up` is
/// `[rows, 2 * width]`, gate before up; `y` is `[rows, width]`.
///
/// # Panics
/// If `gate_up` is not twice as long as `y`, or `y` is not a whole number of rows.
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
/// If the lengths differ.
pub fn add(x: &mut [f32], y: &[f32]) {
    assert_eq!(x.len(), y.len(), "as many numbers to add as there are");
    simd::add(Isa::get(), x, y);
}

/// `ln(sum_i e^x[i])`: the logarithm of what softmax divides by. NaN counts as minus infinity, since
/// sampling never chooses it either; minus infinity if nothing else is there.
pub fn log_sum_exp(x: &[f32]) -> f64 {
    simd::log_sum_exp(Isa::get(), x)
}

/// Rotary position embedding (<https://arxiv.org/abs/2104.09864>) of the first `heads * dim`
/// elements of each row of `stride` elements, in place. Within a head, element `i` is rotated with
/// element `i + dim / 2`. `cos` and `sin` are `[rows, dim / 2]`.
///
/// # Panics
/// If `dim` is odd, the heads do not fit in a row, or the lengths are inconsistent.
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

//! SwiGLU (<https://arxiv.org/abs/2002.05202>): `act = silu(gate) * up`. A row has gate, then up.

use crate::vecmath::exp;

/// Forward pass: `gate_up` `[T, 2 I]` to `act` `[T, I]`.
#[inline(always)]
pub(crate) fn swiglu<const FMA: bool>(gate_up: &[f32], act: &mut [f32], inner: usize) {
    for (gu, act) in gate_up.chunks_exact(2 * inner).zip(act.chunks_exact_mut(inner)) {
        let (gate, up) = gu.split_at(inner);
        for ((a, g), u) in act.iter_mut().zip(gate).zip(up) {
            *a = g / (1.0 + exp::<FMA>(-g)) * u;
        }
    }
}

/// Backward pass. On entry `act` `[T, I]` is the gradient of the activation. On return `gate_up`
/// `[T, 2 I]` is its own gradient, and `act` is the activation, which the weight gradient needs.
#[inline(always)]
pub(crate) fn swiglu_backward<const FMA: bool>(gate_up: &mut [f32], act: &mut [f32], inner: usize) {
    for (gu, act) in gate_up.chunks_exact_mut(2 * inner).zip(act.chunks_exact_mut(inner)) {
        let (gate, up) = gu.split_at_mut(inner);
        for ((a, g), u) in act.iter_mut().zip(gate).zip(up) {
            let (dy, x, y) = (*a, *g, *u);
            let s = 1.0 / (1.0 + exp::<FMA>(-x));
            let silu = x * s;
            *a = silu * y;
            *u = dy * silu;
            *g = dy * y * (s + silu * (1.0 - s));
        }
    }
}

//! SwiGLU (<https://arxiv.org/abs/2002.05202>): `act = silu(gate) * up`. A row has gate, then up.

use crate::element::Element;
use crate::vecmath::{LANES, exp};

/// Forward pass: `gate_up` `[T, 2 I]` to `act` `[T, I]`.
#[inline(always)]
pub(crate) fn swiglu<const FMA: bool, E: Element>(gate_up: &[E], act: &mut [E], inner: usize) {
    for (gu, act) in gate_up.chunks_exact(2 * inner).zip(act.chunks_exact_mut(inner)) {
        let (gate, up) = gu.split_at(inner);
        for ((a, g), u) in act.iter_mut().zip(gate).zip(up) {
            let (g, u) = (g.widen(), u.widen());
            *a = E::round(g / (1.0 + exp::<FMA>(-g)) * u);
        }
    }
}

/// Backward pass. On entry `act` `[T, I]` is the gradient of the activation. On return `gate_up`
/// `[T, 2 I]` is its own gradient, and `act` is the activation, which the weight gradient needs.
#[inline(always)]
pub(crate) fn swiglu_backward<const FMA: bool, E: Element>(gate_up: &mut [E], act: &mut [E], inner: usize) {
    for (gu, act) in gate_up.chunks_exact_mut(2 * inner).zip(act.chunks_exact_mut(inner)) {
        let (gate, up) = gu.split_at_mut(inner);
        // chunks of known length: three zipped mutable slices are not vectorised
        let (act, act_tail) = act.as_chunks_mut::<LANES>();
        let (gate, gate_tail) = gate.as_chunks_mut::<LANES>();
        let (up, up_tail) = up.as_chunks_mut::<LANES>();
        for ((a, g), u) in act.iter_mut().zip(gate).zip(up) {
            let (mut da, mut dg, mut du) = (*a, *g, *u);
            for i in 0..LANES {
                (da[i], dg[i], du[i]) = gradient::<FMA, E>(da[i], dg[i], du[i]);
            }
            (*a, *g, *u) = (da, dg, du);
        }
        for ((a, g), u) in act_tail.iter_mut().zip(gate_tail).zip(up_tail) {
            (*a, *g, *u) = gradient::<FMA, E>(*a, *g, *u);
        }
    }
}

/// The activation, and the gradients of gate and up, from the gradient `dy` of the activation.
#[inline(always)]
fn gradient<const FMA: bool, E: Element>(dy: E, gate: E, up: E) -> (E, E, E) {
    let (dy, gate, up) = (dy.widen(), gate.widen(), up.widen());
    let s = 1.0 / (1.0 + exp::<FMA>(-gate));
    let silu = gate * s;
    (E::round(silu * up), E::round(dy * up * (s + silu * (1.0 - s))), E::round(dy * silu))
}

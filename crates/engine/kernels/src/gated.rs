//! The first half of a gated feed-forward network.

use crate::linear::{check, effective, first_products, linear, second_products};
use crate::simd::{self, Isa, Weights};
use crate::{Format, Inputs, LowRank, Part, Team};

/// Buffers of [`gated`], which are reused.
#[derive(Debug, Default)]
pub struct GatedBuffers {
    gate_up: Vec<f32>,
    act: Vec<f32>,
}

/// SwiGLU (<https://arxiv.org/abs/2002.05202>) of two products: `silu(x G^T) * (x U^T)`, each with
/// its bias, which become the inputs `to` of the product after it. Gate is before up: the columns
/// of the first part and of `updates` begin with its outputs. `next` and `updated`: the format, and
/// whether the rows are kept in f32, as for [`Inputs::set_with`].
///
/// The numbers are those of [`linear`], [`swiglu`](crate::swiglu) and [`Inputs::set_with`] in turn,
/// to the bit.
///
/// # Panics
/// As for [`linear`], or if the two parts differ in format or shape.
#[allow(clippy::too_many_arguments)] // two products and their target
pub fn gated(
    team: &Team,
    x: &Inputs,
    parts: &[Part<'_>; 2],
    updates: &[LowRank<'_>],
    buffers: &mut GatedBuffers,
    to: &mut Inputs,
    next: Format,
    updated: bool,
) {
    let [gate, up] = parts;
    let (format, units) = (gate.weight.format(), gate.weight.rows());
    assert!(up.weight.rows() == units && up.weight.format() == format, "two parts of one shape");
    assert!(gate.column == 0 && up.column == units, "gate before up");
    check(x, parts, updates, 2 * units);
    let isa = Isa::get();
    if next == format && simd::gates_on_tiles(isa, format, x.rows(), units) {
        let updates = effective(updates);
        let (inner, lines) = first_products(team, isa, x, &updates);
        let second = second_products(&updates, &inner, lines);
        let gates = parts.map(|p| (Weights::new(&p.weight), p.bias));
        return simd::gated(team, isa, x.packed(), gates, &second, to.room_for_tiles(isa, format, x.rows(), units, updated));
    }
    let GatedBuffers { gate_up, act } = buffers;
    gate_up.resize(x.rows() * 2 * units, 0.0);
    act.resize(x.rows() * units, 0.0);
    linear(team, x, parts, updates, gate_up, 2 * units);
    team.rows(act, units, &|row, act| simd::swiglu(isa, &gate_up[2 * row * units..][..2 * act.len()], units, act));
    to.set_with(team, next, act, units, updated);
}

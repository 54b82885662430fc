//! Products of many rows in bf16: inputs are the first operand, and weights the second one. They
//! are transposed once for all inputs, and sums are rows of the outputs.

use super::{Inputs, ROW, SIDE, Square, Tiles, bias, columns, inputs};
use crate::line::Line;
use crate::simd::panel::Panel;
use crate::simd::{prefetch, prefetch_near};

/// Steps before they are used for which inputs are requested from the second-level cache.
const SOON: usize = 2;

/// The shapes of all eight tiles: 0 to 3 are sums (inputs `i / 2`, weights `i % 2`), 4 and 5 are
/// inputs, 6 and 7 are weights.
fn shapes(inputs: [usize; 2]) -> [(usize, usize); 8] {
    let [first, second] = inputs.map(|rows| (rows, ROW));
    [first, first, second, second, first, second, (SIDE, ROW), (SIDE, ROW)]
}

/// All products of a panel.
///
/// # Safety
/// As for [`super::run`]; the machine must have the instructions of `T`.
#[inline(always)]
pub(super) unsafe fn products<T: Tiles>(unit: &mut T, p: &Panel) {
    let steps = p.row_bytes.div_ceil(ROW);
    // of each step two tiles
    let mut near = vec![Line::default(); steps * 2 * SIDE];
    // each step of a block requests its share of the next weights
    let next = 2 * SIDE * p.row_bytes;
    let pace = next.div_ceil(ROW * steps.max(1) * p.tokens.div_ceil(2 * SIDE).max(1));
    let mut configured = None;
    for row in (0..p.rows).step_by(2 * SIDE) {
        // SAFETY: the rows are in the panel, and `near` has room for two tiles of each step.
        unsafe { transpose_weights::<T>(p, row, &mut near) };
        let two = p.rows - row > SIDE;
        let mut soon = p.weights.wrapping_add((row + 2 * SIDE) * p.row_bytes);
        let pace = if row + 2 * SIDE < p.rows { pace } else { 0 };
        for first in (0..p.tokens).step_by(2 * SIDE) {
            let x = inputs(p, first);
            if configured != Some(x.rows) {
                // SAFETY: as for the caller.
                unsafe { unit.configure_each(&shapes(columns(&x))) };
                configured = Some(x.rows);
            }
            // SAFETY: the groups and rows are in the panel.
            unsafe {
                match (x.rows[1] > 0, two) {
                    (true, true) => block::<T, 2, 2>(unit, p, &x, row, &near, soon, pace),
                    (true, false) => block::<T, 2, 1>(unit, p, &x, row, &near, soon, pace),
                    (false, true) => block::<T, 1, 2>(unit, p, &x, row, &near, soon, pace),
                    (false, false) => block::<T, 1, 1>(unit, p, &x, row, &near, soon, pace),
                }
            }
            soon = soon.wrapping_add(steps * pace * ROW);
        }
    }
}

/// Transposes up to 32 weight rows from `row` on: for every step two tiles, whose missing rows and
/// columns are zero.
///
/// # Safety
/// As for [`products`].
#[inline(always)]
unsafe fn transpose_weights<T: Tiles>(p: &Panel, row: usize, near: &mut [Line]) {
    for (at, tile) in near.as_chunks_mut::<SIDE>().0.iter_mut().enumerate() {
        let (step, row) = (at / 2, row + at % 2 * SIDE);
        let (rows, bytes) = (p.rows.saturating_sub(row).min(SIDE), (p.row_bytes - step * ROW).min(ROW));
        let from = p.weights.wrapping_add(row * p.row_bytes + step * ROW);
        // SAFETY: the rows are in the panel and have these bytes; parts are copied to a whole tile.
        unsafe {
            if rows == SIDE && bytes == ROW {
                T::transpose_rows(from, p.row_bytes, tile);
                continue;
            }
            let mut whole: Square = [[0; SIDE]; SIDE];
            for (i, whole) in whole.iter_mut().enumerate().take(rows) {
                std::ptr::copy_nonoverlapping(from.add(i * p.row_bytes), whole.as_mut_ptr().cast(), bytes);
            }
            T::transpose_rows(whole.as_ptr().cast(), ROW, tile);
        }
    }
}

/// `R` groups of input rows and `C` tiles of weight rows from `row` on. At each step `pace` lines
/// from `soon` on are requested.
///
/// # Safety
/// As for [`products`]; `near` must have the weight rows.
#[inline(always)]
unsafe fn block<T: Tiles, const R: usize, const C: usize>(
    unit: &mut T,
    p: &Panel,
    x: &Inputs,
    row: usize,
    near: &[Line],
    mut soon: *const u8,
    pace: usize,
) {
    // SAFETY: the input rows and weight rows are in the panel; tiles have the shapes of `shapes`.
    unsafe {
        unit.zero::<0>();
        unit.zero::<1>();
        unit.zero::<2>();
        unit.zero::<3>();
        for (step, weights) in near.as_chunks::<{ 2 * SIDE }>().0.iter().enumerate() {
            let a = [x.start[0].add(step * ROW * x.rows[0]), x.start[1].wrapping_add(step * ROW * x.rows[1])];
            for _ in 0..pace {
                prefetch_near(soon);
                soon = soon.wrapping_add(ROW);
            }
            for i in 0..SIDE {
                prefetch(a[0].wrapping_add(SOON * ROW * x.rows[0] + i * ROW));
                if R > 1 {
                    prefetch(a[1].wrapping_add(SOON * ROW * x.rows[1] + i * ROW));
                }
            }
            let b: *const u8 = weights.as_ptr().cast();
            unit.load::<4>(a[0], ROW);
            unit.load::<6>(b, ROW);
            unit.add_bf16::<0, 4, 6>();
            if C > 1 {
                unit.load::<7>(b.add(SIDE * ROW), ROW);
                unit.add_bf16::<1, 4, 7>();
            }
            if R > 1 {
                unit.load::<5>(a[1], ROW);
                unit.add_bf16::<2, 5, 6>();
                if C > 1 {
                    unit.add_bf16::<3, 5, 7>();
                }
            }
        }
        let weights = p.rows - row;
        sums::<T, 0>(unit, p, x.first, x.rows[0], row, weights.min(SIDE));
        if C > 1 {
            sums::<T, 1>(unit, p, x.first, x.rows[0], row + SIDE, (weights - SIDE).min(SIDE));
        }
        if R > 1 {
            sums::<T, 2>(unit, p, x.first + SIDE, x.rows[1], row, weights.min(SIDE));
            if C > 1 {
                sums::<T, 3>(unit, p, x.first + SIDE, x.rows[1], row + SIDE, (weights - SIDE).min(SIDE));
            }
        }
    }
}

/// Writes the sums of a tile to the outputs of `inputs` input rows and `weights` weight rows.
///
/// # Safety
/// As for [`block`].
#[inline(always)]
unsafe fn sums<T: Tiles, const TILE: usize>(unit: &mut T, p: &Panel, input: usize, inputs: usize, row: usize, weights: usize) {
    // SAFETY: the outputs have these rows; the tile has `inputs` rows of 16 numbers.
    unsafe {
        let out = p.out.add(input * p.width + row);
        if p.bias.is_null() && weights == SIDE {
            return unit.store::<TILE>(out.cast(), 4 * p.width);
        }
        let mut square: Square = [[0; SIDE]; SIDE];
        unit.store::<TILE>(square.as_mut_ptr().cast(), ROW);
        let bias = bias::<T>(p, row, weights);
        for (i, square) in square.iter().enumerate().take(inputs) {
            T::write(out.add(i * p.width), weights, square, &bias);
        }
    }
}

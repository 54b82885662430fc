//! Products of a few rows: weights are read where they lie, once from memory. Those in Q8_0 become
//! bf16 a step before they are used.

use super::weights::{WeightTile, step_bytes};
use super::{Inputs, ROW, SIDE, Shapes, Tiles, bias, columns, inputs};
use crate::line::Line;
use crate::simd::panel::Panel;
use crate::simd::prefetch_near;

/// Weights that stay in the second-level cache while all inputs are computed, in bytes. Chosen for
/// a cache of 2 MiB, not measured.
const NEAR: usize = 512 << 10;
/// Bytes of a task's first weights that are requested before they are used.
const FIRST: usize = 32 << 10;

/// All products of a panel; `BYTES`: whether its weights are in Q8_0.
///
/// # Safety
/// As for [`super::run`]; the machine must have the instructions of `T`.
#[inline(always)]
pub(super) unsafe fn products<T: Tiles, const BYTES: bool>(unit: &mut T, p: &Panel) {
    let stretch = (NEAR / p.row_bytes.max(1)).max(1).next_multiple_of(2 * SIDE);
    let mut configured = None;
    for from in (0..p.rows).step_by(stretch) {
        let to = (from + stretch).min(p.rows);
        for first in (0..p.tokens).step_by(2 * SIDE) {
            let x = inputs(p, first);
            let shapes = Shapes { bytes: ROW, inputs: columns(&x) };
            if configured != Some(shapes) {
                // SAFETY: as for the caller.
                unsafe { unit.configure(shapes) };
                configured = Some(shapes);
            }
            for row in (from..to).step_by(2 * SIDE) {
                // SAFETY: the groups and rows are in the panel.
                unsafe {
                    match (to - row > SIDE, x.rows[1] > 0) {
                        (true, true) => block::<T, 2, 2, BYTES>(unit, p, &x, row),
                        (true, false) => block::<T, 2, 1, BYTES>(unit, p, &x, row),
                        (false, true) => block::<T, 1, 2, BYTES>(unit, p, &x, row),
                        (false, false) => block::<T, 1, 1, BYTES>(unit, p, &x, row),
                    }
                }
            }
        }
    }
}

/// `R` tiles of weight rows from `row` on and `C` groups of input rows.
///
/// # Safety
/// As for [`products`]. The last tile of weight rows may be incomplete.
#[inline(always)]
unsafe fn block<T: Tiles, const R: usize, const C: usize, const BYTES: bool>(unit: &mut T, p: &Panel, x: &Inputs, row: usize) {
    let weights = [WeightTile::new(p, row), WeightTile::new(p, row + SIDE)];
    let step_bytes = step_bytes(p.format);
    let steps = p.row_bytes.div_ceil(step_bytes);
    // two steps of two tiles
    let mut staged = [[[Line::default(); SIDE]; 2]; 2];
    let cold = x.first == 0;
    // Behind the panel another thread's rows may begin.
    let more = cold && row + R * SIDE < p.rows;
    // SAFETY: weight rows `row..` and the input rows are in the panel; tiles have the shapes of
    // `Shapes`.
    unsafe {
        unit.zero::<0>();
        unit.zero::<1>();
        unit.zero::<2>();
        unit.zero::<3>();
        if cold && row == 0 {
            for at in (0..(R * SIDE * p.row_bytes).min(FIRST)).step_by(ROW) {
                prefetch_near(p.weights.wrapping_add(at));
            }
        }
        // the weights of the next tiles
        let mut soon = p.weights.wrapping_add((row + R * SIDE) * p.row_bytes);
        if BYTES {
            for i in 0..R {
                weights[i].dequantize::<T>(0, &mut staged[0][i], std::ptr::null());
            }
        }
        for step in 0..steps {
            if BYTES && step + 1 < steps {
                for i in 0..R {
                    let from = if more { soon.wrapping_add(i * SIDE * step_bytes) } else { std::ptr::null() };
                    weights[i].dequantize::<T>(step + 1, &mut staged[(step + 1) % 2][i], from);
                }
            } else if more {
                for i in 0..(R * SIDE * step_bytes).div_ceil(ROW) {
                    prefetch_near(soon.wrapping_add(i * ROW));
                }
            }
            soon = soon.wrapping_add(R * SIDE * step_bytes);
            let b = [x.start[0].add(step * SIDE * 4 * x.rows[0]), x.start[1].wrapping_add(step * SIDE * 4 * x.rows[1])];
            if BYTES {
                unit.load::<4>(staged[step % 2][0].as_ptr().cast(), ROW);
            } else {
                weights[0].load::<T, 4>(unit, step);
            }
            unit.load::<6>(b[0], 4 * x.rows[0]);
            unit.add_bf16::<0, 4, 6>();
            if C > 1 {
                unit.load::<7>(b[1], 4 * x.rows[1]);
                unit.add_bf16::<1, 4, 7>();
            }
            if R > 1 {
                if BYTES {
                    unit.load::<5>(staged[step % 2][1].as_ptr().cast(), ROW);
                } else {
                    weights[1].load::<T, 5>(unit, step);
                }
                unit.add_bf16::<2, 5, 6>();
                if C > 1 {
                    unit.add_bf16::<3, 5, 7>();
                }
            }
        }
        let rows = (p.rows - row).min(SIDE);
        sums::<T, 0>(unit, p, row, rows, x.first, x.rows[0]);
        if C > 1 {
            sums::<T, 1>(unit, p, row, rows, x.first + SIDE, x.rows[1]);
        }
        if R > 1 {
            let (row, rows) = (row + SIDE, p.rows - row - SIDE);
            sums::<T, 2>(unit, p, row, rows.min(SIDE), x.first, x.rows[0]);
            if C > 1 {
                sums::<T, 3>(unit, p, row, rows.min(SIDE), x.first + SIDE, x.rows[1]);
            }
        }
    }
}

/// Writes the sums of a tile to the outputs of `weights` weight rows and `inputs` input rows.
///
/// # Safety
/// As for [`block`].
#[inline(always)]
unsafe fn sums<T: Tiles, const TILE: usize>(unit: &mut T, p: &Panel, row: usize, weights: usize, input: usize, inputs: usize) {
    let mut square = [[0u32; SIDE]; SIDE];
    // SAFETY: the tile has 16 rows of `inputs` words, and the outputs and the bias have these rows.
    unsafe {
        let (bias, out) = (bias::<T>(p, row, weights), p.out.add(input * p.width + row));
        if inputs == 1 {
            // one column becomes one row
            unit.store::<TILE>(square.as_mut_ptr().cast(), 4);
            return T::write(out, weights, &square[0], &bias);
        }
        unit.store::<TILE>(square.as_mut_ptr().cast(), ROW);
        T::write_columns(&square, inputs, weights, &bias, out, p.width);
    }
}

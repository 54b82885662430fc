//! Products in Q8_0.

use super::{Inputs, ROW, SIDE, Shapes, Tiles, columns, inputs, outputs};
use crate::format::{GROUP, GROUP_BYTES};
use crate::simd::panel::Panel;
use crate::simd::prefetch_near;

/// All products of a panel: the exact sums of a block, then their product with both scales,
/// added in f32 block after block.
///
/// # Safety
/// As for [`super::run`]; the machine must have the instructions of `T`.
#[inline(always)]
pub(super) unsafe fn products<T: Tiles>(unit: &mut T, p: &Panel) {
    // `scales` computes distances in 32 bits
    assert!(p.row_bytes < 1 << 27, "rows of {} bytes", p.row_bytes);
    let mut weights = vec![WeightBlock::default(); p.row_bytes / GROUP_BYTES];
    let mut configured = None;
    for row in (0..p.rows).step_by(SIDE) {
        let rows = (p.rows - row).min(SIDE);
        // SAFETY: the rows are in the panel.
        unsafe { split_weights::<T>(p, row, rows, &mut weights) };
        for first in (0..p.tokens).step_by(2 * SIDE) {
            let x = inputs(p, first);
            let shapes = Shapes { bytes: GROUP, inputs: columns(&x) };
            // SAFETY: the groups and rows are in the panel.
            unsafe {
                if configured != Some(shapes) {
                    unit.configure(shapes);
                    configured = Some(shapes);
                }
                if x.rows[1] > 0 {
                    byte_block::<T, 2>(unit, p, &x, row, rows, &weights);
                } else {
                    byte_block::<T, 1>(unit, p, &x, row, rows, &weights);
                }
            }
        }
    }
}

/// A block of 32 columns of 16 weight rows: the bytes of each row, then their scales.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct WeightBlock {
    bytes: [[u8; GROUP]; SIDE],
    scales: [f32; SIDE],
}

impl Default for WeightBlock {
    fn default() -> Self {
        Self { bytes: [[0; GROUP]; SIDE], scales: [0.0; SIDE] }
    }
}

/// Splits the blocks of up to 16 weight rows into bytes and scales. Rows that are missing are zero.
///
/// # Safety
/// As for [`products`].
#[inline(always)]
unsafe fn split_weights<T: Tiles>(p: &Panel, row: usize, rows: usize, weights: &mut [WeightBlock]) {
    let start = p.weights.wrapping_add(row * p.row_bytes);
    let mut soon = start.wrapping_add(rows * p.row_bytes);
    // Behind the panel another thread's rows may begin.
    let more = row + rows < p.rows;
    for (at, block) in weights.iter_mut().enumerate() {
        if more {
            for i in 0..(SIDE * GROUP_BYTES).div_ceil(ROW) {
                prefetch_near(soon.wrapping_add(i * ROW));
            }
            soon = soon.wrapping_add(SIDE * GROUP_BYTES);
        }
        if rows < SIDE {
            *block = WeightBlock::default();
        }
        let from = start.wrapping_add(at * GROUP_BYTES);
        for i in 0..rows {
            // SAFETY: the row has this block, which begins with its scale.
            block.bytes[i] = unsafe { from.add(i * p.row_bytes + 2).cast::<[u8; GROUP]>().read() };
        }
        // SAFETY: as for the caller; a block is longer than four bytes.
        block.scales = unsafe { T::scales(from, p.row_bytes, rows) };
    }
}

/// A tile of weight rows from `row` on and `C` groups of input rows.
///
/// # Safety
/// As for [`products`].
#[allow(clippy::needless_range_loop)] // each loop is over several arrays
#[inline(always)]
unsafe fn byte_block<T: Tiles, const C: usize>(unit: &mut T, p: &Panel, x: &Inputs, row: usize, rows: usize, weights: &[WeightBlock]) {
    // SAFETY: the rows and the input rows are in the panel; tiles have the shapes of `Shapes`.
    unsafe {
        let mut all = [[[0f32; SIDE]; SIDE]; C];
        let mut sums = [Sums([[0i32; SIDE]; SIDE]); C];
        for (block, weights) in weights.iter().enumerate() {
            unit.load::<4>(weights.bytes.as_ptr().cast(), GROUP);
            let b = [x.start[0].add(block * 9 * 4 * x.rows[0]), x.start[1].wrapping_add(block * 9 * 4 * x.rows[1])];
            for c in 0..C {
                let n = x.rows[c];
                // one column becomes one row
                let (to, apart) = (sums[c].0.as_mut_ptr().cast(), if n == 1 { 4 } else { ROW });
                if c == 0 {
                    unit.zero::<0>();
                    unit.load::<6>(b[0], 4 * n);
                    unit.add_bytes::<0, 4, 6>();
                    unit.store::<0>(to, apart);
                } else {
                    unit.zero::<1>();
                    unit.load::<7>(b[1], 4 * n);
                    unit.add_bytes::<1, 4, 7>();
                    unit.store::<1>(to, apart);
                }
            }
            for c in 0..C {
                let n = x.rows[c];
                let inputs = T::read(b[c].add(8 * 4 * n).cast(), n);
                if n == 1 {
                    T::add_scaled(&mut all[c][0], &sums[c].0[0], inputs[0], &weights.scales);
                } else {
                    for i in 0..SIDE {
                        T::add_scaled(&mut all[c][i], &sums[c].0[i], weights.scales[i], &inputs);
                    }
                }
            }
        }
        for c in 0..C {
            let n = x.rows[c];
            let mut square = [[0u32; SIDE]; SIDE];
            for i in 0..SIDE {
                for j in 0..SIDE {
                    square[i][j] = all[c][i][j].to_bits();
                }
            }
            let square = if n == 1 { square } else { T::transpose(&square) };
            outputs::<T>(p, &square, row, rows, x.first + c * SIDE, n);
        }
    }
}

/// The sums of a tile of integers.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Sums([[i32; SIDE]; SIDE]);

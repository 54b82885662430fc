//! Rows of weights in bf16 as the first operand of a product.

use super::{ROW, SIDE, Tiles};
use crate::line::Line;
use crate::simd::panel::Panel;

/// Up to [`SIDE`] weight rows in bf16.
#[derive(Clone, Copy)]
pub(super) struct WeightTile {
    start: *const u8,
    stride: usize,
    rows: usize,
    /// Bytes of a row.
    bytes: usize,
}

impl WeightTile {
    /// Weight rows where they lie. If the panel ends before `row`, there are none.
    #[inline(always)]
    pub(super) fn new(p: &Panel, row: usize) -> Self {
        let start = p.weights.wrapping_add(row * p.row_bytes);
        Self { start, stride: p.row_bytes, rows: p.rows.saturating_sub(row).min(SIDE), bytes: p.row_bytes }
    }

    /// The address of a row, whether or not it exists.
    #[inline(always)]
    pub(super) fn row(self, row: usize) -> *const u8 {
        self.start.wrapping_add(row * self.stride)
    }

    /// Loads a step; rows and columns that are missing are zero.
    ///
    /// # Safety
    /// The rows must exist.
    #[inline(always)]
    pub(super) unsafe fn load<T: Tiles, const TILE: usize>(self, unit: &mut T, step: usize) {
        // SAFETY: the caller's guarantee; a part is copied to a whole tile.
        unsafe {
            if self.rows == SIDE && self.bytes - step * ROW >= ROW {
                return unit.load::<TILE>(self.start.add(step * ROW), self.stride);
            }
            let mut whole = [Line::default(); SIDE];
            self.copy(step, &mut whole);
            unit.load::<TILE>(whole.as_ptr().cast(), ROW);
        }
    }

    /// Copies steps from `from` on: the first 16 of every 32 lines of `to`. Rows and columns that
    /// are missing are zero.
    ///
    /// # Safety
    /// The rows must exist.
    #[inline(always)]
    pub(super) unsafe fn copy(self, from: usize, to: &mut [Line]) {
        let steps = to.len().div_ceil(2 * SIDE);
        for row in 0..SIDE {
            let lines = to[row..].iter_mut().step_by(2 * SIDE).take(steps);
            if row >= self.rows {
                lines.for_each(|line| *line = Line::default());
                continue;
            }
            let start = self.row(row);
            for (step, line) in (from..).zip(lines) {
                let left = self.bytes - step * ROW;
                // SAFETY: the row has these bytes, of which a part is copied to a whole line.
                unsafe {
                    let p = start.add(step * ROW);
                    if left >= ROW {
                        *line = Line(p.cast::<[u32; SIDE]>().read_unaligned());
                    } else {
                        *line = Line::default();
                        std::ptr::copy_nonoverlapping(p, line.0.as_mut_ptr().cast(), left);
                    }
                }
            }
        }
    }
}

//! Rows of weights as the first operand of a product.

use super::{ROW, SIDE, Tiles};
use crate::Format;
use crate::format::GROUP_BYTES;
use crate::line::Line;
use crate::simd::panel::Panel;

/// Up to [`SIDE`] weight rows, in steps of 32 numbers.
#[derive(Clone, Copy)]
pub(super) struct WeightTile {
    format: Format,
    start: *const u8,
    stride: usize,
    rows: usize,
    /// Bytes of a row.
    bytes: usize,
}

/// Bytes of a step of a row.
#[inline(always)]
pub(super) fn step_bytes(format: Format) -> usize {
    if format == Format::Q8_0 { GROUP_BYTES } else { ROW }
}

impl WeightTile {
    /// Weight rows where they lie. If the panel ends before `row`, there are none.
    #[inline(always)]
    pub(super) fn new(p: &Panel, row: usize) -> Self {
        let start = p.weights.wrapping_add(row * p.row_bytes);
        Self { format: p.format, start, stride: p.row_bytes, rows: p.rows.saturating_sub(row).min(SIDE), bytes: p.row_bytes }
    }

    /// Loads a step of rows in bf16; rows and columns that are missing are zero.
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
            self.copy::<T>(step, &mut whole);
            unit.load::<TILE>(whole.as_ptr().cast(), ROW);
        }
    }

    /// Writes a step of rows in Q8_0 to `to`, in bf16. What is there of rows that are missing stays.
    /// As many bytes from `soon` on are requested, unless it is null: one by one, because several
    /// at once would be waited for.
    ///
    /// # Safety
    /// The rows must exist, and have this step.
    #[inline(always)]
    pub(super) unsafe fn dequantize<T: Tiles>(self, step: usize, to: &mut [Line; SIDE], soon: *const u8) {
        let start = self.start.wrapping_add(step * GROUP_BYTES);
        for (row, line) in to.iter_mut().enumerate().take(self.rows) {
            // SAFETY: the caller's guarantee.
            *line = unsafe { T::dequantize(start.wrapping_add(row * self.stride)) };
            if row % 2 == 0 && !soon.is_null() {
                crate::simd::prefetch_near(soon.wrapping_add(row * GROUP_BYTES));
            }
        }
    }

    /// Copies steps from `from` on, in bf16: to the first 16 of every 32 lines of `to`. Rows and
    /// columns that are missing are zero.
    ///
    /// # Safety
    /// The rows must exist.
    #[inline(always)]
    pub(super) unsafe fn copy<T: Tiles>(self, from: usize, to: &mut [Line]) {
        let steps = to.len().div_ceil(2 * SIDE);
        let bytes = step_bytes(self.format);
        for row in 0..SIDE {
            let lines = to[row..].iter_mut().step_by(2 * SIDE).take(steps);
            if row >= self.rows {
                lines.for_each(|line| *line = Line::default());
                continue;
            }
            let start = self.start.wrapping_add(row * self.stride + from * bytes);
            // SAFETY: the row has these bytes, of which a part is copied to a whole line.
            unsafe {
                for (i, line) in lines.enumerate() {
                    let p = start.add(i * bytes);
                    if self.format == Format::Q8_0 {
                        *line = T::dequantize(p);
                        continue;
                    }
                    let left = self.bytes - (from + i) * ROW;
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

    /// Requests `steps` steps from `from` on of a row, whether or not it exists.
    #[inline(always)]
    pub(super) fn request(self, row: usize, from: usize, steps: usize) {
        let bytes = step_bytes(self.format);
        let start = self.start.wrapping_add(row * self.stride + from * bytes);
        for line in 0..(steps * bytes).div_ceil(ROW) {
            crate::simd::prefetch_near(start.wrapping_add(line * ROW));
        }
    }
}

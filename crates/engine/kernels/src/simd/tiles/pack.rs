//! Packing of inputs for tiles, in the layouts that `tiles.rs` describes.

use super::{SIDE, Tiles, words};
use crate::line::Line;
use crate::rows;

/// Rows in bf16.
///
/// # Safety
/// As for [`Tiles::transpose`].
#[inline(always)]
pub(super) unsafe fn pairs<T: Tiles>(x: &[f32], cols: usize, out: &mut [Line]) {
    let steps = cols.div_ceil(2 * SIDE);
    for (x, out) in x.chunks(SIDE * cols).zip(out.chunks_mut(words(cols))) {
        let n = x.len() / cols;
        for step in 0..steps {
            let mut square = [[0; SIDE]; SIDE];
            for (row, x) in square.iter_mut().zip(x.chunks_exact(cols)) {
                *row = step_of(x, step);
            }
            if n == 1 {
                out[step] = Line(square[0]);
                continue;
            }
            // SAFETY: as for the caller.
            let square = unsafe { T::transpose(&square) };
            if n == SIDE {
                for (out, row) in out[SIDE * step..][..SIDE].iter_mut().zip(square) {
                    *out = Line(row);
                }
                continue;
            }
            for (i, row) in square.iter().enumerate() {
                for (j, word) in row[..n].iter().enumerate() {
                    let at = (SIDE * step + i) * n + j;
                    out[at / SIDE].0[at % SIDE] = *word;
                }
            }
        }
    }
}

/// 32 columns of a row; those that are missing are zero.
#[inline(always)]
fn step_of(x: &[f32], step: usize) -> [u32; SIDE] {
    let x = &x[step * 2 * SIDE..];
    match x.first_chunk() {
        Some(x) => rows::pairs(x).0,
        None => {
            let mut padded = [0.0; 2 * SIDE];
            padded[..x.len()].copy_from_slice(x);
            rows::pairs(&padded).0
        }
    }
}

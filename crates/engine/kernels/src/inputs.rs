//! The inputs of a matrix product, in the layout that the kernels read.
//!
//! Rows start at cache lines and are padded with zeros. The layout depends on the format of the
//! weights:
//! - f32: a row is f32.
//! - bf16: a row is bf16.
//! - Q8_0, blocks of 32 bytes: a row has three cache lines for every 64 numbers. These are the
//!   numbers as signed bytes; for every four of them -128 times their sum; and the scales, eight
//!   times that of the first 32 numbers and eight times that of the others.

use crate::Team;
use crate::format::Format;
use crate::line::{Line, row_lines};
use crate::simd::{self, Isa, Rows};

/// The rows that weights are multiplied with, converted once for all products that read them: as they are for
/// [`Format::F32`], rounded for [`Format::Bf16`], in blocks of 32 bytes with an f32 scale for [`Format::Q8_0`].
/// Buffers are kept from one use to the next.
#[derive(Debug, Default)]
pub struct Inputs {
    format: Option<Format>,
    rows: usize,
    cols: usize,
    exact: Vec<Line>,
    packed: Vec<Line>,
}

/// Lines from one row to the next: odd, so that rows do not compete for the same places in the cache.
fn stride(format: Format, cols: usize) -> usize {
    row_lines(format, cols) | 1
}

impl Inputs {
    /// No rows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes rows of `cols` numbers, for weights of this format.
    ///
    /// # Panics
    /// If `x` is not whole rows, or the format has no such rows.
    pub fn set(&mut self, format: Format, x: &[f32], cols: usize) {
        self.take(format, x, cols, |lines, _, pack| pack(0, lines));
    }

    /// As [`Inputs::set`], on all threads if it is worth it.
    ///
    /// # Panics
    /// As for [`Inputs::set`].
    pub fn set_with(&mut self, team: &Team, format: Format, x: &[f32], cols: usize) {
        self.take(format, x, cols, |lines, stride, pack| team.pieces(lines, stride, pack));
    }

    fn take(&mut self, format: Format, x: &[f32], cols: usize, each: impl Fn(&mut [Line], usize, &(dyn Fn(usize, &mut [Line]) + Sync))) {
        assert!(cols > 0 && x.len().is_multiple_of(cols), "{} numbers are no whole rows of {cols}", x.len());
        assert!(format.row_bytes(cols).is_some(), "`{format}` has no rows of {cols}");
        (self.format, self.rows, self.cols) = (Some(format), x.len() / cols, cols);
        let isa = Isa::get();
        let formats: &[Format] = if format == Format::F32 { &[Format::F32] } else { &[Format::F32, format] };
        for format in formats {
            let stride = stride(*format, cols);
            let lines = if *format == Format::F32 { &mut self.exact } else { &mut self.packed };
            lines.resize(self.rows * stride, Line::default());
            each(lines, stride, &|row, lines| {
                let x = &x[row * cols..][..lines.len() / stride * cols];
                match format {
                    Format::F32 => simd::pack_f32(isa, x, cols, lines, stride),
                    Format::Bf16 => simd::pack_bf16(isa, x, cols, lines, stride),
                    Format::Q8_0 => simd::pack_bytes(isa, x, cols, lines, stride),
                }
            });
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The length of a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// What [`Inputs::set`] was told; `None` before.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The rows as they are.
    pub(crate) fn exact(&self) -> Rows<'_> {
        Rows::new(Format::F32, &self.exact, stride(Format::F32, self.cols), self.rows, self.cols)
    }

    /// The rows for the format's weights.
    pub(crate) fn packed(&self) -> Rows<'_> {
        match self.format {
            None | Some(Format::F32) => self.exact(),
            Some(format) => Rows::new(format, &self.packed, stride(format, self.cols), self.rows, self.cols),
        }
    }
}

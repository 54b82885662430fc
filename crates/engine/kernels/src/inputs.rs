//! The inputs of a matrix product, in the layout that the kernels read.
//!
//! Rows start at cache lines and are padded with zeros. The layout depends on the format of the
//! weights:
//! - f32: a row is f32.
//! - bf16: a row is bf16.
//! - Q8_0 (blocks of 32 numbers): every 64 numbers take three cache lines. The first has the
//!   numbers as signed bytes. The second has, for every four numbers, -128 times their sum. The
//!   third has the scales: eight times that of the first block, eight times that of the second.
//!
//! Where products use tiles, rows for bf16 and Q8_0 have the layout that `simd/tiles.rs` describes,
//! in bf16.

use crate::Team;
use crate::format::Format;
use crate::line::{Line, row_lines};
use crate::simd::{self, Isa, Rows, SIDE, Target, words_for_tiles};

/// The input rows of products, converted once for all products that read them. They are unchanged
/// for [`Format::F32`], rounded for [`Format::Bf16`], and blocks of 32 bytes with an f32 scale for
/// [`Format::Q8_0`] (rounded to bf16 where products use tiles). Buffers are reused.
#[derive(Debug, Default)]
pub struct Inputs {
    format: Option<Format>,
    /// Whether [`Inputs::packed`] are in the layout of tiles.
    tiles: bool,
    /// Whether [`Inputs::exact`] has the rows.
    has_exact: bool,
    rows: usize,
    cols: usize,
    exact: Vec<Line>,
    packed: Vec<Line>,
}

/// Distance of rows in cache lines. It is odd, so that rows do not map to the same cache sets.
fn stride(format: Format, cols: usize) -> usize {
    row_lines(format, cols) | 1
}

impl Inputs {
    /// Inputs without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the rows `x` `[rows, cols]`, converted for weights in this format.
    ///
    /// # Panics
    /// If `x` is not a whole number of rows, or the format does not allow rows of `cols` numbers.
    pub fn set(&mut self, format: Format, x: &[f32], cols: usize) {
        self.take(format, x, cols, true, |lines, _, pack| pack(0, lines));
    }

    /// [`Inputs::set`] with all threads of `team` if the rows are large enough. Low-rank updates
    /// read the rows in f32: they are kept so if `updated`.
    ///
    /// # Panics
    /// As for [`Inputs::set`].
    pub fn set_with(&mut self, team: &Team, format: Format, x: &[f32], cols: usize, updated: bool) {
        self.take(format, x, cols, updated, |lines, stride, pack| team.pieces(lines, stride, pack));
    }

    fn take(
        &mut self,
        format: Format,
        x: &[f32],
        cols: usize,
        updated: bool,
        each: impl Fn(&mut [Line], usize, &(dyn Fn(usize, &mut [Line]) + Sync)),
    ) {
        assert!(cols > 0 && x.len().is_multiple_of(cols), "{} numbers are no whole rows of {cols}", x.len());
        let isa = Isa::get();
        self.reshape(isa, format, x.len() / cols, cols, updated);
        let formats: &[Format] = match (format, self.has_exact) {
            (Format::F32, _) => &[Format::F32],
            (_, true) => &[Format::F32, format],
            (_, false) => &[format],
        };
        for format in formats {
            if self.tiles && *format != Format::F32 {
                // a group of rows takes as many lines as a row has words
                let group = words_for_tiles(cols);
                self.packed.resize((self.rows * group).div_ceil(SIDE), Line::default());
                each(&mut self.packed, group, &|group_of, lines| {
                    let from = group_of * SIDE;
                    let rows = (self.rows - from).min(lines.len().div_ceil(group) * SIDE);
                    simd::pack_for_tiles(isa, &x[from * cols..][..rows * cols], cols, lines);
                });
                continue;
            }
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

    /// Sets what the rows are, but not their numbers.
    fn reshape(&mut self, isa: Isa, format: Format, rows: usize, cols: usize, updated: bool) {
        assert!(format.row_bytes(cols).is_some(), "`{format}` has no rows of {cols}");
        (self.format, self.rows, self.cols) = (Some(format), rows, cols);
        self.tiles = isa.has_tiles_for(format);
        self.has_exact = updated || format == Format::F32;
    }

    /// Room for rows for tiles, which the caller writes.
    pub(crate) fn room_for_tiles(&mut self, isa: Isa, format: Format, rows: usize, cols: usize, updated: bool) -> Target<'_> {
        self.reshape(isa, format, rows, cols, updated);
        self.packed.resize((rows * words_for_tiles(cols)).div_ceil(SIDE), Line::default());
        let stride = stride(Format::F32, cols);
        if updated {
            self.exact.resize(rows * stride, Line::default());
        }
        Target { packed: &mut self.packed, exact: updated.then_some((&mut self.exact, stride)) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of elements of a row.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The format of the last [`Inputs::set`]; `None` before.
    pub fn format(&self) -> Option<Format> {
        self.format
    }

    /// The rows in f32.
    ///
    /// # Panics
    /// If they were set for products without updates.
    pub(crate) fn exact(&self) -> Rows<'_> {
        assert!(self.has_exact || self.rows == 0, "inputs for products without updates");
        Rows::new(Format::F32, &self.exact, stride(Format::F32, self.cols), self.rows, self.cols)
    }

    /// The rows in the form that products with weights of the format need.
    pub(crate) fn packed(&self) -> Rows<'_> {
        match self.format {
            None | Some(Format::F32) => self.exact(),
            Some(format) if self.tiles => Rows::for_tiles(format, &self.packed, self.rows, self.cols),
            Some(format) => Rows::new(format, &self.packed, stride(format, self.cols), self.rows, self.cols),
        }
    }
}

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
use crate::format::{Format, GROUP, round_bf16};
use crate::lanes::{LANES, reduce};
use crate::simd::{self, Isa, Line, Rows};

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

/// Lines that a row of inputs takes.
pub(crate) fn row_lines(format: Format, cols: usize) -> usize {
    match format {
        Format::F32 => cols.div_ceil(16),
        Format::Bf16 => cols.div_ceil(32),
        Format::Q8_0 => 3 * cols.div_ceil(64),
    }
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

#[inline(always)]
pub(crate) fn pack_f32<const FMA: bool>(x: &[f32], cols: usize, out: &mut [Line], stride: usize) {
    for (x, out) in x.chunks_exact(cols).zip(out.chunks_exact_mut(stride)) {
        let (whole, rest) = x.as_chunks::<16>();
        for (out, x) in out.iter_mut().zip(whole) {
            *out = Line(x.map(f32::to_bits));
        }
        if !rest.is_empty() {
            let mut last = Line::default();
            for (out, x) in last.0.iter_mut().zip(rest) {
                *out = x.to_bits();
            }
            out[whole.len()] = last;
        }
    }
}

#[inline(always)]
pub(crate) fn pack_bf16<const FMA: bool>(x: &[f32], cols: usize, out: &mut [Line], stride: usize) {
    for (x, out) in x.chunks_exact(cols).zip(out.chunks_exact_mut(stride)) {
        let (whole, rest) = x.as_chunks::<32>();
        for (out, x) in out.iter_mut().zip(whole) {
            *out = pairs(x);
        }
        if !rest.is_empty() {
            let mut last = [0.0; 32];
            last[..rest.len()].copy_from_slice(rest);
            out[whole.len()] = pairs(&last);
        }
    }
}

#[inline(always)]
fn pairs(x: &[f32; 32]) -> Line {
    let mut line = Line::default();
    let (x, _) = x.as_chunks::<2>();
    for (out, [even, odd]) in line.0.iter_mut().zip(x) {
        *out = u32::from(round_bf16(*even)) | u32::from(round_bf16(*odd)) << 16;
    }
    line
}

#[inline(always)]
pub(crate) fn pack_bytes<const FMA: bool>(x: &[f32], cols: usize, out: &mut [Line], stride: usize) {
    for (x, out) in x.chunks_exact(cols).zip(out.chunks_exact_mut(stride)) {
        for (x, out) in x.chunks(2 * GROUP).zip(out.as_chunks_mut::<3>().0) {
            let (mut bytes, mut corrections, mut scales) = ([0; 16], [0; 16], [0; 16]);
            for (i, x) in x.as_chunks::<GROUP>().0.iter().enumerate() {
                let half = 8 * i..8 * i + 8;
                let (words, sums, scale) = quantize(x);
                bytes[half.clone()].copy_from_slice(&words);
                corrections[half.clone()].copy_from_slice(&sums);
                scales[half].fill(scale.to_bits());
            }
            *out = [Line(bytes), Line(corrections), Line(scales)];
        }
    }
}

/// 32 numbers as bytes (four in a word), -128 times the sum of each four, and the scale.
#[inline(always)]
fn quantize(x: &[f32; GROUP]) -> ([u32; 8], [u32; 8], f32) {
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23: adding it rounds to an integer, which the low bits hold
    let mut max = [0f32; LANES];
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for x in x.as_chunks::<LANES>().0 {
        for (max, x) in max.iter_mut().zip(x) {
            *max = larger(*max, x.abs());
        }
    }
    let scale = reduce(max, larger) / 127.0;
    let inverse = if scale < f32::MIN_POSITIVE { 0.0 } else { 1.0 / scale };
    let mut bytes = [0u8; GROUP];
    for (byte, x) in bytes.iter_mut().zip(x) {
        *byte = (x * inverse + ROUND).to_bits() as u8;
    }
    let (mut words, mut sums) = ([0; 8], [0; 8]);
    for ((word, sum), four) in words.iter_mut().zip(&mut sums).zip(bytes.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*four);
        // the bytes plus 128, which have no sign, added in pairs, then the pairs
        let high = *word ^ 0x8080_8080;
        let pairs = (high & 0x00ff_00ff) + (high >> 8 & 0x00ff_00ff);
        let sum_of_high = (pairs & 0xffff) + (pairs >> 16);
        *sum = 4u32.wrapping_mul(128).wrapping_sub(sum_of_high).wrapping_mul(128);
    }
    (words, sums, scale)
}

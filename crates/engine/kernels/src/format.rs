//! Number formats of weights, and matrices in these formats.

use std::fmt;
use std::str::FromStr;

/// The number format of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// 32-bit floating point (IEEE 754).
    F32,
    /// bfloat16: the upper half of an f32.
    Bf16,
    /// Blocks of 32 numbers: an f16 scale, then 32 signed bytes (Q8_0 of the GGUF specification).
    Q8_0,
}

/// Numbers in a block of [`Format::Q8_0`].
pub(crate) const GROUP: usize = 32;
/// Bytes of a block of [`Format::Q8_0`].
pub(crate) const GROUP_BYTES: usize = 34;

impl Format {
    /// Bytes of a row of `cols` numbers. `None` if the format does not allow such rows:
    /// [`Format::Q8_0`] needs multiples of 32.
    pub fn row_bytes(self, cols: usize) -> Option<usize> {
        match self {
            Self::F32 => cols.checked_mul(4),
            Self::Bf16 => cols.checked_mul(2),
            Self::Q8_0 if cols.is_multiple_of(GROUP) => (cols / GROUP).checked_mul(GROUP_BYTES),
            Self::Q8_0 => None,
        }
    }

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An unknown name of a [`Format`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownFormat(pub String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown number format `{}`: use `f32`, `bf16` or `q8_0`", self.0)
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(s: &str) -> Result<Self, UnknownFormat> {
        [Self::F32, Self::Bf16, Self::Q8_0].into_iter().find(|f| f.name() == s).ok_or_else(|| UnknownFormat(s.to_owned()))
    }
}

/// Bytes that do not match the stated shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShapeError {
    /// The format does not allow rows with this number of columns.
    Columns {
        /// The format.
        format: Format,
        /// The number of columns.
        cols: usize,
    },
    /// The number of bytes does not match the shape.
    Length {
        /// The format.
        format: Format,
        /// The number of rows.
        rows: usize,
        /// The number of columns.
        cols: usize,
        /// The number of bytes.
        bytes: usize,
    },
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Columns { format, cols } => {
                write!(f, "rows of `{cols}` numbers cannot be written as `{format}`, which needs multiples of `{GROUP}`")
            }
            Self::Length { format, rows, cols, bytes } => {
                write!(f, "`{rows}` x `{cols}` numbers as `{format}` do not take `{bytes}` bytes")
            }
        }
    }
}

impl std::error::Error for ShapeError {}

/// A borrowed row-major matrix `[rows, cols]`, little-endian, with any alignment.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    format: Format,
    bytes: &'a [u8],
    rows: usize,
    cols: usize,
    row_bytes: usize,
}

impl<'a> Matrix<'a> {
    /// A matrix over `bytes`, whose length must match the shape.
    pub fn new(format: Format, bytes: &'a [u8], rows: usize, cols: usize) -> Result<Self, ShapeError> {
        let row_bytes = format.row_bytes(cols).ok_or(ShapeError::Columns { format, cols })?;
        if row_bytes.checked_mul(rows) != Some(bytes.len()) {
            return Err(ShapeError::Length { format, rows, cols, bytes: bytes.len() });
        }
        Ok(Self { format, bytes, rows, cols, row_bytes })
    }

    /// Number of rows: the outputs of a linear layer.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns: the inputs of a linear layer.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The number format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// All rows.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The length of a row in bytes.
    pub(crate) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// The bytes of a row.
    fn row(&self, row: usize) -> &'a [u8] {
        assert!(row < self.rows, "row {row} of a matrix of {} rows", self.rows);
        &self.bytes[row * self.row_bytes..][..self.row_bytes]
    }

    /// Converts a row to f32, for example to look up an embedding.
    ///
    /// # Panics
    /// If there is no such row, or `out` does not have `cols` elements.
    pub fn row_to_f32(&self, row: usize, out: &mut [f32]) {
        assert_eq!(out.len(), self.cols, "a row has {} numbers", self.cols);
        let bytes = self.row(row);
        match self.format {
            Format::F32 => {
                for (o, b) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *o = f32::from_le_bytes(*b);
                }
            }
            Format::Bf16 => {
                for (o, b) in out.iter_mut().zip(bytes.as_chunks().0) {
                    *o = f32::from_bits(u32::from(u16::from_le_bytes(*b)) << 16);
                }
            }
            Format::Q8_0 => {
                for (out, group) in out.chunks_exact_mut(GROUP).zip(bytes.chunks_exact(GROUP_BYTES)) {
                    let scale = f16_to_f32(u16::from_le_bytes([group[0], group[1]]));
                    for (o, b) in out.iter_mut().zip(&group[2..]) {
                        *o = scale * f32::from(*b as i8);
                    }
                }
            }
        }
    }
}

/// Appends a row in [`Format::Q8_0`], quantised as in ggml's reference implementation.
///
/// # Panics
/// If the row's length is not a multiple of 32.
pub fn quantize_q8_0(x: &[f32], out: &mut Vec<u8>) {
    assert!(x.len().is_multiple_of(GROUP), "{} numbers are no whole blocks of {GROUP}", x.len());
    for x in x.chunks_exact(GROUP) {
        let scale = x.iter().fold(0f32, |m, x| m.max(x.abs())) / 127.0;
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        out.extend(f32_to_f16(scale).to_le_bytes());
        out.extend(x.iter().map(|x| (x * inverse).round() as i8 as u8));
    }
}

/// Appends numbers in [`Format::Bf16`], rounded to nearest, ties to even.
pub fn to_bf16(x: &[f32], out: &mut Vec<u8>) {
    out.extend(x.iter().flat_map(|x| round_bf16(*x).to_le_bytes()));
}

/// The upper half of `x`, rounded to nearest, ties to even; NaN stays NaN.
#[inline(always)]
pub(crate) fn round_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let nan = (bits >> 16) | 0x40;
    (if x.is_nan() { nan } else { rounded }) as u16
}

/// Two numbers in a word, rounded to bf16: `low` in the lower half.
#[inline(always)]
pub(crate) fn pair(low: f32, high: f32) -> u32 {
    u32::from(round_bf16(low)) | u32::from(round_bf16(high)) << 16
}

/// Converts f16 to f32, which is exact.
#[inline(always)]
pub(crate) fn f16_to_f32(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7fff);
    // Exponent and fraction are moved in place. The product corrects the exponent's bias, also for
    // subnormal numbers.
    let value = f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000);
    let value = if magnitude >= 0x7c00 { f32::from_bits(0x7f80_0000 | (magnitude << 13)) } else { value };
    f32::from_bits(value.to_bits() | sign)
}

/// Converts f32 to f16, rounded to nearest, ties to even.
pub(crate) fn f32_to_f16(x: f32) -> u16 {
    let sign = ((x.to_bits() >> 16) & 0x8000) as u16;
    let x = x.abs();
    let magnitude = if x.is_nan() {
        0x7e00
    } else if x >= 65_520.0 {
        0x7c00
    } else if x < 6.103_515_6e-5 {
        // Subnormal: after adding 0.5, the lowest bits are the multiple of 2^-24.
        ((x + 0.5).to_bits() - 0.5f32.to_bits()) as u16
    } else {
        let bits = x.to_bits();
        ((bits + 0xfff + ((bits >> 13) & 1) - (112 << 23)) >> 13) as u16
    };
    sign | magnitude
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_survives_both_ways() {
        for h in 0..=u16::MAX {
            let x = f16_to_f32(h);
            if x.is_nan() {
                assert!(f16_to_f32(f32_to_f16(x)).is_nan());
            } else {
                assert_eq!(f32_to_f16(x), h, "{x}");
            }
        }
        assert_eq!(f16_to_f32(0x3c00), 1.0);
        assert_eq!(f16_to_f32(1), 2f32.powi(-24));
        assert_eq!(f32_to_f16(65_519.9), 0x7bff);
        assert_eq!(f32_to_f16(65_520.0), 0x7c00);
        assert_eq!(f32_to_f16(1.0 + 2f32.powi(-11)), 0x3c00, "ties go to even");
        assert_eq!(f32_to_f16(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02, "ties go to even");
    }

    #[test]
    fn brain_floats_round_to_even() {
        let round = |x: f32| f32::from_bits(u32::from(round_bf16(x)) << 16);
        assert_eq!(round(1.0 + 2f32.powi(-8)), 1.0);
        assert_eq!(round(1.0 + 3.0 * 2f32.powi(-8)), 1.0 + 2f32.powi(-6));
        assert_eq!(round(f32::INFINITY), f32::INFINITY);
        assert!(round(f32::NAN).is_nan() && round(f32::from_bits(0x7f80_0001)).is_nan());
        assert_eq!(round(f32::MAX), f32::INFINITY);
    }

    #[test]
    fn rows_come_back_as_they_were_written() {
        let x: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 0.37).collect();
        for format in [Format::F32, Format::Bf16, Format::Q8_0] {
            assert_eq!(format.to_string().parse(), Ok(format));
            let mut bytes = vec![];
            match format {
                Format::F32 => bytes.extend(x.iter().flat_map(|x| x.to_le_bytes())),
                Format::Bf16 => to_bf16(&x, &mut bytes),
                Format::Q8_0 => quantize_q8_0(&x, &mut bytes),
            }
            let matrix = Matrix::new(format, &bytes, 2, 32).unwrap();
            let mut row = [0.0; 32];
            matrix.row_to_f32(1, &mut row);
            for (found, expected) in row.iter().zip(&x[32..]) {
                assert!((found - expected).abs() <= 0.07, "{format}: {found} {expected}");
            }
        }
        assert!("q4".parse::<Format>().is_err());
        assert!(Matrix::new(Format::Q8_0, &[0; 34], 1, 31).is_err());
        assert!(Matrix::new(Format::F32, &[0; 34], 1, 8).is_err());
    }
}

//! A portable model of a tile unit: what the instructions compute, in which order, and how numbers
//! are rounded. Source: `TDPBF16PS` in Intel's Software Developer's Manual, volume 2.

use super::lanes::{Lanes, Plain};
use super::{SIDE, Shapes, Square, Tiles};
use crate::format::{GROUP_BYTES, f16_to_f32};
use crate::line::Line;

/// Eight tiles.
pub(crate) struct Model {
    /// Rows of each, and bytes of a row.
    shapes: Option<[(usize, usize); 8]>,
    tiles: [Square; 8],
}

impl Model {
    pub(crate) fn new() -> Self {
        Self { shapes: None, tiles: [[[0; SIDE]; SIDE]; 8] }
    }

    /// The number of words of the first operand's rows. The shapes of a product have to fit.
    fn depth(&self, c: usize, a: usize, b: usize) -> usize {
        let of = |tile: usize| self.shapes.expect("configured tiles")[tile];
        let ((c_rows, c_bytes), (a_rows, a_bytes), (b_rows, b_bytes)) = (of(c), of(a), of(b));
        assert!(c_rows == a_rows && c_bytes == b_bytes && a_bytes == 4 * b_rows && c != a && a != b && c != b, "a product of tiles");
        b_rows
    }
}

// SAFETY (all functions of this implementation): reads and writes are those that the trait's
// contract allows.
impl Tiles for Model {
    unsafe fn configure(&mut self, shapes: Shapes) {
        // SAFETY: as for the caller.
        unsafe { self.configure_each(&std::array::from_fn(|tile| shapes.of(tile))) }
    }

    unsafe fn configure_each(&mut self, shapes: &[(usize, usize); 8]) {
        let valid = |(rows, bytes): (usize, usize)| (1..=SIDE).contains(&rows) && (1..=4 * SIDE).contains(&bytes);
        assert!(shapes.iter().copied().all(valid), "{shapes:?}");
        *self = Self { shapes: Some(*shapes), ..Self::new() };
    }

    unsafe fn zero<const T: usize>(&mut self) {
        assert!(self.shapes.is_some(), "configured tiles");
        self.tiles[T] = [[0; SIDE]; SIDE];
    }

    unsafe fn load<const T: usize>(&mut self, p: *const u8, stride: usize) {
        let (rows, bytes) = self.shapes.expect("configured tiles")[T];
        self.tiles[T] = [[0; SIDE]; SIDE];
        for (i, row) in self.tiles[T].iter_mut().enumerate().take(rows) {
            // SAFETY: see above; a row has room for 64 bytes.
            unsafe { std::ptr::copy_nonoverlapping(p.add(i * stride), row.as_mut_ptr().cast(), bytes) };
        }
    }

    unsafe fn store<const T: usize>(&mut self, p: *mut u8, stride: usize) {
        let (rows, bytes) = self.shapes.expect("configured tiles")[T];
        for (i, row) in self.tiles[T].iter().enumerate().take(rows) {
            // SAFETY: see above; a row has 64 bytes.
            unsafe { std::ptr::copy_nonoverlapping(row.as_ptr().cast(), p.add(i * stride), bytes) };
        }
    }

    unsafe fn add_bf16<const C: usize, const A: usize, const B: usize>(&mut self) {
        let depth = self.depth(C, A, B);
        let mut c = self.tiles[C];
        add_bf16(&mut c, &self.tiles[A], &self.tiles[B], depth);
        self.tiles[C] = c;
    }

    unsafe fn transpose(x: &Square) -> Square {
        transpose(x)
    }

    unsafe fn read(p: *const f32, n: usize) -> [f32; SIDE] {
        let mut y = [0.0; SIDE];
        // SAFETY: see above.
        unsafe { std::ptr::copy_nonoverlapping(p, y.as_mut_ptr(), n) };
        y
    }

    unsafe fn write(p: *mut f32, n: usize, x: &[u32; SIDE], y: &[f32; SIDE]) {
        let sums: [f32; SIDE] = std::array::from_fn(|i| f32::from_bits(x[i]) + y[i]);
        // SAFETY: see above.
        unsafe { std::ptr::copy_nonoverlapping(sums.as_ptr(), p, n) };
    }

    unsafe fn write_words(p: *mut u32, n: usize, x: &[u32; SIDE]) {
        // SAFETY: see above.
        unsafe { std::ptr::copy_nonoverlapping(x.as_ptr(), p, n) };
    }

    unsafe fn write_columns(x: &Square, columns: usize, n: usize, bias: &[f32; SIDE], p: *mut f32, width: usize) {
        for (j, x) in transpose(x).iter().enumerate().take(columns) {
            // SAFETY: as for the caller.
            unsafe { Self::write(p.wrapping_add(j * width), n, x, bias) };
        }
    }

    unsafe fn dequantize(p: *const u8) -> Line {
        // SAFETY: see above; a block has 34 bytes.
        let block = unsafe { p.cast::<[u8; GROUP_BYTES]>().read() };
        let scale = f16_to_f32(u16::from_le_bytes([block[0], block[1]]));
        let numbers: [f32; 2 * SIDE] = std::array::from_fn(|i| scale * f32::from(block[2 + i] as i8));
        let (first, then) = numbers.split_at(SIDE);
        let mut line = Line::default();
        // SAFETY: each has 16 numbers; the lanes are portable code.
        unsafe { Plain::load(first.as_ptr()).pairs(Plain::load(then.as_ptr())).store(line.0.as_mut_ptr().cast()) };
        line
    }
}

pub(crate) fn transpose(x: &Square) -> Square {
    let mut y = [[0; SIDE]; SIDE];
    for (i, x) in x.iter().enumerate() {
        for (y, x) in y.iter_mut().zip(x) {
            y[i] = *x;
        }
    }
    y
}

/// `TDPBF16PS`. The products of the lower numbers of the pairs are summed from zero, apart from
/// those of the upper numbers, each by a chain of fused multiply-adds; then both sums are added,
/// and the result is added to `c`. Every operation rounds to nearest even, takes denormal numbers
/// for zero and flushes denormal results to zero, whatever the thread's rounding mode.
pub(crate) fn add_bf16(c: &mut Square, a: &Square, b: &Square, depth: usize) {
    for (c, a) in c.iter_mut().zip(a) {
        add_bf16_row(c, &a[..depth], b);
    }
}

/// One row of [`add_bf16`].
pub(crate) fn add_bf16_row(c: &mut [u32; SIDE], a: &[u32], b: &Square) {
    let low = |pair: u32| f32::from_bits(pair << 16);
    let high = |pair: u32| f32::from_bits(pair & 0xffff_0000);
    let (mut even, mut odd) = ([0f32; SIDE], [0f32; SIDE]);
    for (a, b) in a.iter().zip(b) {
        for n in 0..SIDE {
            even[n] = multiply_add(low(*a), low(b[n]), even[n]);
            odd[n] = multiply_add(high(*a), high(b[n]), odd[n]);
        }
    }
    for n in 0..SIDE {
        let sum = multiply_add(even[n], 1.0, odd[n]);
        c[n] = multiply_add(f32::from_bits(c[n]), 1.0, sum).to_bits();
    }
}

/// `a * b + c` rounded once. The arithmetic in f64 is exact for what decides the rounding: the
/// product of two bf16, or of an f32 and 1, has at most 24 bits, and so has `c`.
///
/// A result is flushed if it would be denormal after rounding to 24 bits. Just below the smallest
/// normal number is a result that is rounded up to it, and stays.
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    const NORMAL: f64 = f32::MIN_POSITIVE as f64;
    // half a unit in the last place of 24 bits below the smallest normal number
    const KEPT: f64 = NORMAL - NORMAL / (1 << 25) as f64;
    let zero = |x: f32| if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x };
    let sum = f64::from(zero(a)) * f64::from(zero(b)) + f64::from(zero(c));
    if sum.abs() < KEPT { 0f32.copysign(sum as f32) } else { sum as f32 }
}

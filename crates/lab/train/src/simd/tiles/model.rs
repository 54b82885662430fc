//! What products on tiles are, in plain Rust, and a portable model of a tile unit.
//!
//! The sum of an element runs over the segments in order, and in each over groups of 16 words, of
//! which the last is completed with zeros. Within a group, the products of the first elements of
//! the words are summed from zero, apart from those of the second ones, each by a chain of fused
//! multiply-adds. Then both sums are added, and the result to the sum of the groups before. Every
//! operation rounds to nearest even, reads subnormal numbers as zero and replaces subnormal results
//! by zero; MXCSR is not consulted. That is `TDPBF16PS` in Intel's manual, volume 2.

use super::{SIDE, Scratch, Tiles};
use crate::element::Element;
use crate::panels::Panels;
use crate::product::{Left, Segment, Target};

/// `sum` and the products of a group of words.
pub(in crate::simd) fn group(sum: f32, a: &[u32; SIDE], b: &[u32; SIDE]) -> f32 {
    let low = |word: u32| f32::from_bits(word << 16);
    let high = |word: u32| f32::from_bits(word & 0xffff_0000);
    let (mut first, mut second) = (0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        first = multiply_add(low(*a), low(*b), first);
        second = multiply_add(high(*a), high(*b), second);
    }
    multiply_add(sum, 1.0, multiply_add(first, 1.0, second))
}

/// `a * b + c` rounded once. The arithmetic in f64 is exact for what decides the rounding: the
/// product of two bf16, or of an f32 and 1, has at most 24 bits, and so has `c`.
///
/// A result is replaced by zero if it would be subnormal after rounding to 24 bits. Just below the
/// smallest normal number is a result that is rounded up to it, and stays.
fn multiply_add(a: f32, b: f32, c: f32) -> f32 {
    const NORMAL: f64 = f32::MIN_POSITIVE as f64;
    // half a unit in the last place of 24 bits below the smallest normal number
    const KEPT: f64 = NORMAL - NORMAL / (1 << 25) as f64;
    let zero = |x: f32| if x.abs() < f32::MIN_POSITIVE { 0f32.copysign(x) } else { x };
    let sum = f64::from(zero(a)) * f64::from(zero(b)) + f64::from(zero(c));
    if sum.abs() < KEPT { 0f32.copysign(sum as f32) } else { sum as f32 }
}

/// The definition of [`super::product`].
pub(in crate::simd) fn definition<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], mut target: Target<'_, E>) {
    for i in 0..m {
        for j in 0..n {
            let mut sum = 0.0;
            for s in segments {
                for first in (0..s.depth).step_by(SIDE) {
                    let (mut a, mut b) = ([0; SIDE], [0; SIDE]);
                    for (at, p) in (first..s.depth.min(first + SIDE)).enumerate() {
                        a[at] = match s.left {
                            Left::Rows { data, ld } => E::word(data[i * ld + 2 * p], data[i * ld + 2 * p + 1]),
                            Left::Columns { words, ld } => words[p * ld + i],
                        };
                        b[at] = s.right.words[j / Panels::COLUMNS * s.right.panel + p * s.right.step + j % Panels::COLUMNS];
                    }
                    sum = group(sum, &a, &b);
                }
            }
            super::super::portable::put(&mut target, i, j, alpha * sum);
        }
    }
}

/// [`super::product`] on the model.
///
/// # Safety
/// It needs nothing, and has the form of those that do.
pub(in crate::simd) unsafe fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], mut target: Target<'_, E>) {
    // SAFETY: the model needs no instructions.
    unsafe { super::product(&mut Model([[[0; SIDE]; SIDE]; 8]), &mut Scratch::new(), (m, n), alpha, segments, &mut target) }
}

/// Eight tiles.
struct Model([[[u32; SIDE]; SIDE]; 8]);

// SAFETY (all functions of this implementation): reads and writes are those that the trait's
// contract allows.
impl Tiles for Model {
    unsafe fn zero<const T: usize>(&mut self) {
        self.0[T] = [[0; SIDE]; SIDE];
    }

    unsafe fn load<const T: usize>(&mut self, p: *const u32, stride: usize) {
        for (i, row) in self.0[T].iter_mut().enumerate() {
            // SAFETY: see above.
            *row = unsafe { p.byte_add(i * stride).cast::<[u32; SIDE]>().read_unaligned() };
        }
    }

    unsafe fn store<const T: usize>(&mut self, p: *mut u32, stride: usize) {
        for (i, row) in self.0[T].iter().enumerate() {
            // SAFETY: see above.
            unsafe { p.byte_add(i * stride).cast::<[u32; SIDE]>().write_unaligned(*row) };
        }
    }

    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        let (a, b) = (self.0[A], self.0[B]);
        for (c, a) in self.0[C].iter_mut().zip(a) {
            for (j, c) in c.iter_mut().enumerate() {
                *c = group(f32::from_bits(*c), &a, &b.map(|row| row[j])).to_bits();
            }
        }
    }

    unsafe fn transpose(from: *const u32, stride: usize, to: *mut u32, to_stride: usize) {
        for i in 0..SIDE {
            for j in 0..SIDE {
                // SAFETY: see above.
                unsafe { *to.byte_add(j * to_stride).add(i) = *from.byte_add(i * stride).add(j) };
            }
        }
    }

    fn prefetch(_: *const u32) {}
}

//! Products in plain Rust: what they are, and how machines without AVX-512 compute them.
//!
//! In bf16 this is the arithmetic of `vdpbf16ps` (Intel's manual, volume 2): per word two fused
//! multiply-adds, the second element of the word first. Each rounds to nearest even, reads
//! subnormal numbers as zero and replaces a subnormal result by zero. MXCSR is not consulted.

use crate::element::Element;
use crate::panels::Panels;
use crate::product::{Left, Segment, Target};
use crate::vecmath::fma;

/// Rows and columns of a tile, which fill the registers of AVX2.
const ROWS: usize = 4;
const LANES: usize = 16;

/// Zero for a subnormal number.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0f32.copysign(x) } else { x }
}

/// One step of a sum: the word `x` of the left factor times the word `y` of the right one.
#[inline(always)]
pub(crate) fn step<const FMA: bool, E: Element>(sum: f32, x: u32, y: u32) -> f32 {
    if E::PER_WORD == 1 {
        return fma::<FMA>(f32::from_bits(x), f32::from_bits(y), sum);
    }
    let (low, high) = (|w: u32| flush(f32::from_bits(w << 16)), |w: u32| flush(f32::from_bits(w & 0xffff_0000)));
    let sum = flush(fma::<FMA>(high(x), high(y), sum));
    flush(fma::<FMA>(low(x), low(y), sum))
}

/// See [`crate::product::product`].
#[inline(always)]
pub(crate) fn product<const FMA: bool, E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], mut target: Target<'_, E>) {
    for j in (0..n).step_by(LANES) {
        let cols = LANES.min(n - j);
        for i in (0..m).step_by(ROWS) {
            let rows = ROWS.min(m - i);
            let mut acc = [[0.0f32; LANES]; ROWS];
            for segment in segments {
                let right = &segment.right;
                let at = j / Panels::COLUMNS * right.panel + j % Panels::COLUMNS;
                for p in 0..segment.depth {
                    let mut y = [0u32; LANES];
                    let from = at + p * right.step;
                    y[..cols].copy_from_slice(&right.words[from..from + cols]);
                    for (r, acc) in acc.iter_mut().enumerate().take(rows) {
                        let x = match segment.left {
                            Left::Rows { data, ld } => {
                                let at = (i + r) * ld + p * E::PER_WORD;
                                E::word(data[at], data[at + E::PER_WORD - 1])
                            }
                            Left::Columns { words, ld } => words[p * ld + i + r],
                        };
                        for (acc, y) in acc.iter_mut().zip(&y) {
                            *acc = step::<FMA, E>(*acc, x, *y);
                        }
                    }
                }
            }
            for (r, acc) in acc.iter().enumerate().take(rows) {
                for (c, sum) in acc.iter().enumerate().take(cols) {
                    put(&mut target, i + r, j + c, alpha * sum);
                }
            }
        }
    }
}

#[inline(always)]
fn put<E: Element>(target: &mut Target<'_, E>, i: usize, j: usize, value: f32) {
    match target {
        Target::Store { out, ld } => out[i * *ld + j] = value,
        Target::Add { out, ld } => out[i * *ld + j] += value,
        Target::Sum { out, ld, addend } => out[i * *ld + j] = value + addend[i * *ld + j],
        Target::Round { out, ld } => out[i * *ld + j] = E::round(value),
        Target::RoundSum { out, ld, addend } => out[i * *ld + j] = E::round(value + addend[i * *ld + j]),
    }
}

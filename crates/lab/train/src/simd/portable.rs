//! Products in plain Rust: what they are, and how machines without AVX2 compute them.
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
            let mut acc = [[0.0f32; LANES]; ROWS];
            // whole tiles apart: only with known bounds are the sums kept in registers
            for segment in segments {
                match (cols == LANES && m - i >= ROWS, segment.left) {
                    (true, Left::Rows { .. }) => whole::<FMA, true, E>(&mut acc, segment, i, j),
                    (true, Left::Columns { .. }) => whole::<FMA, false, E>(&mut acc, segment, i, j),
                    (false, _) => part::<FMA, E>(&mut acc[..ROWS.min(m - i)], cols, segment, i, j),
                }
            }
            for (r, acc) in acc.iter().enumerate().take(m - i) {
                for (c, sum) in acc.iter().enumerate().take(cols) {
                    put(&mut target, i + r, j + c, alpha * sum);
                }
            }
        }
    }
}

/// The word of row `i` and step `p`.
#[inline(always)]
fn left<E: Element>(left: &Left<'_, E>, i: usize, p: usize) -> u32 {
    match left {
        Left::Rows { data, ld } => {
            let at = i * ld + p * E::PER_WORD;
            E::word(data[at], data[at + E::PER_WORD - 1])
        }
        Left::Columns { words, ld } => words[p * ld + i],
    }
}

/// Adds a segment to a whole tile. `IN_ROWS` is the kind of left factor, so that the loop does not
/// ask.
#[inline(always)]
fn whole<const FMA: bool, const IN_ROWS: bool, E: Element>(sums: &mut [[f32; LANES]; ROWS], s: &Segment<'_, E>, i: usize, j: usize) {
    let mut acc = *sums;
    let right = &s.right;
    let at = j / Panels::COLUMNS * right.panel + j % Panels::COLUMNS;
    for p in 0..s.depth {
        let Some((y, _)) = right.words[at + p * right.step..].split_first_chunk::<LANES>() else { break };
        for (r, acc) in acc.iter_mut().enumerate() {
            let x = match (IN_ROWS, &s.left) {
                (true, Left::Rows { .. }) | (false, Left::Columns { .. }) => left(&s.left, i + r, p),
                _ => 0,
            };
            for c in 0..LANES {
                acc[c] = step::<FMA, E>(acc[c], x, y[c]);
            }
        }
    }
    *sums = acc;
}

/// Adds a segment to a tile at the edge, of `cols` columns.
#[inline(always)]
fn part<const FMA: bool, E: Element>(acc: &mut [[f32; LANES]], cols: usize, s: &Segment<'_, E>, i: usize, j: usize) {
    let right = &s.right;
    let at = j / Panels::COLUMNS * right.panel + j % Panels::COLUMNS;
    for p in 0..s.depth {
        let from = at + p * right.step;
        let mut y = [0u32; LANES];
        y[..cols].copy_from_slice(&right.words[from..from + cols]);
        for (r, acc) in acc.iter_mut().enumerate() {
            let x = left(&s.left, i + r, p);
            for c in 0..LANES {
                acc[c] = step::<FMA, E>(acc[c], x, y[c]);
            }
        }
    }
}

#[inline(always)]
pub(super) fn put<E: Element>(target: &mut Target<'_, E>, i: usize, j: usize, value: f32) {
    match target {
        Target::Store { out, ld } => out[i * *ld + j] = value,
        Target::Add { out, ld } => out[i * *ld + j] += value,
        Target::Sum { out, ld, addend } => out[i * *ld + j] = value + addend[i * *ld + j],
        Target::Round { out, ld } => out[i * *ld + j] = E::round(value),
        Target::RoundSum { out, ld, addend } => out[i * *ld + j] = E::round(value + addend[i * *ld + j]),
    }
}

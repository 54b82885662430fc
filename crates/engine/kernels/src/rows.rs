//! Kernels that the compiler vectorises: safe loops over rows. `simd.rs` compiles each of them for
//! every instruction set.

use crate::exp::{exp, mul_add};
use crate::format::{GROUP, pair};
use crate::lanes::{LANES, reduce};
use crate::line::Line;

/// See [`crate::rms_norm`].
#[inline(always)]
pub(crate) fn rms_norm<const FMA: bool>(x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    for (x, y) in x.chunks_exact(weight.len()).zip(y.chunks_exact_mut(weight.len())) {
        let scale = 1.0 / (sum_of(x, |x| x * x) / weight.len() as f32 + eps).sqrt();
        for ((y, x), w) in y.iter_mut().zip(x).zip(weight) {
            *y = x * scale * w;
        }
    }
}

/// The sum of a term of each element.
#[inline(always)]
fn sum_of(x: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut acc = [0f32; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        for (acc, x) in acc.iter_mut().zip(x) {
            *acc += term(*x);
        }
    }
    for (acc, x) in acc.iter_mut().zip(rest) {
        *acc += term(*x);
    }
    reduce(acc, |a, b| a + b)
}

/// See [`crate::layer_norm`].
#[inline(always)]
pub(crate) fn layer_norm<const FMA: bool>(x: &[f32], weight: &[f32], bias: &[f32], eps: f32, y: &mut [f32]) {
    let width = weight.len();
    for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
        let mean = sum_of(x, |x| x) / width as f32;
        for (y, x) in y.iter_mut().zip(x) {
            *y = x - mean;
        }
        let scale = 1.0 / (sum_of(y, |y| y * y) / width as f32 + eps).sqrt();
        for ((y, w), b) in y.iter_mut().zip(weight).zip(bias) {
            *y = mul_add::<FMA>(*y * scale, *w, *b);
        }
    }
}

/// See [`crate::gelu`]. The error function is 7.1.26 of Abramowitz and Stegun, whose error is at
/// most 1.5e-7.
#[inline(always)]
pub(crate) fn gelu<const FMA: bool>(x: &mut [f32]) {
    for x in x {
        let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
        let t = 1.0 / mul_add::<FMA>(0.327_591_1, z, 1.0);
        let p = 1.061_405_4;
        let p = mul_add::<FMA>(p, t, -1.453_152);
        let p = mul_add::<FMA>(p, t, 1.421_413_7);
        let p = mul_add::<FMA>(p, t, -0.284_496_74);
        let p = mul_add::<FMA>(p, t, 0.254_829_6);
        let erf = 1.0 - p * t * exp::<FMA>(-z * z);
        *x = 0.5 * mul_add::<FMA>(x.abs(), erf, *x);
    }
}

/// See [`crate::softmax`].
#[inline(always)]
pub(crate) fn softmax_rows<const FMA: bool>(x: &mut [f32], width: usize) {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    for row in x.chunks_exact_mut(width) {
        let mut max = [f32::NEG_INFINITY; LANES];
        let (chunks, rest) = row.as_chunks::<LANES>();
        for x in chunks {
            for (max, x) in max.iter_mut().zip(x) {
                *max = larger(*max, *x);
            }
        }
        for (max, x) in max.iter_mut().zip(rest) {
            *max = larger(*max, *x);
        }
        let max = reduce(max, larger);
        for x in row.iter_mut() {
            *x = exp::<FMA>(*x - max);
        }
        let scale = 1.0 / sum_of(row, |x| x);
        for x in row {
            *x *= scale;
        }
    }
}

/// See [`crate::swiglu`].
#[inline(always)]
pub(crate) fn swiglu<const FMA: bool>(gate_up: &[f32], width: usize, y: &mut [f32]) {
    for (row, y) in gate_up.chunks_exact(2 * width).zip(y.chunks_exact_mut(width)) {
        let (gate, up) = row.split_at(width);
        for ((y, g), u) in y.iter_mut().zip(gate).zip(up) {
            *y = silu_times::<FMA>(*g, *u);
        }
    }
}

/// `silu(gate) * up`.
#[inline(always)]
pub(crate) fn silu_times<const FMA: bool>(gate: f32, up: f32) -> f32 {
    gate / (1.0 + exp::<FMA>(-gate)) * up
}

/// See [`crate::add`].
#[inline(always)]
pub(crate) fn add<const FMA: bool>(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// See [`crate::rotate`].
#[inline(always)]
pub(crate) fn rotate<const FMA: bool>(x: &mut [f32], stride: usize, heads: usize, dim: usize, cos: &[f32], sin: &[f32]) {
    let half = dim / 2;
    for ((row, cos), sin) in x.chunks_exact_mut(stride).zip(cos.chunks_exact(half)).zip(sin.chunks_exact(half)) {
        for head in row[..heads * dim].chunks_exact_mut(dim) {
            let (a, b) = head.split_at_mut(half);
            for (((a, b), c), s) in a.iter_mut().zip(b).zip(cos).zip(sin) {
                (*a, *b) = (*a * c - *b * s, *b * c + *a * s);
            }
        }
    }
}

/// Replaces the scores in `lo..hi` of a row by `e^(score - maximum)`. Returns the maximum and the
/// sum.
#[inline(always)]
pub(crate) fn softmax<const FMA: bool>(scores: &mut [f32], lo: usize, hi: usize) -> (f32, f32) {
    const NONE: f32 = f32::NEG_INFINITY;
    if lo >= hi {
        return (NONE, 0.0);
    }
    let (vectors, _) = scores.as_chunks_mut::<LANES>();
    let vectors = &mut vectors[lo / LANES..hi.div_ceil(LANES)];
    let (from, to) = (lo % LANES, LANES - (hi.next_multiple_of(LANES) - hi));
    if from > 0
        && let Some(first) = vectors.first_mut()
    {
        limit(first, &LIMITS.as_flattened()[LANES - from..]);
    }
    if to < LANES
        && let Some(last) = vectors.last_mut()
    {
        limit(last, &LIMITS.as_flattened()[2 * LANES - to..]);
    }
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut max = [NONE; LANES];
    for scores in vectors.iter() {
        for (max, score) in max.iter_mut().zip(scores) {
            *max = larger(*max, *score);
        }
    }
    let max = reduce(max, larger);
    let mut sum = [0f32; LANES];
    for scores in vectors {
        for (score, sum) in scores.iter_mut().zip(&mut sum) {
            let e = exp::<FMA>(*score - max);
            *score = if *score == NONE { 0.0 } else { e };
            *sum += *score;
        }
    }
    (max, reduce(sum, |a, b| a + b))
}

/// As [`softmax`], then rounds the numbers to bf16 and packs them as [`pair_up`] does: the pair
/// that begins at `2 i` is at `i`. The row is whole multiples of 32. The sum is that of the rounded
/// numbers, so that the weights of the values add up to 1.
#[inline(always)]
pub(crate) fn softmax_pairs<const FMA: bool>(scores: &mut [f32], lo: usize, hi: usize) -> (f32, f32) {
    let (max, _) = softmax::<FMA>(scores, lo, hi);
    if lo >= hi {
        return (max, 0.0);
    }
    // `softmax` leaves what is in other vectors of 16
    let (from, to) = (lo / LANES * LANES, hi.next_multiple_of(LANES));
    scores[from / 32 * 32..from].fill(0.0);
    scores[to..to.next_multiple_of(32)].fill(0.0);
    let mut sum = [0f32; LANES];
    for i in lo / 32..hi.div_ceil(32) {
        for (word, sum) in pair_up_at(scores, 16 * i).0.iter().zip(&mut sum) {
            *sum += f32::from_bits(word << 16) + f32::from_bits(word & 0xffff_0000);
        }
    }
    (max, reduce(sum, |a, b| a + b))
}

/// Replaces the numbers at `2 i` and `2 i + 1` by one word at `i`, as the bits of an f32: both
/// rounded to bf16, the first one in the lower half. What is beyond the words is left over.
#[inline(always)]
pub(crate) fn pair_up<const FMA: bool>(x: &mut [f32]) {
    let whole = x.len() / 32;
    for i in 0..whole {
        pair_up_at(x, 16 * i);
    }
    for i in 16 * whole..x.len() / 2 {
        x[i] = f32::from_bits(pair(x[2 * i], x[2 * i + 1]));
    }
}

/// Writes 16 words to `at`, made of the 32 numbers from `2 * at` on.
#[inline(always)]
fn pair_up_at(x: &mut [f32], at: usize) -> Line {
    let mut numbers = [0.0; 32];
    numbers.copy_from_slice(&x[2 * at..][..32]);
    let words = pairs(&numbers);
    for (to, word) in x[at..].iter_mut().zip(words.0) {
        *to = f32::from_bits(word);
    }
    words
}

/// See [`crate::log_sum_exp`].
#[inline(always)]
pub(crate) fn log_sum_exp<const FMA: bool>(x: &[f32]) -> f64 {
    const NONE: f32 = f32::NEG_INFINITY;
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut max = [NONE; LANES];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for x in chunks {
        for (max, x) in max.iter_mut().zip(x) {
            *max = larger(*max, *x);
        }
    }
    for (max, x) in max.iter_mut().zip(rest) {
        *max = larger(*max, *x);
    }
    let max = reduce(max, larger);
    if !max.is_finite() {
        return f64::from(max);
    }
    // Short sums in f32, whose rounding errors stay small, and their sum in f64.
    let mut total = 0.0;
    for part in x.chunks(SHORT) {
        let mut sum = [0f32; LANES];
        let (chunks, rest) = part.as_chunks::<LANES>();
        for x in chunks {
            for (sum, x) in sum.iter_mut().zip(x) {
                *sum += weight::<FMA>(*x, max);
            }
        }
        for (sum, x) in sum.iter_mut().zip(rest) {
            *sum += weight::<FMA>(*x, max);
        }
        total += f64::from(reduce(sum, |a, b| a + b));
    }
    f64::from(max) + total.ln()
}

/// Length of the sums in f32 of [`log_sum_exp`].
const SHORT: usize = 64 * LANES;

/// `e^(x - max)`; 0 for minus infinity and NaN.
#[inline(always)]
fn weight<const FMA: bool>(x: f32, max: f32) -> f32 {
    let e = exp::<FMA>(x - max);
    if x > f32::NEG_INFINITY { e } else { 0.0 }
}

/// Upper limits for the lanes of the first and last vector of a row: -inf outside of it.
static LIMITS: [[f32; LANES]; 3] = [[f32::NEG_INFINITY; LANES], [f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]];

#[inline(always)]
fn limit(x: &mut [f32; LANES], limits: &[f32]) {
    for (x, limit) in x.iter_mut().zip(limits) {
        *x = if *x < *limit { *x } else { *limit };
    }
}

/// `sum * a + part * b`.
#[inline(always)]
pub(crate) fn merge<const FMA: bool>(sum: &mut [f32], a: f32, part: &[f32], b: f32) {
    for (sum, part) in sum.iter_mut().zip(part) {
        *sum = mul_add::<FMA>(*sum, a, part * b);
    }
}

/// `y[i] += sum_r inner[r] * b[r][from + i]`, summed in the order of `r`. `b` is `[rank, outputs]`.
#[inline(always)]
pub(crate) fn add_low_rank<const FMA: bool>(inner: &[Line], rank: usize, b: &[f32], from: usize, y: &mut [f32]) {
    let stride = b.len() / rank.max(1);
    let factors = || inner.iter().flat_map(|line| line.0).map(f32::from_bits).take(rank);
    let (chunks, rest) = y.as_chunks_mut::<WIDE>();
    let mut at = from;
    for y in chunks {
        for (factor, b) in factors().zip(b.chunks_exact(stride)) {
            for (y, b) in y.iter_mut().zip(&b[at..at + WIDE]) {
                *y = mul_add::<FMA>(factor, *b, *y);
            }
        }
        at += WIDE;
    }
    for (factor, b) in factors().zip(b.chunks_exact(stride)) {
        for (y, b) in rest.iter_mut().zip(&b[at..]) {
            *y = mul_add::<FMA>(factor, *b, *y);
        }
    }
}

/// Number of outputs that are kept in registers over all ranks.
const WIDE: usize = 64;

/// Packs rows for [`Format::F32`](crate::Format::F32): the numbers unchanged.
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

/// Packs rows for [`Format::Bf16`](crate::Format::Bf16): two numbers in a word.
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

/// Rounds to bf16, two numbers in a word.
#[inline(always)]
pub(crate) fn pairs(x: &[f32; 32]) -> Line {
    let mut line = Line::default();
    let (x, _) = x.as_chunks::<2>();
    for (out, [even, odd]) in line.0.iter_mut().zip(x) {
        *out = pair(*even, *odd);
    }
    line
}

/// Packs rows for [`Format::Q8_0`](crate::Format::Q8_0), as `inputs.rs` describes.
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

/// Quantises 32 numbers: the bytes (four in a word), -128 times the sum of every four, the scale.
#[inline(always)]
pub(crate) fn quantize(x: &[f32; GROUP]) -> ([u32; 8], [u32; 8], f32) {
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
        // the bytes plus 128 are unsigned; they are added in pairs, then the pairs
        let high = *word ^ 0x8080_8080;
        let pairs = (high & 0x00ff_00ff) + (high >> 8 & 0x00ff_00ff);
        let sum_of_high = (pairs & 0xffff) + (pairs >> 16);
        *sum = 4u32.wrapping_mul(128).wrapping_sub(sum_of_high).wrapping_mul(128);
    }
    (words, sums, scale)
}

//! Products of input rows with weight rows; each output is a separate dot product.
//!
//! A register tile is [`GROUP`] weight rows by up to [`Dot::TOKENS`] input rows, both read without
//! packing. An output has the same sequence of operations in every tile: one vector of partial sums
//! along the row, reduced by [`Vector::sums`].

use std::mem::MaybeUninit;

use super::{Dot, Isa, Level, Vector, portable, prefetch};
#[cfg(target_arch = "x86_64")]
use super::{x86, x86_bytes};
use crate::Format;

/// Number of weight rows in a register tile.
const GROUP: usize = 4;
/// Bytes of weights that stay in the first-level cache while many input rows are computed.
const NEAR: usize = 24 << 10;
/// Maximum number of weight rows at a time: their outputs fill a cache line.
const MOST: usize = 16;
/// Up to this number of input tiles, one group of weight rows at a time is fastest.
const FEW: usize = 4;
/// Bytes of an input row that stay in the first-level cache.
const STRETCH: usize = 3 << 10;
/// Prefetch distance in bytes for weights that are used once. The hardware prefetcher stops at page
/// boundaries.
const AHEAD: usize = 12288;

/// A block of weight rows and input rows, as pointers.
pub(super) struct Panel {
    pub(super) format: Format,
    pub(super) weights: *const u8,
    pub(super) row_bytes: usize,
    pub(super) rows: usize,
    pub(super) x: *const u8,
    pub(super) x_bytes: usize,
    pub(super) tokens: usize,
    pub(super) out: *mut f32,
    pub(super) width: usize,
    /// One number for each weight row, or null.
    pub(super) bias: *const f32,
    /// Whether the product is added to the outputs.
    pub(super) accumulate: bool,
}

/// # Safety
/// The pointers of the panel must be valid for its rows, the inputs must be in the format's layout,
/// and no other thread may access the outputs.
pub(super) unsafe fn run(isa: Isa, p: &Panel) {
    // SAFETY: the caller's guarantees are passed on; an `Isa` implies that the machine has its
    // instructions.
    unsafe {
        match (isa.0, p.format) {
            (Level::Portable, Format::F32) => panel::<portable::F32<portable::Array, 1>>(p),
            (Level::Portable, Format::Bf16) => panel::<portable::Bf16>(p),
            (Level::Portable, Format::Q8_0) => panel::<portable::Bytes>(p),
            #[cfg(target_arch = "x86_64")]
            (level, format) => compiled::dispatch(level, format, p),
        }
    }
}

/// The kernels, compiled with the features that they need.
#[cfg(target_arch = "x86_64")]
mod compiled {
    use super::*;

    macro_rules! entries {
        ($($name:ident, $features:literal, $dot:ty;)*) => {$(
            #[target_feature(enable = $features)]
            unsafe fn $name(p: &Panel) {
                // SAFETY: as for the caller.
                unsafe { panel::<$dot>(p) }
            }
        )*};
    }
    entries! {
        f32_256, "avx2,fma", portable::F32<x86::V256, 2>;
        bf16_256, "avx2,fma", x86::Bf16Half;
        bytes_256, "avx2,fma,f16c", x86_bytes::BytesPairs;
        f32_512, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma", portable::F32<x86::V512, 6>;
        bf16_512, "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma", x86::Bf16Wide;
        bf16_pairs, "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma", x86::Bf16Pairs;
        bytes_512, "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma,f16c", x86_bytes::BytesVnni;
    }

    /// # Safety
    /// As for [`super::run`]; this machine must have `level`.
    pub(super) unsafe fn dispatch(level: Level, format: Format, p: &Panel) {
        // SAFETY: the guarantees are passed on; each level has the features of its kernels.
        unsafe {
            match (level, format) {
                (Level::Avx512 | Level::Avx512Full, Format::F32) => f32_512(p),
                (Level::Avx512Full, Format::Bf16) => bf16_pairs(p),
                (Level::Avx512, Format::Bf16) => bf16_512(p),
                (Level::Avx512Full, Format::Q8_0) => bytes_512(p),
                (_, Format::F32) => f32_256(p),
                (_, Format::Bf16) => bf16_256(p),
                (_, Format::Q8_0) => bytes_256(p),
            }
        }
    }
}

/// All tiles of a panel. A few weight rows stay in the cache while all inputs are computed. Long
/// rows are split into stretches, so that a tile's inputs also stay in the cache; partial sums are
/// kept in memory between stretches.
///
/// # Safety
/// As for [`run`]; the machine must have the instructions of `K`.
#[inline(always)]
unsafe fn panel<K: Dot>(p: &Panel) {
    let tiles = p.tokens.div_ceil(K::TOKENS);
    let steps = p.row_bytes.div_ceil(K::WEIGHT_BYTES);
    let stretches = if tiles <= FEW { 1 } else { (steps * K::INPUT_BYTES).div_ceil(STRETCH).max(1) };
    let stretch = steps.div_ceil(stretches).max(1);
    let near = match tiles {
        1 => p.rows,
        ..=FEW => GROUP,
        _ if stretches > 1 => MOST,
        _ => (NEAR / p.row_bytes.max(1) / GROUP * GROUP).clamp(GROUP, MOST),
    };
    // A tile's first stretch writes the sums before the next one reads them. Zeroing these six
    // kilobytes had a measurable cost for short rows.
    let mut sums = MaybeUninit::<[Saved<K::Acc>; MOST / GROUP]>::uninit();
    let sums = sums.as_mut_ptr().cast::<Saved<K::Acc>>();
    for row in (0..p.rows).step_by(near) {
        let end = (row + near).min(p.rows);
        let mut token = 0;
        for tile in 0..tiles {
            // tiles of equal size: 7 becomes 4 + 3, not 6 + 1
            let n = (p.tokens - token).div_ceil(tiles - tile);
            let ahead = match tiles {
                1 => Ahead { from: AHEAD, pace: GROUP * K::WEIGHT_BYTES },
                // each tile prefetches its share of the next rows
                _ => Ahead { from: near * p.row_bytes + tile * GROUP * p.row_bytes / tiles, pace: GROUP * K::WEIGHT_BYTES / tiles },
            };
            for from in (0..steps).step_by(stretch) {
                let steps = Steps { from, to: (from + stretch).min(steps), all: steps };
                for (i, r) in (row..end).step_by(GROUP).enumerate() {
                    let sums = sums.wrapping_add(i % (MOST / GROUP));
                    // SAFETY: rows `r..` and tokens `token..token + n` are in the panel,
                    // `n <= TOKENS <= 6`. The sums are one of the places above, and hold those of
                    // the same tile's earlier steps: there is one stretch, or at most as many
                    // groups of rows as there are sums.
                    unsafe {
                        match n {
                            1 => self::tile::<K, 1>(p, r, token, steps, ahead, sums.cast()),
                            2 if K::TOKENS >= 2 => self::tile::<K, 2>(p, r, token, steps, ahead, sums.cast()),
                            3 if K::TOKENS >= 3 => self::tile::<K, 3>(p, r, token, steps, ahead, sums.cast()),
                            4 if K::TOKENS >= 4 => self::tile::<K, 4>(p, r, token, steps, ahead, sums.cast()),
                            5 if K::TOKENS >= 5 => self::tile::<K, 5>(p, r, token, steps, ahead, sums.cast()),
                            6 if K::TOKENS >= 6 => self::tile::<K, 6>(p, r, token, steps, ahead, sums.cast()),
                            _ => unreachable!("a tile of {n} rows of inputs"),
                        }
                    }
                }
            }
            token += n;
        }
    }
}

/// Partial sums of a tile.
type Saved<A> = [[A; GROUP]; 6];

/// A range of steps of the rows, and the total number of steps.
#[derive(Clone, Copy)]
struct Steps {
    from: usize,
    to: usize,
    all: usize,
}

/// The weights to prefetch: `from` bytes after the tile, and `pace` bytes further at every step.
#[derive(Clone, Copy)]
struct Ahead {
    from: usize,
    pace: usize,
}

/// A tile of [`GROUP`] weight rows (fewer at the end) and `T` input rows. Steps before the last
/// save their sums; steps after the first continue from them.
///
/// # Safety
/// As for [`panel`]; the rows must exist, with at least one weight row. `saved` must hold the sums
/// of the steps before these.
#[inline(always)]
unsafe fn tile<K: Dot, const T: usize>(p: &Panel, row: usize, token: usize, steps: Steps, ahead: Ahead, saved: *mut [[K::Acc; GROUP]; T]) {
    let valid = (p.rows - row).min(GROUP);
    // SAFETY: all steps are inside the rows, and all rows in the panel. Missing weight rows are
    // replaced by the last one, and their outputs are not stored.
    unsafe {
        let mut weights = [p.weights; GROUP];
        for (i, weights) in weights.iter_mut().enumerate() {
            *weights = p.weights.add((row + i.min(valid - 1)) * p.row_bytes);
        }
        let x = p.x.add(token * p.x_bytes);
        let mut acc = if steps.from == 0 { [[K::Acc::zero(); GROUP]; T] } else { saved.read() };
        let whole = steps.to.min(p.row_bytes / K::WEIGHT_BYTES);
        let mut soon = weights[0].wrapping_add(ahead.from + steps.from * ahead.pace);
        for step in steps.from..whole {
            let at = step * K::WEIGHT_BYTES;
            for i in 0..GROUP {
                prefetch(soon.wrapping_add(i * K::WEIGHT_BYTES));
            }
            soon = soon.wrapping_add(ahead.pace);
            let x = x.add(step * K::INPUT_BYTES);
            multiply::<K, T, false>(&mut acc, weights, at, 0, 0, x, p.x_bytes);
            if K::HALVES > 1 {
                multiply::<K, T, false>(&mut acc, weights, at, 0, 1, x, p.x_bytes);
            }
        }
        if steps.to < steps.all {
            return saved.write(acc);
        }
        let part = p.row_bytes % K::WEIGHT_BYTES;
        if part > 0 {
            let (at, x) = (whole * K::WEIGHT_BYTES, x.add(whole * K::INPUT_BYTES));
            for half in 0..K::HALVES {
                multiply::<K, T, true>(&mut acc, weights, at, part, half, x, p.x_bytes);
            }
        }
        let mut bias = [0f32; GROUP];
        if !p.bias.is_null() {
            std::ptr::copy_nonoverlapping(p.bias.add(row), bias.as_mut_ptr(), valid);
        }
        for (t, acc) in acc.into_iter().enumerate() {
            let mut sums = K::Acc::sums(acc);
            let out = p.out.add((token + t) * p.width + row);
            if valid == GROUP {
                let out = out.cast::<[f32; GROUP]>();
                let add = if p.accumulate { out.read_unaligned() } else { bias };
                for i in 0..GROUP {
                    sums[i] += add[i];
                }
                out.write_unaligned(sums);
            } else {
                for i in 0..valid {
                    let out = out.add(i);
                    out.write(sums[i] + if p.accumulate { out.read() } else { bias[i] });
                }
            }
        }
    }
}

/// A part of a tile's step; with `PART`, of a step that has only `bytes`.
///
/// # Safety
/// As for [`tile`]: the weight rows have the step at `at`. `x` points to it in the first of `T`
/// rows, which are `x_bytes` bytes apart.
#[inline(always)]
unsafe fn multiply<K: Dot, const T: usize, const PART: bool>(
    acc: &mut [[K::Acc; GROUP]; T],
    weights: [*const u8; GROUP],
    at: usize,
    bytes: usize,
    half: usize,
    x: *const u8,
    x_bytes: usize,
) {
    // SAFETY: the rows have this step (inputs are padded with zeros).
    unsafe {
        let load = |p: *const u8| if PART { K::weight_part(p, bytes, half) } else { K::weight(p, half) };
        let mut w = [load(weights[0].add(at)); GROUP];
        for i in 1..GROUP {
            w[i] = load(weights[i].add(at));
        }
        for (t, acc) in acc.iter_mut().enumerate() {
            let x = K::input(x.add(t * x_bytes), half);
            for (acc, w) in acc.iter_mut().zip(w) {
                *acc = K::step(*acc, w, x);
            }
        }
    }
}

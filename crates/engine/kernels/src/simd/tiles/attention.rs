//! Attention on tiles, over keys and values in bf16.
//!
//! 32 dimensions of a block's keys are a tile as they lie in memory. They are the second operand;
//! the first one is 16 queries, a row for each head of a token. Values are copied, 16 dimensions
//! of two blocks at a time, so that they fill a tile, and so that positions which nobody sees
//! become zero: what lies there may be anything. The first operand is then the probabilities.
//!
//! Up to three tiles of rows share the keys and values that were loaded.
//!
//! The order of a row's sums depends on nothing but its own position. A score is the sum over 32
//! dimensions after the other. A weighted value is the sum over 32 positions after the other,
//! counted from the start of the stretch. A position that a row does not see has probability zero,
//! so it adds a zero whatever its value, if that is finite. If it is not, rows that see different
//! positions are computed apart.

use std::ops::Range;

use super::super::prefetch;
use super::lanes::Lanes;
use super::{ROW, SIDE, Tiles};
use crate::BLOCK;
use crate::attention::STRETCH;
use crate::lanes::reduce;
use crate::line::Line;
use crate::simd::Isa;
#[cfg(target_arch = "x86_64")]
use crate::simd::{TileUnit, x86::V512};

/// Maximum number of rows that share keys and values.
const ROWS: usize = 3 * SIDE;
/// Positions of a tile of values.
const PAIRED: usize = 2 * BLOCK;
/// Lines of a row of scores: one more than its numbers need, so that the rows of a tile do not
/// share the few sets of the first-level cache that a power of two would leave them.
const SCORES: usize = STRETCH / SIDE + 1;
/// Lines of the values of 16 dimensions.
const VALUES: usize = STRETCH / PAIRED * SIDE;

/// Some rows, and the positions of a stretch.
pub(crate) struct Stretch<'a> {
    /// Elements of a head.
    pub(crate) dim: usize,
    /// The sequence's blocks, from the stretch's first position on.
    pub(crate) blocks: &'a [&'a [u32]],
    /// Where a block has the keys and the values of the head.
    pub(crate) keys: usize,
    pub(crate) values: usize,
    /// The packed rows of the queries ([`pack_queries`]).
    pub(crate) q: &'a [Line],
    /// The positions that each row sees, counted from the start of the stretch. There may be none.
    pub(crate) seen: &'a [Range<usize>],
}

/// Buffers of a thread.
#[derive(Default)]
pub(crate) struct Buffers {
    lines: Vec<Line>,
}

/// Lines of a packed query.
pub(crate) fn query_lines(dim: usize) -> usize {
    dim.div_ceil(2 * SIDE)
}

/// Packs the heads of a query: scaled, rounded to bf16, two numbers in a word, with zeros up to
/// whole lines.
///
/// # Panics
/// If `out` is too short.
pub(crate) fn pack_queries(isa: Isa, heads: &[f32], dim: usize, scale: f32, out: &mut [Line]) {
    assert!(heads.len() / dim * query_lines(dim) <= out.len(), "packed queries do not fit");
    match isa.1 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: an `Isa` implies that the machine has its instructions.
        TileUnit::Present => unsafe { pack_on_unit(heads, dim, scale, out) },
        #[cfg(test)]
        // SAFETY: portable code.
        crate::simd::TileUnit::Modelled => unsafe { pack::<super::lanes::Plain>(heads, dim, scale, out) },
        _ => unreachable!("queries for tiles on `{}`", isa.name()),
    }
}

/// Computes the states of all rows over a stretch. A state has room for its `state` elements: `dim`
/// weighted values, the maximum and the sum, and others that are overwritten.
///
/// # Panics
/// If something lies outside its slice, or a state is shorter than `dim + 16` elements.
pub(crate) fn attend(isa: Isa, s: &Stretch<'_>, buffers: &mut Buffers, states: &mut [f32], state: usize) {
    let (dim, rows) = (s.dim, s.seen.len());
    assert!(dim > 0 && state >= dim + SIDE && rows * state <= states.len(), "the states do not fit");
    assert!(rows * query_lines(dim) <= s.q.len(), "the queries do not fit");
    let len = (s.keys + dim.div_ceil(2) * BLOCK).max(s.values + BLOCK / 2 * dim);
    let mut checked = &(0..0);
    for seen in s.seen {
        if seen != checked && !seen.is_empty() {
            assert!(seen.end <= STRETCH, "positions of another stretch");
            assert!(s.blocks[seen.start / BLOCK..seen.end.div_ceil(BLOCK)].iter().all(|b| len <= b.len()), "a short block");
            checked = seen;
        }
    }
    buffers.lines.resize(ROWS * SCORES + VALUES + SIDE, Line::default());
    match isa.1 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: everything lies inside its slice (checked just above), and an `Isa` implies that
        // the machine has its instructions.
        TileUnit::Present => unsafe { attend_on_unit(s, buffers, states, state) },
        #[cfg(test)]
        // SAFETY: as above; the model is portable code.
        crate::simd::TileUnit::Modelled => unsafe {
            batches::<super::model::Model, super::lanes::Plain>(&mut super::model::Model::new(), s, buffers, states, state);
        },
        _ => unreachable!("attention on tiles on `{}`", isa.name()),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma,f16c")]
unsafe fn pack_on_unit(heads: &[f32], dim: usize, scale: f32, out: &mut [Line]) {
    // SAFETY: as for the caller.
    unsafe { pack::<V512>(heads, dim, scale, out) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma,f16c")]
unsafe fn attend_on_unit(s: &Stretch<'_>, buffers: &mut Buffers, states: &mut [f32], state: usize) {
    // SAFETY: as for the caller; the unit is the thread's only one.
    unsafe { batches::<_, V512>(&mut super::unit::Unit::new(), s, buffers, states, state) }
}

/// See [`pack_queries`].
///
/// # Safety
/// The machine must have the instructions of `L`.
#[inline(always)]
unsafe fn pack<L: Lanes>(heads: &[f32], dim: usize, scale: f32, out: &mut [Line]) {
    for (head, out) in heads.chunks_exact(dim).zip(out.chunks_exact_mut(query_lines(dim))) {
        for (x, out) in head.chunks(2 * SIDE).zip(out) {
            let mut padded = [0f32; 2 * SIDE];
            let x = match <&[f32; 2 * SIDE]>::try_from(x) {
                Ok(x) => x,
                Err(_) => {
                    padded[..x.len()].copy_from_slice(x);
                    &padded
                }
            };
            // SAFETY: both arrays have these numbers.
            unsafe {
                let scale = L::splat(scale);
                let (a, b) = (L::load(x.as_ptr()).mul(scale), L::load(x[SIDE..].as_ptr()).mul(scale));
                a.pairs(b).store(out.0.as_mut_ptr().cast());
            }
        }
    }
}

/// Up to [`ROWS`] rows.
struct Batch<'a> {
    s: &'a Stretch<'a>,
    seen: &'a [Range<usize>],
    /// The positions that any row sees, and those that all see, if there are such.
    any: Range<usize>,
    all: Range<usize>,
    q: *const Line,
    scores: *mut Line,
    /// The values of 16 dimensions.
    values: *mut Line,
    /// A tile of keys.
    keys: *mut Line,
}

/// See [`attend`].
///
/// # Safety
/// The machine must have the instructions of `T` and `L`, everything must lie inside its slice, and
/// the buffers must have their size.
#[inline(always)]
unsafe fn batches<T: Tiles, L: Lanes>(unit: &mut T, s: &Stretch<'_>, buffers: &mut Buffers, states: &mut [f32], state: usize) {
    let lines = query_lines(s.dim);
    for (i, seen) in s.seen.chunks(ROWS).enumerate() {
        let (mut from, mut to, mut all) = (STRETCH, 0, 0..STRETCH);
        for seen in seen {
            if !seen.is_empty() {
                (from, to) = (from.min(seen.start), to.max(seen.end));
            }
            all = all.start.max(seen.start)..all.end.min(seen.end);
        }
        let any = from..to;
        let states = &mut states[i * ROWS * state..][..seen.len() * state];
        if any.is_empty() {
            none(s.dim, state, states);
            continue;
        }
        // SAFETY: the caller's guarantee.
        unsafe {
            let scores = buffers.lines.as_mut_ptr();
            let values = scores.add(ROWS * SCORES);
            let b = Batch { s, seen, any, all, q: s.q.as_ptr().add(i * ROWS * lines), scores, values, keys: values.add(VALUES) };
            let mut shapes = [(SIDE, ROW); 8];
            for r in 0..3 {
                let rows = seen.len().saturating_sub(r * SIDE).min(SIDE);
                if rows > 0 {
                    (shapes[r], shapes[3 + r]) = ((rows, ROW), (rows, ROW));
                }
            }
            unit.configure_each(&shapes);
            match seen.len().div_ceil(SIDE) {
                1 => batch::<T, L, 1>(unit, &b, states, state),
                2 => batch::<T, L, 2>(unit, &b, states, state),
                _ => batch::<T, L, 3>(unit, &b, states, state),
            }
        }
    }
}

/// The states of rows that see nothing of the stretch.
#[inline(always)]
fn none(dim: usize, state: usize, states: &mut [f32]) {
    for state in states.chunks_exact_mut(state) {
        state[..dim].fill(0.0);
        (state[dim], state[dim + 1]) = (f32::NEG_INFINITY, 0.0);
    }
}

/// The rows of a batch, in `R` tiles. Tiles 0 to 2 are sums, 3 to 5 their first operands, 6 is the
/// second operand.
///
/// # Safety
/// As for [`batches`].
#[inline(always)]
unsafe fn batch<T: Tiles, L: Lanes, const R: usize>(unit: &mut T, b: &Batch<'_>, states: &mut [f32], state: usize) {
    let dim = b.s.dim;
    let mut sums = [(0f32, 0f32); ROWS];
    // SAFETY: the caller's guarantee.
    unsafe {
        scores::<T, L, R>(unit, b);
        for (r, (seen, sums)) in b.seen.iter().zip(&mut sums).enumerate() {
            *sums = softmax::<L>(b.scores.add(r * SCORES).cast(), &b.any, seen);
        }
        if !values::<T, L, R>(unit, b, &b.any, &b.all, states.as_mut_ptr(), state) {
            let mut apart = vec![0f32; states.len()];
            let mut row = 0;
            while row < b.seen.len() {
                let seen = &b.seen[row];
                let rows = b.seen[row..].iter().take_while(|other| *other == seen).count();
                values::<T, L, R>(unit, b, seen, seen, apart.as_mut_ptr(), state);
                let part = row * state..(row + rows) * state;
                states[part.clone()].copy_from_slice(&apart[part]);
                row += rows;
            }
        }
    }
    for (state, (max, sum)) in states.chunks_exact_mut(state).zip(sums) {
        (state[dim], state[dim + 1]) = (max, sum);
    }
}

/// The scores of all rows for all blocks that any row sees.
///
/// # Safety
/// As for [`batches`].
#[inline(always)]
unsafe fn scores<T: Tiles, L: Lanes, const R: usize>(unit: &mut T, b: &Batch<'_>) {
    let (key_len, steps) = (b.s.dim.div_ceil(2), query_lines(b.s.dim));
    let (whole, rest) = (key_len / SIDE, key_len % SIDE);
    let tile = |r: usize| r * SIDE * SCORES;
    let end = b.any.end.div_ceil(BLOCK);
    for block in b.any.start / BLOCK..end {
        // SAFETY: the block has the keys and values of the head; a row of scores has room for those
        // of every block of the stretch.
        unsafe {
            let words = b.s.blocks[block].as_ptr();
            let keys = words.add(b.s.keys);
            soon(b, block + 1, b.s.keys, key_len, end);
            if R == 1 {
                // so few rows wait for memory
                soon(b, block, b.s.values, b.s.dim / 2, end);
            }
            unit.zero::<0>();
            if R > 1 {
                unit.zero::<1>();
            }
            if R > 2 {
                unit.zero::<2>();
            }
            for step in 0..steps {
                let from = keys.add(step * SIDE * BLOCK);
                if step < whole {
                    unit.load::<6>(from.cast(), ROW);
                } else {
                    // the last dimensions; the other rows of the tile are another head's keys
                    for i in 0..SIDE {
                        let line = if i < rest { L::load(from.add(i * BLOCK).cast()) } else { L::splat(0.0) };
                        line.store(b.keys.add(i).cast());
                    }
                    unit.load::<6>(b.keys.cast(), ROW);
                }
                products::<T, R>(unit, b.q.add(step), steps);
            }
            let to = b.scores.add(block);
            unit.store::<0>(to.cast(), SCORES * ROW);
            if R > 1 {
                unit.store::<1>(to.add(tile(1)).cast(), SCORES * ROW);
            }
            if R > 2 {
                unit.store::<2>(to.add(tile(2)).cast(), SCORES * ROW);
            }
        }
    }
}

/// Hints that `lines` lines of a block from word `at` on will be read, if it is one before `end`.
#[inline(always)]
fn soon(b: &Batch<'_>, block: usize, at: usize, lines: usize, end: usize) {
    if block < end {
        let p = b.s.blocks[block].as_ptr().wrapping_add(at);
        for i in 0..lines {
            prefetch(p.wrapping_add(i * SIDE).cast());
        }
    }
}

/// Adds the products of the tile at hand and `R` tiles of rows that begin at `left`, `stride` lines
/// apart.
///
/// # Safety
/// As for [`batches`]; the rows must exist.
#[inline(always)]
unsafe fn products<T: Tiles, const R: usize>(unit: &mut T, left: *const Line, stride: usize) {
    // SAFETY: the caller's guarantee.
    unsafe {
        unit.load::<3>(left.cast(), stride * ROW);
        unit.add_bf16::<0, 3, 6>();
        if R > 1 {
            unit.load::<4>(left.add(SIDE * stride).cast(), stride * ROW);
            unit.add_bf16::<1, 4, 6>();
        }
        if R > 2 {
            unit.load::<5>(left.add(2 * SIDE * stride).cast(), stride * ROW);
            unit.add_bf16::<2, 5, 6>();
        }
    }
}

/// The sums of the values of positions `keys`, weighted: `dim` numbers of each row, and up to 15
/// more. False, and unfinished, if a value is not finite that some rows see and others do not; all
/// see `all`.
///
/// # Safety
/// As for [`batches`]; `out` must have `stride` numbers, `dim` and 16 at least, for each row.
#[inline(always)]
unsafe fn values<T: Tiles, L: Lanes, const R: usize>(
    unit: &mut T,
    b: &Batch<'_>,
    keys: &Range<usize>,
    all: &Range<usize>,
    out: *mut f32,
    stride: usize,
) -> bool {
    let tiles = keys.start / PAIRED..keys.end.div_ceil(PAIRED);
    for column in (0..b.s.dim).step_by(SIDE) {
        // SAFETY: the buffer has room for the tiles of a stretch, and blocks of positions that
        // somebody sees exist.
        unsafe {
            for tile in tiles.clone() {
                for half in 0..2 {
                    let block = 2 * tile + half;
                    let to = b.values.add((2 * (tile - tiles.start) + half) * (SIDE / 2));
                    if !copy::<L>(b.s, block, column, keys, all, to) {
                        return false;
                    }
                }
            }
            unit.zero::<0>();
            if R > 1 {
                unit.zero::<1>();
            }
            if R > 2 {
                unit.zero::<2>();
            }
            for tile in tiles.clone() {
                unit.load::<6>(b.values.add((tile - tiles.start) * SIDE).cast(), ROW);
                products::<T, R>(unit, b.scores.add(tile), SCORES);
            }
            let to = out.add(column);
            unit.store::<0>(to.cast(), 4 * stride);
            if R > 1 {
                unit.store::<1>(to.add(SIDE * stride).cast(), 4 * stride);
            }
            if R > 2 {
                unit.store::<2>(to.add(2 * SIDE * stride).cast(), 4 * stride);
            }
        }
    }
    true
}

/// Copies 16 dimensions of a block's values, from `column` on: eight lines, with zeros for
/// positions outside of `keys` and for dimensions that are missing. Returns false if a value at a
/// position outside of `all` is not finite.
///
/// # Safety
/// As for [`batches`].
#[inline(always)]
unsafe fn copy<L: Lanes>(s: &Stretch<'_>, block: usize, column: usize, keys: &Range<usize>, all: &Range<usize>, to: *mut Line) -> bool {
    const EXPONENT: u32 = 0x7f80;
    let positions = block * BLOCK..(block + 1) * BLOCK;
    let n = (s.dim - column).min(SIDE);
    // SAFETY: the block exists if any of its positions does, with eight times `dim` words from
    // `values` on.
    unsafe {
        if keys.start >= positions.end || keys.end <= positions.start {
            for i in 0..SIDE / 2 {
                L::splat(0.0).store(to.add(i).cast());
            }
            return true;
        }
        let from = s.blocks[block].as_ptr().add(s.values + column);
        let common = all.start <= positions.start && positions.end <= all.end;
        if common && n == SIDE {
            for i in 0..SIDE / 2 {
                L::load(from.add(i * s.dim).cast()).store(to.add(i).cast());
            }
            return true;
        }
        // the largest exponents, in vectors, since this is done for every unit of rows
        let mut largest = [0u32; SIDE];
        for i in 0..SIDE / 2 {
            let mut line = [0u32; SIDE];
            if n == SIDE {
                line = from.add(i * s.dim).cast::<[u32; SIDE]>().read_unaligned();
            } else {
                std::ptr::copy_nonoverlapping(from.add(i * s.dim), line.as_mut_ptr(), n);
            }
            let first = positions.start + 2 * i;
            let (kept, checked) = (mask(keys, first), !mask(all, first));
            for (word, largest) in line.iter_mut().zip(&mut largest) {
                *word &= kept;
                let word = *word & checked;
                *largest = (*largest).max(word & EXPONENT).max(word >> 16 & EXPONENT);
            }
            *to.add(i) = Line(line);
        }
        let mut finite = true;
        for largest in largest {
            finite &= largest < EXPONENT;
        }
        finite
    }
}

/// The bits of a pair of values that belong to positions in a range: `first` and the next one.
#[inline(always)]
fn mask(range: &Range<usize>, first: usize) -> u32 {
    let low = if range.start <= first && first < range.end { 0xffff } else { 0 };
    let high = if range.start <= first + 1 && first + 1 < range.end { 0xffff_0000 } else { 0 };
    low | high
}

/// Replaces the scores of a row by probabilities, not yet divided by their sum: for positions `2 i`
/// and `2 i + 1` a word at `i`, of bf16, in whole lines, for all positions in `any`. They are zero
/// for positions that are not in `seen`, and where they would be less than 2^-120. Returns the
/// maximum and the sum of the rounded probabilities.
///
/// # Safety
/// As for [`batches`]; the row must have [`STRETCH`] numbers.
#[inline(always)]
unsafe fn softmax<L: Lanes>(row: *mut f32, any: &Range<usize>, seen: &Range<usize>) -> (f32, f32) {
    let (mut first, mut last) = (seen.start / PAIRED, seen.end.div_ceil(PAIRED));
    let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0);
    // SAFETY: the caller's guarantee.
    unsafe {
        if seen.is_empty() {
            (first, last) = (any.start / PAIRED, any.start / PAIRED);
        } else {
            // other scores in these lines are of positions that the row does not see, or no scores
            for tile in [first, last - 1] {
                for at in [tile * PAIRED, tile * PAIRED + SIDE] {
                    let (from, to) = (seen.start.max(at) - at, seen.end.max(at) - at);
                    if from > 0 || to < SIDE {
                        L::load(row.add(at)).limit(from, to).store(row.add(at));
                    }
                }
            }
            let (mut even, mut odd) = (L::splat(f32::NEG_INFINITY), L::splat(f32::NEG_INFINITY));
            for tile in first..last {
                even = even.larger(L::load(row.add(tile * PAIRED)));
                odd = odd.larger(L::load(row.add(tile * PAIRED + SIDE)));
            }
            let mut lanes = [0f32; SIDE];
            even.larger(odd).store(lanes.as_mut_ptr());
            max = reduce(lanes, |a, b| if b > a { b } else { a });
            let shift = L::splat(-max * std::f32::consts::LOG2_E);
            let mut sums = L::splat(0.0);
            for tile in first..last {
                let p = row.add(tile * PAIRED);
                let (a, b) = (exp2::<L>(L::load(p), shift), exp2::<L>(L::load(p.add(SIDE)), shift));
                let words = a.pairs(b);
                sums = sums.add(words.low().add(words.high()));
                words.store(row.add(tile * SIDE));
            }
            sums.store(lanes.as_mut_ptr());
            sum = reduce(lanes, |a, b| a + b);
        }
        for tile in any.start / PAIRED..first {
            L::splat(0.0).store(row.add(tile * SIDE));
        }
        for tile in last..any.end.div_ceil(PAIRED) {
            L::splat(0.0).store(row.add(tile * SIDE));
        }
    }
    (max, sum)
}

/// `2^(x * log2(e) + shift)` within 4 millionths of it, or 0 if it is less than 2^-120. The
/// exponent must not exceed 1 by much.
///
/// The polynomial is the best one of its degree for 2^x between -0.5 and 0.5 (Remez' algorithm),
/// with 1 as its first coefficient, so that the largest probability is 1.
///
/// # Safety
/// The machine must have the instructions of `L`.
#[inline(always)]
unsafe fn exp2<L: Lanes>(x: L, shift: L) -> L {
    // 1.5 * 2^23, which rounds to an integer when it is added, and the bias of exponents
    const ROUND: f32 = 12_582_912.0 + 127.0;
    // SAFETY: the caller's guarantee.
    unsafe {
        let x = x.mul_add(L::splat(std::f32::consts::LOG2_E), shift);
        let rounded = x.add(L::splat(ROUND));
        let rest = x.sub(rounded.sub(L::splat(ROUND)));
        let p = L::splat(0.009_570_102);
        let p = p.mul_add(rest, L::splat(0.055_917_86));
        let p = p.mul_add(rest, L::splat(0.240_247_44));
        let p = p.mul_add(rest, L::splat(0.693_121_8));
        let p = p.mul_add(rest, L::splat(1.0));
        p.mul(rounded.power()).zero_if_less(x, L::splat(-120.0))
    }
}

//! Products of bf16 on tile units (AMX). They sum in another order than `portable.rs`: see
//! [`model`], which defines it.
//!
//! The instructions are behind a trait, [`Tiles`], with two implementations: the machine's unit
//! ([`unit`]), and a portable model of it, over which tests run all the rest on any machine.
//!
//! A tile has 16 rows of 16 words. A product has 32 rows and 32 columns at a time, in four tiles of
//! sums. Left factors are copied into tiles once for all columns. Right factors are read where they
//! lie, but for those at an end. What is missing to whole tiles is zero.
// without x86-64 nothing but tests has tiles
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use crate::element::Element;
use crate::panels::Panels;
use crate::product::{Left, Right, Segment, Target};

#[cfg(test)]
pub(super) mod model;
#[cfg(target_arch = "x86_64")]
pub(super) mod unit;

/// Rows of a tile, and its words in a row.
const SIDE: usize = 16;
/// Rows and columns of a product at a time.
const BOTH: usize = 2 * SIDE;
/// Bytes of a row of a tile.
const ROW: usize = 4 * SIDE;
/// Steps whose left factor is packed at a time: 32 KiB, most of a first-level cache. Sums of
/// products with more are stored in between.
const DEEP: usize = 16;
/// Panels of the right factor that stay in the second-level cache while all rows are computed: at
/// most so many, and at most so many steps of all (1 MiB).
const PANELS: usize = 32;
const NEAR: usize = 512;
/// Bytes of the right factor between what is read and what is fetched.
const AHEAD: usize = 4 * 4 * SIDE * BOTH;
/// Most segments of a product.
const SEGMENTS: usize = 4;

/// One step of 32 rows of the left factor: two tiles.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Rows([[u32; SIDE]; BOTH]);

/// One step of 32 columns of the right factor: two tiles beside each other.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Columns([[u32; BOTH]; SIDE]);

/// The bits of 32 x 32 sums.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Sums([[u32; BOTH]; BOTH]);

/// The buffers of a thread.
pub(super) struct Scratch {
    left: [Rows; DEEP],
    right: [Columns; DEEP],
    sums: Sums,
    turned: Sums,
    /// Sums of each panel whose steps have not all been added.
    kept: [Sums; PANELS],
}

impl Scratch {
    #[allow(clippy::large_stack_frames)]
    pub(super) fn new() -> Box<Self> {
        let (zero, columns) = (Sums([[0; BOTH]; BOTH]), Columns([[0; BOTH]; SIDE]));
        let left = [Rows([[0; SIDE]; BOTH]); DEEP];
        Box::new(Self { left, right: [columns; DEEP], sums: zero, turned: zero, kept: [zero; PANELS] })
    }
}

/// A tile unit. Contract of all operations: the machine has the instructions, and pointers are
/// valid for 16 rows of 64 bytes, `stride` bytes apart.
pub(super) trait Tiles {
    unsafe fn zero<const T: usize>(&mut self);
    unsafe fn load<const T: usize>(&mut self, p: *const u32, stride: usize);
    unsafe fn store<const T: usize>(&mut self, p: *mut u32, stride: usize);
    /// Adds the products of pairs of bf16 to the f32 of tile `C`.
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self);
    /// Exchanges rows and columns, between rows that are `stride` and `to_stride` bytes apart. It
    /// needs no tiles.
    unsafe fn transpose(from: *const u32, stride: usize, to: *mut u32, to_stride: usize);
    /// Hints that the address, which need not be valid, will be read soon.
    fn prefetch(p: *const u32);
}

/// A step: the segment, its first word, and the number of words.
#[derive(Clone, Copy)]
struct Step {
    segment: usize,
    first: usize,
    words: usize,
}

/// The next step at `at`, which is moved on.
#[inline(always)]
fn next<E: Element>(segments: &[Segment<'_, E>], at: &mut (usize, usize)) -> Option<Step> {
    while let Some(segment) = segments.get(at.0) {
        let (segment_at, first) = *at;
        if first < segment.depth {
            at.1 = first + SIDE;
            return Some(Step { segment: segment_at, first, words: (segment.depth - first).min(SIDE) });
        }
        *at = (segment_at + 1, 0);
    }
    None
}

/// See [`crate::product::product`], which has checked that everything fits.
///
/// # Safety
/// The machine must have the instructions of `T`.
#[inline(always)]
unsafe fn product<T: Tiles, E: Element>(
    unit: &mut T,
    s: &mut Scratch,
    (m, n): (usize, usize),
    alpha: f32,
    segments: &[Segment<'_, E>],
    target: &mut Target<'_, E>,
) {
    assert!(segments.len() <= SEGMENTS, "a product of {} segments", segments.len());
    let steps: usize = segments.iter().map(|segment| segment.depth.div_ceil(SIDE)).sum();
    // The transpose of a product of columns is one as well, with the same sums. Transposing few
    // sums is faster than transposing the left factor of many rows for few columns.
    let mut exchanged = [Segment::<E>::none(); SEGMENTS];
    let mut turn = n <= BOTH && n < m && steps > 2;
    for (to, from) in exchanged.iter_mut().zip(segments).filter(|(_, from)| from.depth > 0) {
        let Left::Columns { words, ld } = from.left else {
            turn = false;
            break;
        };
        let left = Left::Columns { words: from.right.words, ld: from.right.step };
        *to = Segment { left, right: Right::rows(words, ld), depth: from.depth };
    }
    let (segments, m, n) = if turn { (&exchanged[..], n, m) } else { (segments, m, n) };
    let width = (NEAR / steps.max(1)).clamp(1, PANELS) * BOTH;
    for stretch in (0..n).step_by(width) {
        let stretch_end = (stretch + width).min(n);
        for i in (0..m).step_by(BOTH) {
            let rows = (m - i).min(BOTH);
            let (mut at, mut begun) = ((0, 0), false);
            loop {
                let mut packed = [Step { segment: 0, first: 0, words: 0 }; DEEP];
                let mut count = 0;
                while count < DEEP
                    && let Some(step) = next(segments, &mut at)
                {
                    packed[count] = step;
                    // SAFETY: as the caller guarantees.
                    unsafe { pack::<T, E>(&mut s.left[count], &segments[step.segment], step, i, rows) };
                    count += 1;
                }
                // looked at with a copy: this step is packed in the next round
                let last = next(segments, &mut { at }).is_none();
                for (panel, j) in (stretch..stretch_end).step_by(BOTH).enumerate() {
                    let columns = (n - j).min(BOTH);
                    let mut right = [(std::ptr::null(), 0, false); DEEP];
                    for ((right, step), edge) in right.iter_mut().zip(&packed[..count]).zip(&mut s.right) {
                        *right = find(edge, &segments[step.segment].right, *step, j, columns);
                    }
                    let (left, right) = (&s.left[..count], &right[..count]);
                    let kept = &mut s.kept[panel];
                    let from = if begun { &raw const *kept } else { std::ptr::null() };
                    let to = if last { &raw mut s.sums } else { &raw mut *kept };
                    // SAFETY: `find` gives addresses of whole tiles; as the caller guarantees.
                    unsafe {
                        match (rows > SIDE, columns > SIDE) {
                            (true, true) => block::<T, 2, 2>(unit, left, right, from, to),
                            (true, false) => block::<T, 2, 1>(unit, left, right, from, to),
                            (false, true) => block::<T, 1, 2>(unit, left, right, from, to),
                            (false, false) => block::<T, 1, 1>(unit, left, right, from, to),
                        }
                    }
                    if last && turn {
                        // SAFETY: as the caller guarantees.
                        unsafe { transpose::<T>(&s.sums, &mut s.turned, rows, columns) };
                        put(&mut s.turned, alpha, (columns, rows), (j, i), target);
                    } else if last {
                        put(&mut s.sums, alpha, (rows, columns), (i, j), target);
                    }
                }
                if last {
                    break;
                }
                begun = true;
            }
        }
    }
}

/// Packs a step of the rows `i..i + rows` of a left factor. What is missing becomes zero.
///
/// # Safety
/// The machine must have the instructions of `T`.
#[inline(always)]
unsafe fn pack<T: Tiles, E: Element>(to: &mut Rows, segment: &Segment<'_, E>, step: Step, i: usize, rows: usize) {
    match segment.left {
        Left::Rows { data, ld } => {
            let mut kept = [0u32; SIDE];
            for (at, kept) in kept.iter_mut().enumerate() {
                *kept = if at < step.words { u32::MAX } else { 0 };
            }
            for (r, to) in to.0.iter_mut().enumerate() {
                if r >= rows {
                    *to = [0; SIDE];
                    continue;
                }
                let row = &data[(i + r) * ld + step.first * E::PER_WORD..];
                match row.get(..SIDE * E::PER_WORD) {
                    Some(row) => {
                        const { assert!(size_of::<E>() * E::PER_WORD == 4) };
                        // SAFETY: these elements are 64 bytes, which may be read as words: on
                        // x86-64 the first element of a word is its lower half.
                        let words = unsafe { row.as_ptr().cast::<[u32; SIDE]>().read_unaligned() };
                        for ((to, word), kept) in to.iter_mut().zip(words).zip(kept) {
                            *to = word & kept;
                        }
                    }
                    None => {
                        *to = [0; SIDE];
                        for (to, word) in to.iter_mut().zip(row.chunks_exact(E::PER_WORD)).take(step.words) {
                            *to = E::word(word[0], word[E::PER_WORD - 1]);
                        }
                    }
                }
            }
        }
        Left::Columns { words, ld } => {
            for (half, to) in to.0.chunks_exact_mut(SIDE).enumerate() {
                let (first, count) = (i + half * SIDE, rows.saturating_sub(half * SIDE).min(SIDE));
                let mut square = [[0u32; SIDE]; SIDE];
                if count == 0 {
                    break; // a tile that is not used
                }
                for (p, square) in square.iter_mut().enumerate().take(step.words) {
                    let from = &words[(step.first + p) * ld + first..];
                    match from.first_chunk::<SIDE>() {
                        // further columns give rows that are not used
                        Some(from) => *square = *from,
                        None => square[..count].copy_from_slice(&from[..count]),
                    }
                }
                // SAFETY: both are 16 rows of 16 words.
                unsafe { T::transpose(square.as_ptr().cast(), ROW, to.as_mut_ptr().cast(), ROW) };
            }
        }
    }
}

/// Two tiles of a right factor at column `j`: their address, the bytes between their rows, and
/// whether what follows is likely to be read next. They are copied to `edge` if words are missing.
#[inline(always)]
fn find(edge: &mut Columns, right: &Right<'_>, step: Step, j: usize, columns: usize) -> (*const u32, usize, bool) {
    let first = j / Panels::COLUMNS * right.panel + j % Panels::COLUMNS + step.first * right.step;
    // further columns, which may be any words, give columns that are not used
    let wide = if columns > SIDE { BOTH } else { SIDE };
    if step.words == SIDE
        && let Some(words) = right.words.get(first..first + (SIDE - 1) * right.step + wide)
    {
        return (words.as_ptr(), 4 * right.step, right.step == BOTH);
    }
    for (p, edge) in edge.0.iter_mut().enumerate() {
        if p >= step.words {
            *edge = [0; BOTH];
            continue;
        }
        let words = &right.words[first + p * right.step..];
        match words.first_chunk::<BOTH>() {
            Some(words) => *edge = *words,
            None => edge[..columns].copy_from_slice(&words[..columns]),
        }
    }
    (edge.0.as_ptr().cast(), 4 * BOTH, false)
}

/// Adds steps to `R` by `C` tiles of sums, and writes them to `to`. A null `from` means zero.
///
/// # Safety
/// The machine must have the instructions of `T`; the addresses in `right` must be those of `C`
/// tiles, and `from` and `to` valid.
#[inline(always)]
unsafe fn block<T: Tiles, const R: usize, const C: usize>(
    unit: &mut T,
    left: &[Rows],
    right: &[(*const u32, usize, bool)],
    from: *const Sums,
    to: *mut Sums,
) {
    // words from a tile of sums to that below it, and bytes between rows
    const DOWN: usize = SIDE * BOTH;
    const APART: usize = 4 * BOTH;
    // SAFETY: as the caller guarantees.
    unsafe {
        if from.is_null() {
            unit.zero::<0>();
            unit.zero::<1>();
            unit.zero::<2>();
            unit.zero::<3>();
        } else {
            let from = from.cast::<u32>();
            unit.load::<0>(from, APART);
            unit.load::<1>(from.add(SIDE), APART);
            unit.load::<2>(from.add(DOWN), APART);
            unit.load::<3>(from.add(DOWN + SIDE), APART);
        }
        for (left, (right, stride, contiguous)) in left.iter().zip(right) {
            let left = left.0.as_ptr().cast::<u32>();
            if *contiguous {
                let soon = right.wrapping_byte_add(AHEAD);
                for line in 0..2 * SIDE {
                    T::prefetch(soon.wrapping_byte_add(line * ROW));
                }
            }
            unit.load::<4>(left, ROW);
            unit.load::<6>(*right, *stride);
            unit.multiply::<0, 4, 6>();
            if C > 1 {
                unit.load::<7>(right.add(SIDE), *stride);
                unit.multiply::<1, 4, 7>();
            }
            if R > 1 {
                unit.load::<5>(left.add(SIDE * SIDE), ROW);
                unit.multiply::<2, 5, 6>();
                if C > 1 {
                    unit.multiply::<3, 5, 7>();
                }
            }
        }
        let to = to.cast::<u32>();
        unit.store::<0>(to, APART);
        if C > 1 {
            unit.store::<1>(to.add(SIDE), APART);
        }
        if R > 1 {
            unit.store::<2>(to.add(DOWN), APART);
            if C > 1 {
                unit.store::<3>(to.add(DOWN + SIDE), APART);
            }
        }
    }
}

/// Exchanges rows and columns of the tiles that have `rows` and `columns`.
///
/// # Safety
/// The machine must have the instructions of `T`.
#[inline(always)]
unsafe fn transpose<T: Tiles>(sums: &Sums, turned: &mut Sums, rows: usize, columns: usize) {
    for r in (0..rows).step_by(SIDE) {
        for c in (0..columns).step_by(SIDE) {
            let (from, to) = (&raw const sums.0[r][c], &raw mut turned.0[c][r]);
            // SAFETY: 16 rows of 16 words begin at each.
            unsafe { T::transpose(from, 4 * BOTH, to, 4 * BOTH) };
        }
    }
}

/// Writes sums to the target, from row `i` and column `j` on. They are overwritten.
#[inline(always)]
fn put<E: Element>(sums: &mut Sums, alpha: f32, (rows, columns): (usize, usize), (i, j): (usize, usize), target: &mut Target<'_, E>) {
    for (r, sums) in sums.0.iter_mut().enumerate().take(rows) {
        let from = |ld: usize| (i + r) * ld + j;
        match target {
            Target::Store { out, ld } => copy(&times(sums, alpha), &mut out[from(*ld)..][..columns]),
            Target::Add { out, ld } => {
                let out = &mut out[from(*ld)..][..columns];
                copy(&plus(times(sums, alpha), out), out);
            }
            Target::Sum { out, ld, addend } => {
                let addend = &addend[from(*ld)..][..columns];
                copy(&plus(times(sums, alpha), addend), &mut out[from(*ld)..][..columns]);
            }
            Target::Round { .. } => *sums = bits(times(sums, alpha)),
            Target::RoundSum { ld, addend, .. } => *sums = bits(plus(times(sums, alpha), &addend[from(*ld)..][..columns])),
        }
    }
    let (Target::Round { out, ld } | Target::RoundSum { out, ld, .. }) = target else { return };
    // all rows in one loop: a loop over 32 numbers is unrolled and then vectorised badly
    let mut all = [[E::default(); BOTH]; BOTH];
    for (to, sum) in all.as_flattened_mut()[..rows * BOTH].iter_mut().zip(sums.0.as_flattened()) {
        *to = E::round(f32::from_bits(*sum));
    }
    for (r, row) in all.iter().enumerate().take(rows) {
        copy(row, &mut out[(i + r) * *ld + j..][..columns]);
    }
}

#[inline(always)]
fn bits(sums: [f32; BOTH]) -> [u32; BOTH] {
    let mut all = [0; BOTH];
    for (to, sum) in all.iter_mut().zip(sums) {
        *to = sum.to_bits();
    }
    all
}

#[inline(always)]
fn times(sums: &[u32; BOTH], alpha: f32) -> [f32; BOTH] {
    let mut all = [0.0; BOTH];
    for (to, sum) in all.iter_mut().zip(sums) {
        *to = alpha * f32::from_bits(*sum);
    }
    all
}

#[inline(always)]
fn plus(mut sums: [f32; BOTH], addend: &[f32]) -> [f32; BOTH] {
    let mut all = [0.0; BOTH];
    // apart: a copy of known length is a move of vectors
    match <&[f32; BOTH]>::try_from(addend) {
        Ok(addend) => all = *addend,
        Err(_) => copy_part(addend, &mut all),
    }
    for (sum, addend) in sums.iter_mut().zip(all) {
        *sum += addend;
    }
    sums
}

/// The first numbers of a row to `to`.
#[inline(always)]
fn copy<N: Copy>(from: &[N; BOTH], to: &mut [N]) {
    match <&mut [N; BOTH]>::try_from(&mut *to) {
        Ok(to) => *to = *from,
        Err(_) => copy_part(from, to),
    }
}

/// As many numbers as both have, of which a half is the usual part.
#[inline(always)]
fn copy_part<N: Copy>(from: &[N], to: &mut [N]) {
    let count = from.len().min(to.len());
    match (from.first_chunk::<SIDE>(), to.first_chunk_mut::<SIDE>()) {
        (Some(from), Some(to)) if count == SIDE => *to = *from,
        _ => to[..count].copy_from_slice(&from[..count]),
    }
}

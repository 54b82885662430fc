//! The matrix product of attention. Its right factor, keys or values, consists of vectors of words
//! at several places in memory.

use std::marker::PhantomData;

#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{Isa, Level, TileUnit, Vector, portable};
use crate::KvFormat;

/// Number of vectors in a row of a register tile.
pub(crate) const COLUMNS: usize = 4;

/// What the words of the factors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// f32 in both.
    F32,
    /// The right factor's are pairs of bf16, which are widened. The left one's are f32, two for
    /// each pair.
    Widened,
    /// Pairs of bf16 in both. The left factor's are the bits of an f32.
    Pairs,
    /// Pairs of bf16 in both, on tiles, which do everything in their own way.
    Tiles,
}

impl Words {
    /// How this machine multiplies keys and values in `format`.
    pub(crate) fn of(isa: Isa, format: KvFormat) -> Self {
        if isa.1 != TileUnit::None && format == KvFormat::Bf16 {
            return Self::Tiles;
        }
        match (format, isa.0) {
            (KvFormat::F32, _) => Self::F32,
            #[cfg(target_arch = "x86_64")]
            (KvFormat::Bf16, Level::Avx512Full) => Self::Pairs,
            (KvFormat::Bf16, _) => Self::Widened,
        }
    }

    /// Words of the left factor for a vector of the right one.
    pub(crate) fn left(self) -> usize {
        match self {
            Self::F32 | Self::Pairs | Self::Tiles => 1,
            Self::Widened => 2,
        }
    }
}

/// Which numbers of a pair count; the other one may be anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keep {
    Both,
    First,
    Second,
}

impl Keep {
    #[inline(always)]
    fn mask(self) -> u32 {
        match self {
            Self::Both => !0,
            Self::First => 0xffff,
            Self::Second => 0xffff_0000,
        }
    }
}

/// A span of the sum: for `i < count`, the words of a row of the left factor from
/// `at + i * left` on ([`Words::left`]) multiply the vector at `b[column][i * apart]`, for each
/// column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'a, const C: usize> {
    pub(crate) at: usize,
    pub(crate) count: usize,
    /// What counts of the right factor's words, if they are pairs.
    pub(crate) keep: Keep,
    pub(crate) b: [&'a [u32]; C],
}

/// For all rows `r` and columns `c` of vectors:
/// `out[r * out_stride + c * lanes ..] += sum a[r * a_stride + i] * b_c[i]` over all spans in
/// order. Each number is one chain of multiply-adds. Vectors have [`Isa::lanes`] words, or
/// `last` if `C` is 1 and `last` is smaller. With `fresh`, the chains start at zero instead of the
/// value in `out`.
///
/// # Panics
/// If an index lies outside its slice.
#[allow(clippy::too_many_arguments)]
pub(crate) fn multiply<const C: usize>(
    isa: Isa,
    format: KvFormat,
    rows: usize,
    a: &[f32],
    a_stride: usize,
    spans: &[Span<'_, C>],
    apart: usize,
    last: usize,
    fresh: bool,
    out: &mut [f32],
    out_stride: usize,
) {
    if rows == 0 {
        return;
    }
    let lanes = isa.lanes();
    let last = if C == 1 { last.min(lanes) } else { lanes };
    let row_len = (C - 1) * lanes + last;
    let left = Words::of(isa, format).left();
    assert!((rows - 1) * out_stride + row_len <= out.len() && (rows == 1 || row_len <= out_stride), "the outputs do not fit");
    for span in spans {
        assert!((rows - 1) * a_stride + span.at + span.count * left <= a.len(), "the rows do not fit");
        assert!(span.count == 0 || span.b.iter().all(|b| (span.count - 1) * apart + last <= b.len()), "the vectors do not fit");
    }
    let t = Tile { rows, a: a.as_ptr(), a_stride, spans, apart, last, fresh, out: out.as_mut_ptr(), out_stride };
    // SAFETY: everything lies inside its slice (checked just above), and an `Isa` implies that the
    // machine has its instructions.
    unsafe {
        match (isa.0, format) {
            (Level::Portable, KvFormat::F32) => all_rows::<Plain<portable::Array>, C>(&t),
            (Level::Portable, KvFormat::Bf16) => all_rows::<Widened<portable::Array>, C>(&t),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2, KvFormat::F32) => rows_256::<Plain<x86::V256>, C>(&t),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx2, KvFormat::Bf16) => rows_256::<Widened<x86::V256>, C>(&t),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512 | Level::Avx512Full, KvFormat::F32) => rows_512::<Plain<x86::V512>, C>(&t),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512, KvFormat::Bf16) => rows_512::<Widened<x86::V512>, C>(&t),
            #[cfg(target_arch = "x86_64")]
            (Level::Avx512Full, KvFormat::Bf16) => rows_512_pairs(&t),
        }
    }
}

/// The product of a number or pair of the left factor and a vector of the right one. Contract of
/// all operations: as for [`Vector`].
pub(super) trait Product {
    type Acc: Vector;
    /// What is multiplied.
    type Factor: Copy;
    /// The numbers of a word (1 or 2) that are multiplied one after the other.
    const HALVES: usize;
    /// The left factor for all lanes.
    unsafe fn splat(a: *const f32) -> Self::Factor;
    /// A vector of the right factor, of which the bits in `keep` count.
    unsafe fn factor(words: Self::Acc, half: usize, keep: u32) -> Self::Factor;
    unsafe fn step(acc: Self::Acc, a: Self::Factor, b: Self::Factor) -> Self::Acc;
}

/// f32 times f32.
struct Plain<V>(PhantomData<V>);

impl<V: Vector> Product for Plain<V> {
    type Acc = V;
    type Factor = V;
    const HALVES: usize = 1;

    #[inline(always)]
    unsafe fn splat(a: *const f32) -> V {
        // SAFETY: as for the callee.
        unsafe { V::splat(a) }
    }

    #[inline(always)]
    unsafe fn factor(words: V, _: usize, _: u32) -> V {
        words
    }

    #[inline(always)]
    unsafe fn step(acc: V, a: V, b: V) -> V {
        // SAFETY: as for the callee.
        unsafe { acc.add_product(a, b) }
    }
}

/// f32 times bf16: the first numbers of the pairs, then the second ones.
struct Widened<V>(PhantomData<V>);

impl<V: Vector> Product for Widened<V> {
    type Acc = V;
    type Factor = V;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn splat(a: *const f32) -> V {
        // SAFETY: as for the callee.
        unsafe { V::splat(a) }
    }

    #[inline(always)]
    unsafe fn factor(words: V, half: usize, keep: u32) -> V {
        // SAFETY: as for the callee.
        unsafe { words.widen(half, keep) }
    }

    #[inline(always)]
    unsafe fn step(acc: V, a: V, b: V) -> V {
        // SAFETY: as for the callee.
        unsafe { acc.add_product(a, b) }
    }
}

struct Tile<'a, const C: usize> {
    rows: usize,
    a: *const f32,
    a_stride: usize,
    spans: &'a [Span<'a, C>],
    apart: usize,
    last: usize,
    fresh: bool,
    out: *mut f32,
    out_stride: usize,
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma")]
unsafe fn rows_512_pairs<const C: usize>(t: &Tile<'_, C>) {
    // SAFETY: as for the caller.
    unsafe { all_rows::<x86::Pairs, C>(t) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn rows_512<P: Product, const C: usize>(t: &Tile<'_, C>) {
    // SAFETY: as for the caller.
    unsafe { all_rows::<P, C>(t) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn rows_256<P: Product, const C: usize>(t: &Tile<'_, C>) {
    // SAFETY: as for the caller.
    unsafe { all_rows::<P, C>(t) }
}

/// # Safety
/// The machine must have the instructions of `P`, and the pointers must be valid.
#[inline(always)]
unsafe fn all_rows<P: Product, const C: usize>(t: &Tile<'_, C>) {
    let mut row = 0;
    while row < t.rows {
        let n = (t.rows - row).min(P::Acc::ROWS);
        // SAFETY: the rows exist.
        unsafe {
            match n {
                1 => tile::<P, C, 1>(t, row),
                2 => tile::<P, C, 2>(t, row),
                3 => tile::<P, C, 3>(t, row),
                4 => tile::<P, C, 4>(t, row),
                5 => tile::<P, C, 5>(t, row),
                _ => tile::<P, C, 6>(t, row),
            }
        }
        row += n;
    }
}

/// # Safety
/// The machine must have the instructions of `V`, and `p` must be valid for what is read.
#[inline(always)]
unsafe fn load<V: Vector>(p: *const f32, whole: bool, n: usize) -> V {
    // SAFETY: as for the caller.
    unsafe { if whole { V::load(p) } else { V::load_part(p, n) } }
}

/// # Safety
/// As for [`all_rows`]; rows `row..row + R` must exist.
#[inline(always)]
unsafe fn tile<P: Product, const C: usize, const R: usize>(t: &Tile<'_, C>, row: usize) {
    let lanes = P::Acc::LANES;
    let whole = C > 1 || t.last == lanes;
    // SAFETY: `multiply` checked all that is read and written here.
    unsafe {
        let out = t.out.add(row * t.out_stride);
        let mut acc = [[P::Acc::zero(); C]; R];
        if !t.fresh {
            for (r, acc) in acc.iter_mut().enumerate() {
                for (c, acc) in acc.iter_mut().enumerate() {
                    *acc = load::<P::Acc>(out.add(r * t.out_stride + c * lanes), whole, t.last);
                }
            }
        }
        for span in t.spans {
            let keep = span.keep.mask();
            let mut a = t.a.add(row * t.a_stride + span.at);
            let mut b = [std::ptr::null::<f32>(); C];
            for (b, slice) in b.iter_mut().zip(&span.b) {
                *b = slice.as_ptr().cast();
            }
            for i in 0..span.count {
                for half in 0..P::HALVES {
                    let mut vectors = [P::splat(a); C];
                    for (v, b) in vectors.iter_mut().zip(b) {
                        *v = P::factor(load::<P::Acc>(b.add(i * t.apart), whole, t.last), half, keep);
                    }
                    for (r, acc) in acc.iter_mut().enumerate() {
                        let x = P::splat(a.add(r * t.a_stride));
                        for (acc, v) in acc.iter_mut().zip(vectors) {
                            *acc = P::step(*acc, x, v);
                        }
                    }
                    a = a.add(1);
                }
            }
        }
        for (r, acc) in acc.into_iter().enumerate() {
            for (c, acc) in acc.into_iter().enumerate() {
                let to = out.add(r * t.out_stride + c * lanes);
                if whole { acc.store(to) } else { acc.store_part(to, t.last) }
            }
        }
    }
}

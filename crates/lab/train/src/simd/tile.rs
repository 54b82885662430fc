//! Products with AVX-512, in f32 or with bf16 factors (`vdpbf16ps`). A tile of up to 12 x 32 sums is
//! kept in registers over all segments. The sums are those of `portable.rs`, to the bit.

use std::arch::x86_64::*;

use crate::element::Element;
use crate::panels::Panels;
use crate::product::{Left, Segment, Target};

/// Rows of a tile of 32 columns: 24 sums, 2 columns and 1 broadcast in 32 registers.
const ROWS: usize = 12;
/// Rows whose left factor should stay in the L2 cache while all panels pass.
const BLOCK: usize = 20 * ROWS;
/// Most segments of a product.
const SEGMENTS: usize = 4;

/// One segment, at the first row of a tile and the first column of a panel.
#[derive(Clone, Copy)]
struct Term {
    a: *const u8,
    /// Bytes between rows, and between steps, of the left factor.
    row: usize,
    step: usize,
    b: *const f32,
    b_step: usize,
    panel: usize,
    depth: usize,
}

/// Where the results of a product go.
#[derive(Clone, Copy)]
struct Sink {
    alpha: f32,
    /// f32 or, with `round`, bf16.
    out: *mut u8,
    round: bool,
    ld: usize,
    /// Null: nothing is added.
    addend: *const f32,
}

/// # Safety
/// The CPU must have AVX-512 F, BW, DQ and VL, and for bf16 also AVX512_BF16. Factors and target
/// must fit `m` and `n`, as `product::product` checks.
pub(super) unsafe fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) {
    const NONE: Term = Term { a: std::ptr::null(), row: 0, step: 0, b: std::ptr::null(), b_step: 0, panel: 0, depth: 0 };
    assert!(segments.len() <= SEGMENTS, "a product of {} segments", segments.len());
    let mut terms = [NONE; SEGMENTS];
    for (term, s) in terms.iter_mut().zip(segments) {
        let (a, row, step) = match s.left {
            Left::Rows { data, ld } => (data.as_ptr().cast(), ld * size_of::<E>(), 4),
            Left::Columns { words, ld } => (words.as_ptr().cast(), 4, ld * 4),
        };
        *term = Term { a, row, step, b: s.right.words.as_ptr().cast(), b_step: s.right.step, panel: s.right.panel, depth: s.depth };
    }
    let terms = &mut terms[..segments.len()];
    let bf16 = E::PER_WORD == 2;
    let none = std::ptr::null();
    let (out, round, ld, addend) = match target {
        Target::Store { out, ld } => (out.as_mut_ptr().cast::<u8>(), false, ld, none),
        Target::Add { out, ld } => {
            let out = out.as_mut_ptr();
            (out.cast(), false, ld, out.cast_const())
        }
        Target::Sum { out, ld, addend } => (out.as_mut_ptr().cast(), false, ld, addend.as_ptr()),
        Target::Round { out, ld } => (out.as_mut_ptr().cast(), bf16, ld, none),
        Target::RoundSum { out, ld, addend } => (out.as_mut_ptr().cast(), bf16, ld, addend.as_ptr()),
    };
    let sink = Sink { alpha, out, round, ld, addend };
    let rows = segments.iter().all(|s| matches!(s.left, Left::Rows { .. }));
    assert!(rows || segments.iter().all(|s| matches!(s.left, Left::Columns { .. })), "left factors of two kinds");
    // SAFETY: as the caller guarantees.
    unsafe {
        match (bf16, rows) {
            (false, true) => tiles_f32::<true>(m, n, terms, &sink),
            (false, false) => tiles_f32::<false>(m, n, terms, &sink),
            (true, true) => tiles_bf16::<true>(m, n, terms, &sink),
            (true, false) => tiles_bf16::<false>(m, n, terms, &sink),
        }
    }
}

/// A mask of the first `n` lanes.
fn mask(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// Calls the kernel compiled for this number of rows (1 to [`ROWS`]) and of vectors.
macro_rules! by_rows {
    ($rows:expr, $micro:ident, $v:literal, $order:ident, $args:tt) => {
        match $rows {
            12 => $micro::<12, $v, $order> $args,
            11 => $micro::<11, $v, $order> $args,
            10 => $micro::<10, $v, $order> $args,
            9 => $micro::<9, $v, $order> $args,
            8 => $micro::<8, $v, $order> $args,
            7 => $micro::<7, $v, $order> $args,
            6 => $micro::<6, $v, $order> $args,
            5 => $micro::<5, $v, $order> $args,
            4 => $micro::<4, $v, $order> $args,
            3 => $micro::<3, $v, $order> $args,
            2 => $micro::<2, $v, $order> $args,
            _ => $micro::<1, $v, $order> $args,
        }
    };
}

/// The loops over the tiles of a product, and the kernel for one tile, for one number format.
macro_rules! kernel {
    ($tiles:ident, $micro:ident, $features:literal, |$acc:ident, $x:ident, $y:ident| $fma:expr) => {
        #[target_feature(enable = $features)]
        unsafe fn $tiles<const IN_ROWS: bool>(m: usize, n: usize, terms: &mut [Term], sink: &Sink) {
            // equal tiles: 64 rows are 11 + 11 + 11 + 11 + 10 + 10
            let tiles = m.div_ceil(ROWS);
            let per_block = BLOCK / ROWS;
            let bases: [(*const u8, *const f32); SEGMENTS] =
                std::array::from_fn(|s| terms.get(s).map_or((std::ptr::null(), std::ptr::null()), |t| (t.a, t.b)));
            for block in (0..tiles).step_by(per_block) {
                for (panel, j) in (0..n).step_by(Panels::COLUMNS).enumerate() {
                    let cols = (n - j).min(Panels::COLUMNS);
                    let (low, high) = (mask(cols), mask(cols.saturating_sub(16)));
                    for tile in block..tiles.min(block + per_block) {
                        let (i, end) = (tile * m / tiles, (tile + 1) * m / tiles);
                        for (term, (a, b)) in terms.iter_mut().zip(bases) {
                            term.a = a.wrapping_add(i * term.row);
                            term.b = b.wrapping_add(panel * term.panel);
                        }
                        // SAFETY: rows `i..end` and the columns of the masks are inside the
                        // factors and the target.
                        unsafe {
                            if cols <= 16 {
                                by_rows!(end - i, $micro, 1, IN_ROWS, (terms, sink, i, j, low, high));
                            } else {
                                by_rows!(end - i, $micro, 2, IN_ROWS, (terms, sink, i, j, low, high));
                            }
                        }
                    }
                }
            }
        }

        #[target_feature(enable = $features)]
        unsafe fn $micro<const M: usize, const V: usize, const IN_ROWS: bool>(
            terms: &[Term],
            sink: &Sink,
            i: usize,
            j: usize,
            low: __mmask16,
            high: __mmask16,
        ) {
            // SAFETY: the terms point to `M` rows and `depth` steps, the sink to `M` rows in which
            // the columns of the masks exist. Masked lanes are neither read nor written.
            unsafe {
                let mut acc = [[_mm512_setzero_ps(); V]; M];
                for term in terms {
                    let (mut a, mut b) = (term.a, term.b);
                    let row = if IN_ROWS { term.row } else { 4 };
                    let step = if IN_ROWS { 4 } else { term.step };
                    for _ in 0..term.depth {
                        let mut columns = [_mm512_setzero_ps(); V];
                        for (v, column) in columns.iter_mut().enumerate() {
                            let lanes = if v == 0 { low } else { high };
                            *column = _mm512_maskz_loadu_ps(lanes, b.wrapping_add(16 * v));
                        }
                        for (r, sums) in acc.iter_mut().enumerate() {
                            let $x = _mm512_set1_ps(a.wrapping_add(r * row).cast::<f32>().read_unaligned());
                            for (slot, $y) in sums.iter_mut().zip(columns) {
                                let $acc = *slot;
                                *slot = $fma;
                            }
                        }
                        a = a.wrapping_add(step);
                        b = b.wrapping_add(term.b_step);
                    }
                }
                let alpha = _mm512_set1_ps(sink.alpha);
                for (r, sums) in acc.into_iter().enumerate() {
                    for (v, sum) in sums.into_iter().enumerate() {
                        let at = (i + r) * sink.ld + j + 16 * v;
                        let lanes = if v == 0 { low } else { high };
                        let mut x = _mm512_mul_ps(sum, alpha);
                        if !sink.addend.is_null() {
                            x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(lanes, sink.addend.wrapping_add(at)));
                        }
                        if sink.round {
                            _mm256_mask_storeu_epi16(sink.out.cast::<i16>().wrapping_add(at), lanes, rounded(x));
                        } else {
                            _mm512_mask_storeu_ps(sink.out.cast::<f32>().wrapping_add(at), lanes, x);
                        }
                    }
                }
            }
        }
    };
}

kernel!(tiles_f32, micro_f32, "avx512f,avx512bw,avx512dq,avx512vl", |acc, x, y| _mm512_fmadd_ps(x, y, acc));
kernel!(tiles_bf16, micro_bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16", |acc, x, y| _mm512_dpbf16_ps(acc, pairs(x), pairs(y)));

/// The same bits as pairs of bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pairs(x: __m512) -> __m512bh {
    // SAFETY: both are 512 plain bits.
    unsafe { std::mem::transmute(x) }
}

/// bf16 as [`crate::element::Bf16`] rounds.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn rounded(x: __m512) -> __m256i {
    let bits = _mm512_castps_si512(x);
    let odd = _mm512_and_si512(_mm512_srli_epi32::<16>(bits), _mm512_set1_epi32(1));
    let up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    _mm512_cvtepi32_epi16(_mm512_srli_epi32::<16>(up))
}

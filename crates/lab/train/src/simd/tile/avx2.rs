//! The kernel for AVX2 with FMA, in f32. These processors have no products in bf16.

use std::arch::x86_64::*;

use super::{Kernel, Sink, Term, Tile};
use crate::element::Element;
use crate::product::{Segment, Target};

/// Numbers in a vector.
const LANES: usize = 8;

const F32: Kernel = Kernel { rows: 6, columns: 2 * LANES, in_rows: tile::<true>, in_columns: tile::<false> };

/// # Safety
/// The CPU must have AVX2 and FMA. Factors and target must fit `m` and `n`, as `product::product`
/// checks.
///
/// # Panics
/// If a word has more than one element.
pub(in crate::simd) unsafe fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) {
    assert_eq!(E::PER_WORD, 1, "a kernel for f32");
    // SAFETY: as the caller guarantees.
    unsafe { super::product(&F32, m, n, alpha, segments, target) }
}

/// Calls the kernel compiled for this number of rows (1 to 6).
macro_rules! by_rows {
    ($v:literal, $whole:literal, $order:ident, $terms:ident, $sink:ident, $tile:ident) => {
        match $tile.rows {
            6 => micro::<6, $v, $whole, $order>($terms, $sink, $tile),
            5 => micro::<5, $v, $whole, $order>($terms, $sink, $tile),
            4 => micro::<4, $v, $whole, $order>($terms, $sink, $tile),
            3 => micro::<3, $v, $whole, $order>($terms, $sink, $tile),
            2 => micro::<2, $v, $whole, $order>($terms, $sink, $tile),
            _ => micro::<1, $v, $whole, $order>($terms, $sink, $tile),
        }
    };
}

#[target_feature(enable = "avx2,fma")]
unsafe fn tile<const IN_ROWS: bool>(terms: &[Term], sink: &Sink, tile: Tile) {
    // SAFETY: as the caller guarantees; `V` vectors hold the tile's columns, all of them if `WHOLE`.
    unsafe {
        match tile.columns {
            16 => by_rows!(2, true, IN_ROWS, terms, sink, tile),
            9..16 => by_rows!(2, false, IN_ROWS, terms, sink, tile),
            8 => by_rows!(1, true, IN_ROWS, terms, sink, tile),
            _ => by_rows!(1, false, IN_ROWS, terms, sink, tile),
        }
    }
}

/// A tile of `M` rows and `V` vectors: at most 12 sums, 2 columns and 1 broadcast in 16 registers.
/// Without `WHOLE`, the last vector is not full.
#[target_feature(enable = "avx2,fma")]
unsafe fn micro<const M: usize, const V: usize, const WHOLE: bool, const IN_ROWS: bool>(terms: &[Term], sink: &Sink, tile: Tile) {
    let lanes = mask(tile.columns - (V - 1) * LANES);
    // SAFETY: the terms point to `M` rows and `depth` steps, the sink to `M` rows in which the
    // tile's columns exist. Masked lanes are neither read nor written.
    unsafe {
        let mut acc = [[_mm256_setzero_ps(); V]; M];
        for term in terms {
            let (mut a, mut b) = (term.a, term.b);
            let row = if IN_ROWS { term.row } else { 4 };
            let step = if IN_ROWS { 4 } else { term.step };
            for _ in 0..term.depth {
                let mut columns = [_mm256_setzero_ps(); V];
                for (v, column) in columns.iter_mut().enumerate() {
                    *column = load::<WHOLE, V>(b, v, lanes);
                }
                for (r, sums) in acc.iter_mut().enumerate() {
                    let x = _mm256_set1_ps(a.wrapping_add(r * row).cast::<f32>().read_unaligned());
                    for (sum, y) in sums.iter_mut().zip(columns) {
                        *sum = _mm256_fmadd_ps(x, y, *sum);
                    }
                }
                a = a.wrapping_add(step);
                b = b.wrapping_add(term.b_step);
            }
        }
        let alpha = _mm256_set1_ps(sink.alpha);
        for (r, sums) in acc.into_iter().enumerate() {
            let at = (tile.i + r) * sink.ld + tile.j;
            let out = sink.out.cast::<f32>().wrapping_add(at);
            for (v, sum) in sums.into_iter().enumerate() {
                let mut x = _mm256_mul_ps(sum, alpha);
                if !sink.addend.is_null() {
                    x = _mm256_add_ps(x, load::<WHOLE, V>(sink.addend.wrapping_add(at), v, lanes));
                }
                let out = out.wrapping_add(LANES * v);
                if WHOLE || v + 1 < V {
                    _mm256_storeu_ps(out, x);
                } else {
                    _mm256_maskstore_ps(out, lanes, x);
                }
            }
        }
    }
}

/// Vector `v` of `V` from `from` on.
///
/// # Safety
/// Its numbers must be readable: all of them, or those of `lanes` in the last vector if it is not
/// `WHOLE`.
#[inline]
#[target_feature(enable = "avx2,fma")]
unsafe fn load<const WHOLE: bool, const V: usize>(from: *const f32, v: usize, lanes: __m256i) -> __m256 {
    let from = from.wrapping_add(LANES * v);
    // SAFETY: as the caller guarantees.
    unsafe { if WHOLE || v + 1 < V { _mm256_loadu_ps(from) } else { _mm256_maskload_ps(from, lanes) } }
}

/// The first `n` lanes.
#[target_feature(enable = "avx2")]
fn mask(n: usize) -> __m256i {
    let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(LANES) as i32), lane)
}

//! The kernels for AVX-512: in f32, or with bf16 factors (`vdpbf16ps`).

use std::arch::x86_64::*;

use super::{Kernel, Sink, Term, Tile};
use crate::element::Element;
use crate::product::{Segment, Target};

const F32: Kernel = Kernel { rows: 12, columns: 32, in_rows: tile_f32::<true>, in_columns: tile_f32::<false> };
const BF16: Kernel = Kernel { rows: 12, columns: 32, in_rows: tile_bf16::<true>, in_columns: tile_bf16::<false> };

/// # Safety
/// The CPU must have AVX-512 F, BW, DQ and VL, and for bf16 also AVX512_BF16. Factors and target
/// must fit `m` and `n`, as `product::product` checks.
pub(in crate::simd) unsafe fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: Target<'_, E>) {
    let kernel = if E::PER_WORD == 2 { &BF16 } else { &F32 };
    // SAFETY: as the caller guarantees.
    unsafe { super::product(kernel, m, n, alpha, segments, target) }
}

/// A mask of the first `n` lanes.
fn mask(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// Calls the kernel compiled for this number of rows (1 to 12) and of vectors.
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

/// The kernel for one tile, for one number format. The largest has 24 sums, 2 columns and 1
/// broadcast in 32 registers.
macro_rules! kernel {
    ($tile:ident, $micro:ident, $features:literal, |$acc:ident, $x:ident, $y:ident| $fma:expr) => {
        #[target_feature(enable = $features)]
        unsafe fn $tile<const IN_ROWS: bool>(terms: &[Term], sink: &Sink, tile: Tile) {
            let (low, high) = (mask(tile.columns), mask(tile.columns.saturating_sub(16)));
            // SAFETY: the columns of the masks are those of the tile.
            unsafe {
                if tile.columns <= 16 {
                    by_rows!(tile.rows, $micro, 1, IN_ROWS, (terms, sink, tile.i, tile.j, low, high));
                } else {
                    by_rows!(tile.rows, $micro, 2, IN_ROWS, (terms, sink, tile.i, tile.j, low, high));
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

kernel!(tile_f32, micro_f32, "avx512f,avx512bw,avx512dq,avx512vl", |acc, x, y| _mm512_fmadd_ps(x, y, acc));
kernel!(tile_bf16, micro_bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16", |acc, x, y| _mm512_dpbf16_ps(acc, pairs(x), pairs(y)));

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

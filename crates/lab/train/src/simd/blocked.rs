//! A blocked matrix product for AVX-512, in f32 or with bf16 factors (`vdpbf16ps`).
//!
//! A slice of `B` is packed into panels of [`NR`] columns and a block of `A` into panels of [`MR`]
//! rows. The kernel keeps an `MR x NR` tile of the product in registers. All packed elements have
//! 32 bits: one f32, or a pair of bf16 adjacent in `k`. So the two formats differ only in the
//! packing and in one instruction.

use std::arch::x86_64::*;
use std::cell::RefCell;

use super::Mat;
use super::pack::{A_STRIDE, KC, MR, NR, mask, pack_a_columns, pack_a_rows, pack_b};

/// Rows of `A` packed at a time.
const MC: usize = 10 * MR;
/// Columns of `B` packed at a time (512 KiB: half of the L2 cache).
const NC: usize = 512;

/// Packed factors of one thread.
struct Packs {
    a: Vec<Line>,
    b: Vec<Line>,
}

/// One cache line, aligned as such.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u32; 16]);

thread_local! {
    static PACKS: RefCell<Packs> = RefCell::new(Packs {
        a: vec![Line([0; 16]); (MC * A_STRIDE).div_ceil(16)],
        b: vec![Line([0; 16]); (KC * NC).div_ceil(16)],
    });
}

/// `dst = (accumulate ? dst : 0) + alpha * a * b`.
///
/// # Safety
/// The CPU must have AVX-512 F, BW, DQ and VL, and with `BF16` also AVX512_BF16; all three matrices
/// must lie inside their slices and the rows of `dst` must not overlap.
pub(super) unsafe fn gemm<const BF16: bool>(
    (m, n, k): (usize, usize, usize),
    dst: &mut [f32],
    rs: usize,
    a: Mat<'_>,
    b: Mat<'_>,
    alpha: f32,
    accumulate: bool,
) {
    let step = if BF16 { 2 } else { 1 };
    let deep = k.div_ceil(step);
    // equal blocks: 300 becomes 150 + 150, not 256 + 44
    let blocks = deep.div_ceil(KC).max(1);
    let kc = deep.div_ceil(blocks).max(1);
    let a_rows = a.cs == 1;
    PACKS.with_borrow_mut(|packs| {
        let (pa, pb) = (packs.a.as_mut_ptr().cast::<u32>(), packs.b.as_mut_ptr().cast::<u32>());
        for jc in (0..n).step_by(NC) {
            let nc = NC.min(n - jc);
            for (i, pc) in (0..deep).step_by(kc).enumerate() {
                let depth = kc.min(deep - pc);
                // elements of k in this block; an odd bf16 pair is padded with zero
                let (k0, kn) = (pc * step, (depth * step).min(k - pc * step));
                // SAFETY: the buffers hold `KC * NC` and `MC * A_STRIDE` elements. The caller
                // guarantees that the blocks are inside the matrices and that the CPU has the
                // instructions.
                unsafe {
                    pack_b::<BF16>(b, k0, kn, jc, nc, pb);
                    for ic in (0..m).step_by(MC) {
                        let mc = MC.min(m - ic);
                        if a_rows {
                            pack_a_rows::<BF16>(a, ic, mc, k0, kn, pa);
                        } else {
                            pack_a_columns::<BF16>(a, ic, mc, k0, kn, pa);
                        }
                        let c = dst.as_mut_ptr().add(ic * rs + jc);
                        let add = accumulate || i > 0;
                        let block = Block { depth, rs, alpha, add };
                        match (BF16, a_rows) {
                            (false, true) => tiles_f32::<true>(&block, mc, nc, pa, pb, c),
                            (false, false) => tiles_f32::<false>(&block, mc, nc, pa, pb, c),
                            (true, true) => tiles_bf16::<true>(&block, mc, nc, pa, pb, c),
                            (true, false) => tiles_bf16::<false>(&block, mc, nc, pa, pb, c),
                        }
                    }
                }
            }
        }
    });
}

/// Values common to all tiles of a block.
struct Block {
    depth: usize,
    rs: usize,
    alpha: f32,
    add: bool,
}

/// Calls the kernel compiled for this number of rows (1 to [`MR`]) and of vectors.
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

/// The loops over the tiles of a block, and the kernel for one tile, for one number format.
macro_rules! kernel {
    ($tiles:ident, $micro:ident, $features:literal, |$acc:ident, $x:ident, $y:ident| $fma:expr) => {
        #[target_feature(enable = $features)]
        unsafe fn $tiles<const ROWS: bool>(t: &Block, mc: usize, nc: usize, pa: *const u32, pb: *const u32, c: *mut f32) {
            // SAFETY: every tile lies inside the packed buffers and inside the block of `dst`.
            unsafe {
                for j in (0..nc).step_by(NR) {
                    let b = pb.add(j * t.depth);
                    let cols = NR.min(nc - j);
                    let low = mask(cols.min(16));
                    let high = mask(cols.saturating_sub(16));
                    for i in (0..mc).step_by(MR) {
                        let a = if ROWS { pa.add(i * A_STRIDE) } else { pa.add(i * t.depth) };
                        let c = c.add(i * t.rs + j);
                        let rows = MR.min(mc - i);
                        if cols <= 16 {
                            by_rows!(rows, $micro, 1, ROWS, (t, a, b, c, low, high));
                        } else {
                            by_rows!(rows, $micro, 2, ROWS, (t, a, b, c, low, high));
                        }
                    }
                }
            }
        }

        #[target_feature(enable = $features)]
        unsafe fn $micro<const M: usize, const V: usize, const ROWS: bool>(
            t: &Block,
            a: *const u32,
            b: *const u32,
            c: *mut f32,
            low: __mmask16,
            high: __mmask16,
        ) {
            // SAFETY: `a` and `b` point to `depth` packed steps, `c` to `M` rows in which the
            // columns of the masks exist.
            unsafe {
                let mut acc = [[_mm512_setzero_ps(); V]; M];
                let (mut a, mut b) = (a, b.cast::<f32>());
                for _ in 0..t.depth {
                    let mut columns = [_mm512_setzero_ps(); V];
                    for (v, column) in columns.iter_mut().enumerate() {
                        *column = _mm512_load_ps(b.add(16 * v));
                    }
                    for (r, row) in acc.iter_mut().enumerate() {
                        let at = if ROWS { a.add(r * A_STRIDE) } else { a.add(r) };
                        let $x = _mm512_set1_ps(at.cast::<f32>().read());
                        for (slot, $y) in row.iter_mut().zip(columns) {
                            let $acc = *slot;
                            *slot = $fma;
                        }
                    }
                    a = if ROWS { a.add(1) } else { a.add(MR) };
                    b = b.add(NR);
                }
                let alpha = _mm512_set1_ps(t.alpha);
                for (r, row) in acc.into_iter().enumerate() {
                    for (v, x) in row.into_iter().enumerate() {
                        let c = c.wrapping_add(r * t.rs + 16 * v);
                        let mask = if v == 0 { low } else { high };
                        let mut x = _mm512_mul_ps(x, alpha);
                        if t.add {
                            x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(mask, c));
                        }
                        _mm512_mask_storeu_ps(c, mask, x);
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

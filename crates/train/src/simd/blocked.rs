//! A blocked matrix product for AVX-512, in f32 or with bf16 factors (`vdpbf16ps`).
//!
//! The usual scheme: pack a slice of `B` into panels of [`NR`] columns and a block of `A` into
//! panels of [`MR`] rows, then a kernel keeps an `MR x NR` tile of the product in registers. All
//! packed elements are 32-bit: one f32, or a pair of bf16 that are neighbours in `k`; so the two
//! formats share everything but one instruction and the packing.

use std::arch::x86_64::*;
use std::cell::RefCell;

use super::Mat;

/// Rows of a register tile.
const MR: usize = 12;
/// Columns of a register tile: two vectors.
const NR: usize = 32;
/// Depth of a packed block, in 32-bit elements: a panel of `B` (32 KiB) stays in the L1 cache.
const KC: usize = 256;
/// Distance of packed rows of `A`: not a multiple of the cache's 4 KiB period.
const A_STRIDE: usize = KC + 16;
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
                // elements of k in this block: an odd tail of a bf16 pair is padded with zero
                let (k0, kn) = (pc * step, (depth * step).min(k - pc * step));
                // SAFETY: the buffers hold `KC * NC` and `MC * A_STRIDE` elements, and the blocks
                // are inside the matrices, which the caller vouches for, as for the CPU.
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

/// What is the same for all tiles of a block.
struct Block {
    depth: usize,
    rs: usize,
    alpha: f32,
    add: bool,
}

/// The loops over the tiles of a block, and the kernel for one tile, for one number format.
macro_rules! kernel {
    ($tiles:ident, $micro:ident, $features:literal, |$acc:ident, $x:ident, $y:ident| $fma:expr) => {
        #[target_feature(enable = $features)]
        unsafe fn $tiles<const ROWS: bool>(
            t: &Block,
            mc: usize,
            nc: usize,
            pa: *const u32,
            pb: *const u32,
            c: *mut f32,
        ) {
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
                        match MR.min(mc - i) {
                            12 => $micro::<12, ROWS>(t, a, b, c, low, high),
                            11 => $micro::<11, ROWS>(t, a, b, c, low, high),
                            10 => $micro::<10, ROWS>(t, a, b, c, low, high),
                            9 => $micro::<9, ROWS>(t, a, b, c, low, high),
                            8 => $micro::<8, ROWS>(t, a, b, c, low, high),
                            7 => $micro::<7, ROWS>(t, a, b, c, low, high),
                            6 => $micro::<6, ROWS>(t, a, b, c, low, high),
                            5 => $micro::<5, ROWS>(t, a, b, c, low, high),
                            4 => $micro::<4, ROWS>(t, a, b, c, low, high),
                            3 => $micro::<3, ROWS>(t, a, b, c, low, high),
                            2 => $micro::<2, ROWS>(t, a, b, c, low, high),
                            _ => $micro::<1, ROWS>(t, a, b, c, low, high),
                        }
                    }
                }
            }
        }

        #[target_feature(enable = $features)]
        unsafe fn $micro<const M: usize, const ROWS: bool>(
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
                let mut acc = [[_mm512_setzero_ps(); 2]; M];
                let (mut a, mut b) = (a, b.cast::<f32>());
                for _ in 0..t.depth {
                    let y0 = _mm512_load_ps(b);
                    let y1 = _mm512_load_ps(b.add(16));
                    for (r, row) in acc.iter_mut().enumerate() {
                        let at = if ROWS { a.add(r * A_STRIDE) } else { a.add(r) };
                        let $x = _mm512_set1_ps(at.cast::<f32>().read());
                        for (slot, $y) in row.iter_mut().zip([y0, y1]) {
                            let $acc = *slot;
                            *slot = $fma;
                        }
                    }
                    a = if ROWS { a.add(1) } else { a.add(MR) };
                    b = b.add(NR);
                }
                let alpha = _mm512_set1_ps(t.alpha);
                for (r, [x, y]) in acc.into_iter().enumerate() {
                    let c = c.add(r * t.rs);
                    let (mut x, mut y) = (_mm512_mul_ps(x, alpha), _mm512_mul_ps(y, alpha));
                    if t.add {
                        x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(low, c));
                        y = _mm512_add_ps(y, _mm512_maskz_loadu_ps(high, c.wrapping_add(16)));
                    }
                    _mm512_mask_storeu_ps(c, low, x);
                    _mm512_mask_storeu_ps(c.wrapping_add(16), high, y);
                }
            }
        }
    };
}

kernel!(tiles_f32, micro_f32, "avx512f,avx512bw,avx512dq,avx512vl", |acc, x, y| {
    _mm512_fmadd_ps(x, y, acc)
});
kernel!(tiles_bf16, micro_bf16, "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16", |acc, x, y| {
    _mm512_dpbf16_ps(acc, pairs(x), pairs(y))
});

/// The same bits as pairs of bf16.
#[target_feature(enable = "avx512f,avx512bf16")]
fn pairs(x: __m512) -> __m512bh {
    // SAFETY: both are 512 plain bits.
    unsafe { std::mem::transmute(x) }
}

/// The first `n` lanes.
fn mask(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// 16 f32 of a matrix row starting at `p`, of which `valid` exist, the rest zero.
#[target_feature(enable = "avx512f")]
unsafe fn load(p: *const f32, valid: usize) -> __m512 {
    // SAFETY: masked lanes are not read; the caller vouches for the others.
    unsafe { _mm512_maskz_loadu_ps(mask(valid), p) }
}

/// Two vectors to one of bf16 pairs `(x[i], y[i])`.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn interleave(x: __m512, y: __m512) -> __m512i {
    let order = [
        0i16, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12,
        28, 13, 29, 14, 30, 15, 31,
    ];
    // SAFETY: all are 512 plain bits.
    unsafe {
        let both: __m512i = std::mem::transmute(_mm512_cvtne2ps_pbh(y, x));
        _mm512_permutexvar_epi16(std::mem::transmute::<[i16; 32], __m512i>(order), both)
    }
}

/// 32 consecutive f32 (`valid` exist) to 16 consecutive bf16 pairs.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn load_pairs(p: *const f32, valid: usize) -> __m512i {
    // SAFETY: as for `load`; the vectors are 512 plain bits.
    unsafe {
        let x = load(p, valid);
        let y = load(p.wrapping_add(16), valid.saturating_sub(16));
        std::mem::transmute(_mm512_cvtne2ps_pbh(y, x))
    }
}

/// Rows `i0..i0 + mc` of `a` (contiguous in `k`) to rows `A_STRIDE` apart.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn pack_rows_bf16(a: Mat<'_>, i0: usize, mc: usize, k0: usize, kn: usize, out: *mut u32) {
    // SAFETY: inside the matrix by the caller's word; stores of up to 16 elements beyond the depth
    // stay inside the padded row (`A_STRIDE >= KC + 16`).
    unsafe {
        for i in 0..mc {
            let from = a.data.as_ptr().add((i0 + i) * a.rs + k0);
            let to = out.add(i * A_STRIDE);
            for p in (0..kn).step_by(32) {
                let v = load_pairs(from.add(p), kn - p);
                _mm512_storeu_si512(to.add(p / 2).cast(), v);
            }
        }
    }
}

unsafe fn pack_a_rows<const BF16: bool>(
    a: Mat<'_>,
    i0: usize,
    mc: usize,
    k0: usize,
    kn: usize,
    out: *mut u32,
) {
    // SAFETY: as for the callees.
    unsafe {
        if BF16 {
            return pack_rows_bf16(a, i0, mc, k0, kn, out);
        }
        for i in 0..mc {
            let from = a.data.as_ptr().add((i0 + i) * a.rs + k0).cast::<u32>();
            std::ptr::copy_nonoverlapping(from, out.add(i * A_STRIDE), kn);
        }
    }
}

/// Rows `i0..i0 + mc` of `a` (contiguous along the rows' index) to panels `[depth, MR]`.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn pack_columns_bf16(a: Mat<'_>, i0: usize, mc: usize, k0: usize, kn: usize, out: *mut u32) {
    let depth = kn.div_ceil(2);
    // SAFETY: inside the matrix by the caller's word; stores are masked to the panel.
    unsafe {
        for p in 0..depth {
            let from = a.data.as_ptr().add(i0 * a.rs + (k0 + 2 * p) * a.cs);
            let odd = 2 * p + 1 < kn;
            for i in (0..mc).step_by(MR) {
                let valid = MR.min(mc - i);
                let x = load(from.wrapping_add(i), valid);
                let y = load(from.wrapping_add(i + a.cs), if odd { valid } else { 0 });
                let to = out.add(i * depth + p * MR);
                _mm512_mask_storeu_epi32(to.cast(), mask(MR), interleave(x, y));
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn pack_columns_f32(a: Mat<'_>, i0: usize, mc: usize, k0: usize, kn: usize, out: *mut u32) {
    // SAFETY: inside the matrix by the caller's word; stores are masked to the panel.
    unsafe {
        for p in 0..kn {
            let from = a.data.as_ptr().add(i0 * a.rs + (k0 + p) * a.cs);
            for i in (0..mc).step_by(MR) {
                let x = load(from.wrapping_add(i), MR.min(mc - i));
                _mm512_mask_storeu_ps(out.add(i * kn + p * MR).cast(), mask(MR), x);
            }
        }
    }
}

unsafe fn pack_a_columns<const BF16: bool>(
    a: Mat<'_>,
    i0: usize,
    mc: usize,
    k0: usize,
    kn: usize,
    out: *mut u32,
) {
    assert!(a.rs == 1 || mc <= 1, "one stride of a matrix must be 1");
    // SAFETY: as for the callees.
    unsafe {
        if BF16 {
            pack_columns_bf16(a, i0, mc, k0, kn, out);
        } else {
            pack_columns_f32(a, i0, mc, k0, kn, out);
        }
    }
}

/// Columns `j0..j0 + nc` of `b` to panels `[depth, NR]`, the last one padded with zeros.
unsafe fn pack_b<const BF16: bool>(
    b: Mat<'_>,
    k0: usize,
    kn: usize,
    j0: usize,
    nc: usize,
    out: *mut u32,
) {
    assert!(b.cs == 1 || b.rs == 1, "one stride of a matrix must be 1");
    // SAFETY: as for the callees.
    unsafe {
        match (BF16, b.cs == 1) {
            (false, true) => b_rows_f32(b, k0, kn, j0, nc, out),
            (false, false) => b_columns_f32(b, k0, kn, j0, nc, out),
            (true, true) => b_rows_bf16(b, k0, kn, j0, nc, out),
            (true, false) => b_columns_bf16(b, k0, kn, j0, nc, out),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn b_rows_f32(b: Mat<'_>, k0: usize, kn: usize, j0: usize, nc: usize, out: *mut u32) {
    // SAFETY: inside the matrix by the caller's word; panels are whole.
    unsafe {
        for j in (0..nc).step_by(16) {
            let to = out.add(j / NR * NR * kn + j % NR).cast::<f32>();
            for p in 0..kn {
                let from = b.data.as_ptr().add((k0 + p) * b.rs + j0 + j);
                _mm512_storeu_ps(to.add(p * NR), load(from, nc - j));
            }
        }
        pad(kn, nc, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn b_rows_bf16(b: Mat<'_>, k0: usize, kn: usize, j0: usize, nc: usize, out: *mut u32) {
    let depth = kn.div_ceil(2);
    // SAFETY: inside the matrix by the caller's word; panels are whole.
    unsafe {
        for j in (0..nc).step_by(16) {
            let to = out.add(j / NR * NR * depth + j % NR);
            for p in 0..depth {
                let from = b.data.as_ptr().add((k0 + 2 * p) * b.rs + j0 + j);
                let x = load(from, nc - j);
                let odd = if 2 * p + 1 < kn { nc - j } else { 0 };
                let y = load(from.wrapping_add(b.rs), odd);
                _mm512_storeu_si512(to.add(p * NR).cast(), interleave(x, y));
            }
        }
        pad(depth, nc, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn b_columns_f32(b: Mat<'_>, k0: usize, kn: usize, j0: usize, nc: usize, out: *mut u32) {
    // SAFETY: inside the matrix by the caller's word; panels are whole.
    unsafe {
        for j in (0..nc).step_by(16) {
            let to = out.add(j / NR * NR * kn + j % NR);
            for p in (0..kn).step_by(16) {
                let mut tile = [_mm512_setzero_si512(); 16];
                for (r, row) in tile.iter_mut().enumerate().take(nc - j) {
                    let from = b.data.as_ptr().add((j0 + j + r) * b.cs + k0 + p);
                    *row = _mm512_castps_si512(load(from, kn - p));
                }
                transpose(&mut tile);
                for (r, row) in tile.iter().enumerate().take(kn - p) {
                    _mm512_storeu_si512(to.add((p + r) * NR).cast(), *row);
                }
            }
        }
        pad(kn, nc, out);
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn b_columns_bf16(b: Mat<'_>, k0: usize, kn: usize, j0: usize, nc: usize, out: *mut u32) {
    let depth = kn.div_ceil(2);
    // SAFETY: inside the matrix by the caller's word; panels are whole.
    unsafe {
        for j in (0..nc).step_by(16) {
            let to = out.add(j / NR * NR * depth + j % NR);
            for p in (0..depth).step_by(16) {
                let mut tile = [_mm512_setzero_si512(); 16];
                for (r, row) in tile.iter_mut().enumerate().take(nc - j) {
                    let from = b.data.as_ptr().add((j0 + j + r) * b.cs + k0 + 2 * p);
                    *row = load_pairs(from, kn - 2 * p);
                }
                transpose(&mut tile);
                for (r, row) in tile.iter().enumerate().take(depth - p) {
                    _mm512_storeu_si512(to.add((p + r) * NR).cast(), *row);
                }
            }
        }
        pad(depth, nc, out);
    }
}

/// Zeroes the second half of the last panel if no column reaches into it.
unsafe fn pad(depth: usize, nc: usize, out: *mut u32) {
    if (1..=16).contains(&(nc % NR)) {
        // SAFETY: the last panel is whole.
        unsafe {
            let to = out.add(nc / NR * NR * depth + 16);
            (0..depth).for_each(|p| to.add(p * NR).write_bytes(0, 16));
        }
    }
}

/// Transposes a 16 x 16 tile of 32-bit elements.
#[target_feature(enable = "avx512f,avx512dq")]
fn transpose(t: &mut [__m512i; 16]) {
    let mut u = [_mm512_setzero_si512(); 16];
    for i in 0..8 {
        u[2 * i] = _mm512_unpacklo_epi32(t[2 * i], t[2 * i + 1]);
        u[2 * i + 1] = _mm512_unpackhi_epi32(t[2 * i], t[2 * i + 1]);
    }
    for i in 0..4 {
        t[4 * i] = _mm512_unpacklo_epi64(u[4 * i], u[4 * i + 2]);
        t[4 * i + 1] = _mm512_unpackhi_epi64(u[4 * i], u[4 * i + 2]);
        t[4 * i + 2] = _mm512_unpacklo_epi64(u[4 * i + 1], u[4 * i + 3]);
        t[4 * i + 3] = _mm512_unpackhi_epi64(u[4 * i + 1], u[4 * i + 3]);
    }
    for i in 0..4 {
        u[i] = _mm512_shuffle_i32x4::<0x88>(t[i], t[i + 4]);
        u[i + 4] = _mm512_shuffle_i32x4::<0xdd>(t[i], t[i + 4]);
        u[i + 8] = _mm512_shuffle_i32x4::<0x88>(t[i + 8], t[i + 12]);
        u[i + 12] = _mm512_shuffle_i32x4::<0xdd>(t[i + 8], t[i + 12]);
    }
    for i in 0..8 {
        t[i] = _mm512_shuffle_i32x4::<0x88>(u[i], u[i + 8]);
        t[i + 8] = _mm512_shuffle_i32x4::<0xdd>(u[i], u[i + 8]);
    }
}

//! Packing of the factors of a blocked product: see `blocked.rs` for the layouts.
//!
//! For all functions here the caller guarantees that the block lies inside the matrix, that the CPU
//! has the instructions, and that `out` has room for the whole block.

use std::arch::x86_64::*;

use super::Mat;

/// Rows of a register tile.
pub(super) const MR: usize = 12;
/// Columns of a register tile: two vectors.
pub(super) const NR: usize = 32;
/// Depth of a packed block in 32-bit elements. A panel of `B` (32 KiB) then fits the L1 cache.
pub(super) const KC: usize = 256;
/// Distance of packed rows of `A`, not a multiple of 4 KiB, to avoid cache conflicts.
pub(super) const A_STRIDE: usize = KC + 16;

/// A mask of the first `n` lanes.
pub(super) fn mask(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// 16 f32 of a matrix row starting at `p`, of which `valid` exist, the rest zero.
#[target_feature(enable = "avx512f")]
unsafe fn load(p: *const f32, valid: usize) -> __m512 {
    // SAFETY: masked lanes are not read; the caller guarantees the others.
    unsafe { _mm512_maskz_loadu_ps(mask(valid), p) }
}

/// Two vectors to one of bf16 pairs `(x[i], y[i])`.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
fn interleave(x: __m512, y: __m512) -> __m512i {
    let order = [0i16, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31];
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
    // SAFETY: inside the matrix as the caller guarantees; stores of up to 16 elements beyond the
    // depth stay inside the padded row (`A_STRIDE >= KC + 16`).
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

pub(super) unsafe fn pack_a_rows<const BF16: bool>(a: Mat<'_>, i0: usize, mc: usize, k0: usize, kn: usize, out: *mut u32) {
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
    // SAFETY: inside the matrix as the caller guarantees; stores are masked to the panel.
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
    // SAFETY: inside the matrix as the caller guarantees; stores are masked to the panel.
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

pub(super) unsafe fn pack_a_columns<const BF16: bool>(a: Mat<'_>, i0: usize, mc: usize, k0: usize, kn: usize, out: *mut u32) {
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
pub(super) unsafe fn pack_b<const BF16: bool>(b: Mat<'_>, k0: usize, kn: usize, j0: usize, nc: usize, out: *mut u32) {
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
    // SAFETY: inside the matrix as the caller guarantees; panels are whole.
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
    // SAFETY: inside the matrix as the caller guarantees; panels are whole.
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
    // SAFETY: inside the matrix as the caller guarantees; panels are whole.
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
    // SAFETY: inside the matrix as the caller guarantees; panels are whole.
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

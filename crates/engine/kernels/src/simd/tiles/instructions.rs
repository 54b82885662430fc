//! The instructions of a tile unit (AMX), by inline assembly: they are not in stable Rust. Public
//! for the trainer, whose products have loops of their own.
//!
//! All but [`transpose`] need a thread that has configured its tiles on a machine where
//! [`instruction_set`](crate::instruction_set) is `amx`; pointers must be valid for the rows of the
//! tile's shape, `stride` bytes apart. The compiler itself never uses tiles.

use std::arch::asm;
use std::arch::x86_64::*;

use super::{ROW, SIDE};

/// The memory operand of `ldtilecfg`: palette 1, then the bytes of a row and the rows of each tile.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub struct Configuration([u8; 64]);

impl Configuration {
    /// All tiles with 16 rows of 64 bytes.
    pub const WHOLE: Self = Self::new(&[(SIDE, ROW); 8]);

    /// Rows, and bytes of a row, of each tile.
    #[inline(always)]
    pub const fn new(shapes: &[(usize, usize); 8]) -> Self {
        let mut bytes = [0; 64];
        bytes[0] = 1;
        let mut tile = 0;
        while tile < 8 {
            let (rows, row) = shapes[tile];
            bytes[16 + 2 * tile] = row as u8;
            bytes[48 + tile] = rows as u8;
            tile += 1;
        }
        Self(bytes)
    }
}

/// Sets the shapes of this thread's tiles, which become zero.
///
/// # Safety
/// The machine must have tiles.
#[inline(always)]
pub unsafe fn configure(configuration: &Configuration) {
    // SAFETY: the caller's guarantee.
    unsafe { asm!("ldtilecfg [{}]", in(reg) configuration, options(readonly, nostack, preserves_flags)) };
}

/// Gives this thread's tiles back, so that the kernel has nothing to save for it.
///
/// # Safety
/// The machine must have tiles.
#[inline(always)]
pub unsafe fn release() {
    // SAFETY: the caller's guarantee.
    unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
}

/// Tile `T` becomes zero.
///
/// # Safety
/// As for this module.
#[inline(always)]
pub unsafe fn zero<const T: usize>() {
    // SAFETY: the caller's guarantee.
    unsafe { asm!("tilezero tmm{t}", t = const T, options(nomem, nostack, preserves_flags)) };
}

/// Reads tile `T`.
///
/// # Safety
/// As for this module.
#[inline(always)]
pub unsafe fn load<const T: usize>(p: *const u8, stride: usize) {
    // SAFETY: the caller's guarantee.
    unsafe {
        asm!("tileloadd tmm{t}, [{p} + {s}*1]", t = const T, p = in(reg) p, s = in(reg) stride, options(readonly, nostack, preserves_flags))
    };
}

/// Writes tile `T`.
///
/// # Safety
/// As for this module.
#[inline(always)]
pub unsafe fn store<const T: usize>(p: *mut u8, stride: usize) {
    // SAFETY: the caller's guarantee.
    unsafe { asm!("tilestored [{p} + {s}*1], tmm{t}", t = const T, p = in(reg) p, s = in(reg) stride, options(nostack, preserves_flags)) };
}

/// Adds the products of pairs of bf16 of tiles `A` and `B` to the f32 of tile `C`.
///
/// # Safety
/// As for this module; the shapes must fit.
#[inline(always)]
pub unsafe fn add_bf16<const C: usize, const A: usize, const B: usize>() {
    // SAFETY: the caller's guarantee.
    unsafe { asm!("tdpbf16ps tmm{c}, tmm{a}, tmm{b}", c = const C, a = const A, b = const B, options(nomem, nostack, preserves_flags)) };
}

/// Exchanges rows and columns of 16 x 16 words, whose rows are `stride` and `to_stride` bytes apart.
///
/// # Safety
/// The machine must have AVX-512 F, and the pointers must be valid for 16 rows of 64 bytes.
#[target_feature(enable = "avx512f")]
pub unsafe fn transpose(from: *const u32, stride: usize, to: *mut u32, to_stride: usize) {
    // SAFETY: the caller's guarantees.
    unsafe {
        let mut rows = [_mm512_setzero_si512(); SIDE];
        for (i, row) in rows.iter_mut().enumerate() {
            *row = _mm512_loadu_si512(from.byte_add(i * stride).cast());
        }
        for (i, row) in transposed(rows).into_iter().enumerate() {
            _mm512_storeu_si512(to.byte_add(i * to_stride).cast(), row);
        }
    }
}

/// Exchanges rows and columns: words, pairs, fours and eights of rows, one after the other.
///
/// # Safety
/// The machine must have AVX-512 F.
#[inline(always)]
pub(super) unsafe fn transposed(rows: [__m512i; SIDE]) -> [__m512i; SIDE] {
    // SAFETY: the caller's guarantee.
    unsafe {
        let (mut a, mut b) = (rows, rows);
        for i in (0..SIDE).step_by(2) {
            b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
            b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
        }
        // a[4g + c]: of rows 4g to 4g + 3, column c of every four columns
        for i in (0..SIDE).step_by(4) {
            a[i] = _mm512_unpacklo_epi64(b[i], b[i + 2]);
            a[i + 1] = _mm512_unpackhi_epi64(b[i], b[i + 2]);
            a[i + 2] = _mm512_unpacklo_epi64(b[i + 1], b[i + 3]);
            a[i + 3] = _mm512_unpackhi_epi64(b[i + 1], b[i + 3]);
        }
        for c in 0..4 {
            // fours of rows 0 and 4, then 8 and 12: of columns c and 8 + c, of 4 + c and 12 + c
            let (low, high) = (_mm512_shuffle_i32x4::<0x88>(a[c], a[4 + c]), _mm512_shuffle_i32x4::<0x88>(a[8 + c], a[12 + c]));
            let (low_odd, high_odd) = (_mm512_shuffle_i32x4::<0xdd>(a[c], a[4 + c]), _mm512_shuffle_i32x4::<0xdd>(a[8 + c], a[12 + c]));
            b[c] = _mm512_shuffle_i32x4::<0x88>(low, high);
            b[8 + c] = _mm512_shuffle_i32x4::<0xdd>(low, high);
            b[4 + c] = _mm512_shuffle_i32x4::<0x88>(low_odd, high_odd);
            b[12 + c] = _mm512_shuffle_i32x4::<0xdd>(low_odd, high_odd);
        }
        b
    }
}

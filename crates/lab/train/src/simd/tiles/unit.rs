//! The machine's tile unit, by inline assembly: its instructions are not in stable Rust.

use std::arch::asm;
use std::arch::x86_64::*;
use std::cell::RefCell;

use super::{ROW, SIDE, Scratch, Tiles};
use crate::element::Element;
use crate::product::{Segment, Target};

thread_local! {
    static SCRATCH: RefCell<Box<Scratch>> = RefCell::new(Scratch::new());
}

/// See [`super::product`].
///
/// # Safety
/// The machine must have tiles for bf16 (AMX), which this process may use, and AVX-512 F, BW, DQ
/// and VL. Factors and target must fit, as `product::product` checks.
pub(in crate::simd) unsafe fn product<E: Element>(m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], mut target: Target<'_, E>) {
    // SAFETY: as the caller guarantees.
    SCRATCH.with_borrow_mut(|scratch| unsafe { compute(scratch, m, n, alpha, segments, &mut target) });
}

/// # Safety
/// As for [`product`].
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
unsafe fn compute<E: Element>(s: &mut Scratch, m: usize, n: usize, alpha: f32, segments: &[Segment<'_, E>], target: &mut Target<'_, E>) {
    // SAFETY: as the caller guarantees; no other unit of this thread exists.
    unsafe { super::product(&mut Unit::new(), s, (m, n), alpha, segments, target) }
}

/// The tile unit of this thread. Tiles are released when it is dropped, so that the kernel has
/// nothing to save for a thread that computes something else.
struct Unit(());

/// The memory operand of `ldtilecfg`: palette 1, then the bytes of a row and the rows of each tile.
#[repr(C, align(64))]
struct Configuration([u8; 64]);

static WHOLE: Configuration = {
    let mut bytes = [0; 64];
    bytes[0] = 1;
    let mut tile = 0;
    while tile < 8 {
        bytes[16 + 2 * tile] = ROW as u8;
        bytes[48 + tile] = SIDE as u8;
        tile += 1;
    }
    Configuration(bytes)
};

impl Unit {
    /// # Safety
    /// The machine must have tiles, and the thread no other value.
    #[inline(always)]
    unsafe fn new() -> Self {
        // SAFETY: as the caller guarantees.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const WHOLE, options(readonly, nostack, preserves_flags)) };
        Self(())
    }
}

impl Drop for Unit {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the machine has tiles (see `new`).
        unsafe { asm!("tilerelease", options(nomem, nostack, preserves_flags)) };
    }
}

// SAFETY (all functions of this implementation): reads and writes are those that the trait's
// contract allows, and so is the use of the instructions. The compiler never uses tiles itself.
impl Tiles for Unit {
    #[inline(always)]
    unsafe fn zero<const T: usize>(&mut self) {
        // SAFETY: see above.
        unsafe { asm!("tilezero tmm{t}", t = const T, options(nomem, nostack, preserves_flags)) };
    }

    #[inline(always)]
    unsafe fn load<const T: usize>(&mut self, p: *const u32, stride: usize) {
        // SAFETY: see above.
        unsafe {
            asm!("tileloadd tmm{t}, [{p} + {s}*1]", t = const T, p = in(reg) p, s = in(reg) stride, options(readonly, nostack, preserves_flags))
        };
    }

    #[inline(always)]
    unsafe fn store<const T: usize>(&mut self, p: *mut u32, stride: usize) {
        // SAFETY: see above.
        unsafe {
            asm!("tilestored [{p} + {s}*1], tmm{t}", t = const T, p = in(reg) p, s = in(reg) stride, options(nostack, preserves_flags))
        };
    }

    #[inline(always)]
    unsafe fn multiply<const C: usize, const A: usize, const B: usize>(&mut self) {
        // SAFETY: see above.
        unsafe {
            asm!("tdpbf16ps tmm{c}, tmm{a}, tmm{b}", c = const C, a = const A, b = const B, options(nomem, nostack, preserves_flags))
        };
    }

    #[inline(always)]
    unsafe fn transpose(from: *const u32, stride: usize, to: *mut u32, to_stride: usize) {
        // SAFETY: see above.
        unsafe { transpose(from, stride, to, to_stride) }
    }

    #[inline(always)]
    fn prefetch(p: *const u32) {
        // SAFETY: a prefetch has no visible effect and never faults; every x86-64 has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) };
    }
}

/// Exchanges rows and columns: words, pairs, fours and eights of rows, one after the other.
///
/// A function of its own: inlined into generic code, each intrinsic would become a call.
///
/// # Safety
/// As for [`Tiles::transpose`].
#[target_feature(enable = "avx512f")]
pub(in crate::simd) unsafe fn transpose(from: *const u32, stride: usize, to: *mut u32, to_stride: usize) {
    // SAFETY: as the caller guarantees.
    unsafe {
        let zero = _mm512_setzero_si512();
        let (mut a, mut b) = ([zero; SIDE], [zero; SIDE]);
        for (i, a) in a.iter_mut().enumerate() {
            *a = _mm512_loadu_si512(from.byte_add(i * stride).cast());
        }
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
        for (i, b) in b.into_iter().enumerate() {
            _mm512_storeu_si512(to.byte_add(i * to_stride).cast(), b);
        }
    }
}

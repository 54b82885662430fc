//! Vectors of f32 and products with bf16 weights for AVX2 and AVX-512.

use std::arch::x86_64::*;

use super::attention::Product;
use super::{Dot, Vector};

/// A mask of the first `n` of 16 lanes.
#[inline(always)]
fn first(n: usize) -> __mmask16 {
    if n >= 16 { !0 } else { (1 << n) - 1 }
}

/// 16 f32. Needs AVX-512 F, VL, DQ and BW.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct V512(pub(super) __m512);

// SAFETY (all functions of this file): reads and writes are those that the traits' contracts allow,
// and so is the use of the instructions.
impl Vector for V512 {
    const LANES: usize = 16;
    const ROWS: usize = 6;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_ps(p) })
    }

    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        // SAFETY: see above; masked lanes are not read.
        Self(unsafe { _mm512_maskz_loadu_ps(first(n), p) })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(p, self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        // SAFETY: see above; masked lanes are not written.
        unsafe { _mm512_mask_storeu_ps(p, first(n), self.0) }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_set1_ps(p.read_unaligned()) })
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_fmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    unsafe fn widen(self, half: usize, keep: u32) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = if half == 0 { keep << 16 } else { keep & 0xffff_0000 };
            let words = _mm512_castps_si512(self.0);
            let words = if half == 0 { _mm512_slli_epi32::<16>(words) } else { words };
            Self(_mm512_castsi512_ps(_mm512_and_si512(words, _mm512_set1_epi32(mask.cast_signed()))))
        }
    }

    #[inline(always)]
    unsafe fn sums([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        // SAFETY: see above; a `__m128` is four f32.
        unsafe {
            let ab = _mm512_add_ps(_mm512_unpacklo_ps(a.0, b.0), _mm512_unpackhi_ps(a.0, b.0));
            let cd = _mm512_add_ps(_mm512_unpacklo_ps(c.0, d.0), _mm512_unpackhi_ps(c.0, d.0));
            let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
            let all = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd)), _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd)));
            let half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps::<1>(all));
            std::mem::transmute(_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps::<1>(half)))
        }
    }
}

/// 8 f32. Needs AVX2 and FMA.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct V256(pub(super) __m256);

impl Vector for V256 {
    const LANES: usize = 8;
    const ROWS: usize = 2;

    #[inline(always)]
    unsafe fn zero() -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_setzero_ps() })
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_loadu_ps(p) })
    }

    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        let mut all = [0f32; 8];
        // SAFETY: see above; `n < 8`.
        unsafe {
            std::ptr::copy_nonoverlapping(p.cast::<u8>(), all.as_mut_ptr().cast::<u8>(), 4 * n);
            Self::load(all.as_ptr())
        }
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(p, self.0) }
    }

    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        let mut all = [0f32; 8];
        // SAFETY: see above; `n < 8`.
        unsafe {
            self.store(all.as_mut_ptr());
            std::ptr::copy_nonoverlapping(all.as_ptr().cast::<u8>(), p.cast::<u8>(), 4 * n);
        }
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_set1_ps(p.read_unaligned()) })
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm256_fmadd_ps(a.0, b.0, self.0) })
    }

    #[inline(always)]
    unsafe fn widen(self, half: usize, keep: u32) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = if half == 0 { keep << 16 } else { keep & 0xffff_0000 };
            let words = _mm256_castps_si256(self.0);
            let words = if half == 0 { _mm256_slli_epi32::<16>(words) } else { words };
            Self(_mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(mask.cast_signed()))))
        }
    }

    #[inline(always)]
    unsafe fn sums([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        // SAFETY: see above; a `__m128` is four f32.
        unsafe {
            let ab = _mm256_add_ps(_mm256_unpacklo_ps(a.0, b.0), _mm256_unpackhi_ps(a.0, b.0));
            let cd = _mm256_add_ps(_mm256_unpacklo_ps(c.0, d.0), _mm256_unpackhi_ps(c.0, d.0));
            let (ab, cd) = (_mm256_castps_pd(ab), _mm256_castps_pd(cd));
            let all = _mm256_add_ps(_mm256_castpd_ps(_mm256_unpacklo_pd(ab, cd)), _mm256_castpd_ps(_mm256_unpackhi_pd(ab, cd)));
            std::mem::transmute(_mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps::<1>(all)))
        }
    }
}

/// bf16 weights with `vdpbf16ps`. Also needs AVX-512 BF16.
pub(super) struct Bf16Pairs;

impl Dot for Bf16Pairs {
    type Acc = V512;
    type Weight = __m512i;
    type Input = __m512i;
    const WEIGHT_BYTES: usize = 64;
    const INPUT_BYTES: usize = 64;
    const TOKENS: usize = 6;
    const HALVES: usize = 1;

    #[inline(always)]
    unsafe fn weight(p: *const u8, _: usize) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize, _: usize) -> __m512i {
        // SAFETY: see above; masked lanes are not read, and `bytes < 64`.
        unsafe { _mm512_maskz_loadu_epi8((1 << bytes) - 1, p.cast()) }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, _: usize) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_loadu_si512(p.cast()) }
    }

    #[inline(always)]
    unsafe fn step(acc: V512, weight: __m512i, input: __m512i) -> V512 {
        // SAFETY: see above; `__m512bh` is 512 plain bits.
        V512(unsafe {
            _mm512_dpbf16_ps(acc.0, std::mem::transmute::<__m512i, __m512bh>(weight), std::mem::transmute::<__m512i, __m512bh>(input))
        })
    }
}

/// Pairs of bf16 of attention with `vdpbf16ps`. Also needs AVX-512 BF16.
pub(super) struct Pairs;

impl Product for Pairs {
    type Acc = V512;
    type Factor = __m512i;
    const HALVES: usize = 1;

    #[inline(always)]
    unsafe fn splat(a: *const f32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_set1_epi32(a.cast::<i32>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn factor(words: V512, _: usize, keep: u32) -> __m512i {
        // SAFETY: see above.
        unsafe { _mm512_and_si512(_mm512_castps_si512(words.0), _mm512_set1_epi32(keep.cast_signed())) }
    }

    #[inline(always)]
    unsafe fn step(acc: V512, a: __m512i, b: __m512i) -> V512 {
        // SAFETY: see above.
        unsafe { Bf16Pairs::step(acc, b, a) }
    }
}

/// bf16 weights converted to f32: the numbers at even indices, then those at odd ones.
pub(super) struct Bf16Wide;

impl Dot for Bf16Wide {
    type Acc = V512;
    type Weight = V512;
    type Input = V512;
    const WEIGHT_BYTES: usize = 64;
    const INPUT_BYTES: usize = 64;
    const TOKENS: usize = 5;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8, half: usize) -> V512 {
        // SAFETY: see above.
        unsafe { widen_512(_mm512_loadu_si512(p.cast()), half) }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize, half: usize) -> V512 {
        // SAFETY: see above; masked lanes are not read, and `bytes < 64`.
        unsafe { widen_512(_mm512_maskz_loadu_epi8((1 << bytes) - 1, p.cast()), half) }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, half: usize) -> V512 {
        // SAFETY: see above.
        unsafe { Self::weight(p, half) }
    }

    #[inline(always)]
    unsafe fn step(acc: V512, weight: V512, input: V512) -> V512 {
        // SAFETY: see above.
        unsafe { acc.add_product(weight, input) }
    }
}

#[inline(always)]
unsafe fn widen_512(pairs: __m512i, half: usize) -> V512 {
    // SAFETY: see above.
    unsafe {
        let even = _mm512_slli_epi32::<16>(pairs);
        let odd = _mm512_and_si512(pairs, _mm512_set1_epi32(0xffff_0000_u32 as i32));
        V512(_mm512_castsi512_ps(if half == 0 { even } else { odd }))
    }
}

/// The same for AVX2.
pub(super) struct Bf16Half;

impl Dot for Bf16Half {
    type Acc = V256;
    type Weight = V256;
    type Input = V256;
    const WEIGHT_BYTES: usize = 32;
    const INPUT_BYTES: usize = 32;
    const TOKENS: usize = 1;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8, half: usize) -> V256 {
        // SAFETY: see above.
        unsafe {
            let pairs = _mm256_loadu_si256(p.cast());
            let even = _mm256_slli_epi32::<16>(pairs);
            let odd = _mm256_and_si256(pairs, _mm256_set1_epi32(0xffff_0000_u32 as i32));
            V256(_mm256_castsi256_ps(if half == 0 { even } else { odd }))
        }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize, half: usize) -> V256 {
        let mut all = [0u8; 32];
        // SAFETY: see above; `bytes < 32`.
        unsafe {
            std::ptr::copy_nonoverlapping(p, all.as_mut_ptr(), bytes);
            Self::weight(all.as_ptr(), half)
        }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, half: usize) -> V256 {
        // SAFETY: see above.
        unsafe { Self::weight(p, half) }
    }

    #[inline(always)]
    unsafe fn step(acc: V256, weight: V256, input: V256) -> V256 {
        // SAFETY: see above.
        unsafe { acc.add_product(weight, input) }
    }
}

//! Products with weights in blocks of bytes (Q8_0), two blocks in a step. For the inputs see `inputs.rs`: 64 signed
//! bytes, 16 corrections, 16 scales (eight for each block).

use std::arch::x86_64::*;

use super::Dot;
use super::x86::{V256, V512};

/// Bytes of a block.
const GROUP: usize = 34;

/// With `vpdpbusd`: needs AVX-512 F, VL, DQ, BW, VNNI and F16C.
///
/// The instruction wants one factor unsigned, so that 128 is added to the weights, and the inputs bring `-128 * sum(x)`.
pub(super) struct BytesVnni;

#[derive(Clone, Copy)]
pub(super) struct Weight512 {
    scales: __m512,
    bytes: __m512i,
}

#[derive(Clone, Copy)]
pub(super) struct Input512 {
    bytes: __m512i,
    corrections: __m512i,
    scales: __m512,
}

// SAFETY (all functions of this file): reads are those that the trait's contract allows, and so is the use of the
// instructions.
impl Dot for BytesVnni {
    type Acc = V512;
    type Weight = Weight512;
    type Input = Input512;
    const WEIGHT_BYTES: usize = 2 * GROUP;
    const INPUT_BYTES: usize = 192;
    const TOKENS: usize = 4;

    #[inline(always)]
    unsafe fn weight(p: *const u8) -> Weight512 {
        // SAFETY: see above.
        unsafe {
            let low = _mm256_loadu_si256(p.add(2).cast());
            let high = _mm256_loadu_si256(p.add(GROUP + 2).cast());
            let bytes = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            let scale = _mm256_set1_epi16(p.cast::<i16>().read_unaligned());
            let scales = _mm256_mask_set1_epi16(scale, 0xff00, p.add(GROUP).cast::<i16>().read_unaligned());
            Weight512 { scales: _mm512_cvtph_ps(scales), bytes: _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)) }
        }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, _: usize) -> Weight512 {
        // SAFETY: see above; rows are whole blocks, so that this is one.
        unsafe {
            let bytes = _mm512_zextsi256_si512(_mm256_loadu_si256(p.add(2).cast()));
            let scales = _mm256_maskz_set1_epi16(0x00ff, p.cast::<i16>().read_unaligned());
            Weight512 { scales: _mm512_cvtph_ps(scales), bytes: _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)) }
        }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8) -> Input512 {
        // SAFETY: see above.
        unsafe {
            Input512 {
                bytes: _mm512_loadu_si512(p.cast()),
                corrections: _mm512_loadu_si512(p.add(64).cast()),
                scales: _mm512_loadu_ps(p.add(128).cast()),
            }
        }
    }

    #[inline(always)]
    unsafe fn step(acc: V512, weight: Weight512, input: Input512) -> V512 {
        // SAFETY: see above.
        unsafe {
            let sums = _mm512_dpbusd_epi32(input.corrections, weight.bytes, input.bytes);
            let scales = _mm512_mul_ps(weight.scales, input.scales);
            V512(_mm512_fmadd_ps(_mm512_cvtepi32_ps(sums), scales, acc.0))
        }
    }
}

/// With `vpmaddubsw`: needs AVX2, FMA and F16C.
///
/// The instruction wants one factor unsigned: the weights' signs move to the inputs. Pairs of products fit in 16 bits
/// because inputs are at least -127.
pub(super) struct BytesPairs;

#[derive(Clone, Copy)]
pub(super) struct Weight256 {
    scales: [f32; 2],
    bytes: [__m256i; 2],
}

#[derive(Clone, Copy)]
pub(super) struct Input256 {
    scales: [f32; 2],
    bytes: [__m256i; 2],
}

#[inline(always)]
unsafe fn half(p: *const u8) -> f32 {
    // SAFETY: see above.
    unsafe { _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(p.cast::<u16>().read_unaligned())))) }
}

impl Dot for BytesPairs {
    type Acc = V256;
    type Weight = Weight256;
    type Input = Input256;
    const WEIGHT_BYTES: usize = 2 * GROUP;
    const INPUT_BYTES: usize = 192;
    const TOKENS: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8) -> Weight256 {
        // SAFETY: see above.
        unsafe {
            Weight256 {
                scales: [half(p), half(p.add(GROUP))],
                bytes: [_mm256_loadu_si256(p.add(2).cast()), _mm256_loadu_si256(p.add(GROUP + 2).cast())],
            }
        }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, _: usize) -> Weight256 {
        // SAFETY: see above; rows are whole blocks, so that this is one.
        unsafe { Weight256 { scales: [half(p), 0.0], bytes: [_mm256_loadu_si256(p.add(2).cast()), _mm256_setzero_si256()] } }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8) -> Input256 {
        // SAFETY: see above.
        unsafe {
            Input256 {
                bytes: [_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(32).cast())],
                scales: [p.add(128).cast::<f32>().read_unaligned(), p.add(160).cast::<f32>().read_unaligned()],
            }
        }
    }

    #[inline(always)]
    unsafe fn step(acc: V256, weight: Weight256, input: Input256) -> V256 {
        // SAFETY: see above.
        unsafe {
            let mut acc = acc.0;
            for i in 0..2 {
                let (w, x) = (weight.bytes[i], input.bytes[i]);
                let pairs = _mm256_maddubs_epi16(_mm256_sign_epi8(w, w), _mm256_sign_epi8(x, w));
                let sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
                acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(weight.scales[i] * input.scales[i]), acc);
            }
            V256(acc)
        }
    }
}

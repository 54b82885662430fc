//! Products with Q8_0 weights, two blocks per step. `inputs.rs` describes the layout of the inputs:
//! 64 signed bytes, 16 corrections, 16 scales (eight for each block).

use std::arch::x86_64::*;

use super::Dot;
use super::x86::{V256, V512};

/// Bytes of a Q8_0 block.
const GROUP: usize = 34;

/// With `vpdpbusd`. Needs AVX-512 F, VL, DQ, BW, VNNI and F16C.
///
/// The instruction needs one unsigned factor. So 128 is added to the weights, and the inputs
/// contain the correction `-128 * sum(x)`.
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

// SAFETY (all functions of this file): reads are those that the trait's contract allows, and so is
// the use of the instructions.
impl Dot for BytesVnni {
    type Acc = V512;
    type Weight = Weight512;
    type Input = Input512;
    const WEIGHT_BYTES: usize = 2 * GROUP;
    const INPUT_BYTES: usize = 192;
    const TOKENS: usize = 4;
    const HALVES: usize = 1;

    #[inline(always)]
    unsafe fn weight(p: *const u8, _: usize) -> Weight512 {
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
    unsafe fn weight_part(p: *const u8, _: usize, _: usize) -> Weight512 {
        // SAFETY: see above; rows are whole blocks, so a partial step is one block.
        unsafe {
            let bytes = _mm512_zextsi256_si512(_mm256_loadu_si256(p.add(2).cast()));
            let scales = _mm256_maskz_set1_epi16(0x00ff, p.cast::<i16>().read_unaligned());
            Weight512 { scales: _mm512_cvtph_ps(scales), bytes: _mm512_xor_si512(bytes, _mm512_set1_epi8(-128)) }
        }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, _: usize) -> Input512 {
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

/// With `vpmaddubsw`. Needs AVX2, FMA and F16C.
///
/// The instruction needs one unsigned factor. So the weights' signs are applied to the inputs. Sums
/// of two products fit in 16 bits because inputs are at least -127.
pub(super) struct BytesPairs;

/// A block's scale and its 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct Group256 {
    scale: f32,
    bytes: __m256i,
}

impl Dot for BytesPairs {
    type Acc = V256;
    type Weight = Group256;
    type Input = Group256;
    const WEIGHT_BYTES: usize = 2 * GROUP;
    const INPUT_BYTES: usize = 192;
    const TOKENS: usize = 1;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8, half: usize) -> Group256 {
        // SAFETY: see above.
        unsafe {
            let p = p.add(GROUP * half);
            let scale = _mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(p.cast::<u16>().read_unaligned())));
            Group256 { scale: _mm_cvtss_f32(scale), bytes: _mm256_loadu_si256(p.add(2).cast()) }
        }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, _: usize, half: usize) -> Group256 {
        // SAFETY: see above; rows are whole blocks, so a partial step is one block.
        if half == 0 { unsafe { Self::weight(p, 0) } } else { Group256 { scale: 0.0, bytes: unsafe { _mm256_setzero_si256() } } }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, half: usize) -> Group256 {
        // SAFETY: see above.
        unsafe {
            Group256 { scale: p.add(128 + 32 * half).cast::<f32>().read_unaligned(), bytes: _mm256_loadu_si256(p.add(32 * half).cast()) }
        }
    }

    #[inline(always)]
    unsafe fn step(acc: V256, Group256 { scale, bytes: w }: Group256, x: Group256) -> V256 {
        // SAFETY: see above.
        unsafe {
            let pairs = _mm256_maddubs_epi16(_mm256_sign_epi8(w, w), _mm256_sign_epi8(x.bytes, w));
            let sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
            V256(_mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(scale * x.scale), acc.0))
        }
    }
}

//! Sixteen f32 at once, for what attention computes between its products on tiles: on the machine
//! that has the unit, and in portable code for its model. Both give the same bits.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use super::SIDE;
#[cfg(target_arch = "x86_64")]
use crate::simd::x86::V512;

/// Contract of all operations: the machine has the instructions, and pointers are valid for 16
/// numbers, with any alignment.
pub(super) trait Lanes: Copy {
    unsafe fn load(p: *const f32) -> Self;
    unsafe fn store(self, p: *mut f32);
    unsafe fn splat(x: f32) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    unsafe fn mul(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once.
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self;
    /// The other number where it is larger; where one is NaN, this one.
    unsafe fn larger(self, other: Self) -> Self;
    /// 0 where `x` is less than `least`.
    unsafe fn zero_if_less(self, x: Self, least: Self) -> Self;
    /// Minus infinity, but for lanes `from..to`.
    unsafe fn limit(self, from: usize, to: usize) -> Self;
    /// The number whose exponent, with its bias, is the lowest eight bits.
    unsafe fn power(self) -> Self;
    /// These numbers, then the others, rounded to bf16, two in a word.
    unsafe fn pairs(self, then: Self) -> Self;
    /// The lower numbers of pairs.
    unsafe fn low(self) -> Self;
    /// The upper numbers of pairs.
    unsafe fn high(self) -> Self;
}

/// The first `n` of 16 lanes.
#[inline(always)]
fn first(n: usize) -> u16 {
    if n >= SIDE { !0 } else { (1 << n) - 1 }
}

// SAFETY (all functions of this implementation): reads and writes are those that the trait's
// contract allows, and so is the use of the instructions. `pairs` needs AVX-512 BF16 as well.
#[cfg(target_arch = "x86_64")]
impl Lanes for V512 {
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_loadu_ps(p) })
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(p, self.0) }
    }

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_set1_ps(x) })
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_add_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_sub_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_mul_ps(self.0, other.0) })
    }

    #[inline(always)]
    unsafe fn mul_add(self, factor: Self, term: Self) -> Self {
        // SAFETY: see above.
        Self(unsafe { _mm512_fmadd_ps(self.0, factor.0, term.0) })
    }

    #[inline(always)]
    unsafe fn larger(self, other: Self) -> Self {
        // SAFETY: see above. The instruction returns the second operand unless the first is larger.
        Self(unsafe { _mm512_max_ps(other.0, self.0) })
    }

    #[inline(always)]
    unsafe fn zero_if_less(self, x: Self, least: Self) -> Self {
        // SAFETY: see above.
        unsafe {
            let kept = _mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x.0, least.0);
            Self(_mm512_maskz_mov_ps(kept, self.0))
        }
    }

    #[inline(always)]
    unsafe fn limit(self, from: usize, to: usize) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_mask_mov_ps(_mm512_set1_ps(f32::NEG_INFINITY), first(to) & !first(from), self.0)) }
    }

    #[inline(always)]
    unsafe fn power(self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_castps_si512(self.0)))) }
    }

    #[inline(always)]
    unsafe fn pairs(self, then: Self) -> Self {
        // SAFETY: see above; `__m512bh` is 512 plain bits.
        Self(unsafe { std::mem::transmute::<__m512bh, __m512>(_mm512_cvtne2ps_pbh(then.0, self.0)) })
    }

    #[inline(always)]
    unsafe fn low(self) -> Self {
        // SAFETY: see above.
        unsafe { Self(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_castps_si512(self.0)))) }
    }

    #[inline(always)]
    unsafe fn high(self) -> Self {
        // SAFETY: see above.
        unsafe {
            let mask = _mm512_set1_epi32(0xffff_0000_u32.cast_signed());
            Self(_mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(self.0), mask)))
        }
    }
}

/// The portable ones.
#[cfg(test)]
#[derive(Clone, Copy)]
pub(super) struct Plain([f32; SIDE]);

#[cfg(test)]
impl Plain {
    fn with(mut self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        for (x, y) in self.0.iter_mut().zip(other.0) {
            *x = f(*x, y);
        }
        self
    }

    fn bits(self, f: impl Fn(u32) -> u32) -> Self {
        Self(self.0.map(|x| f32::from_bits(f(x.to_bits()))))
    }
}

// SAFETY (all functions of this implementation): reads and writes are those that the trait's
// contract allows.
#[cfg(test)]
impl Lanes for Plain {
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { p.cast::<[f32; SIDE]>().read_unaligned() })
    }

    unsafe fn store(self, p: *mut f32) {
        // SAFETY: see above.
        unsafe { p.cast::<[f32; SIDE]>().write_unaligned(self.0) }
    }

    unsafe fn splat(x: f32) -> Self {
        Self([x; SIDE])
    }

    unsafe fn add(self, other: Self) -> Self {
        self.with(other, |a, b| a + b)
    }

    unsafe fn sub(self, other: Self) -> Self {
        self.with(other, |a, b| a - b)
    }

    unsafe fn mul(self, other: Self) -> Self {
        self.with(other, |a, b| a * b)
    }

    unsafe fn mul_add(mut self, factor: Self, term: Self) -> Self {
        for (x, (factor, term)) in self.0.iter_mut().zip(factor.0.into_iter().zip(term.0)) {
            *x = x.mul_add(factor, term);
        }
        self
    }

    unsafe fn larger(self, other: Self) -> Self {
        self.with(other, |a, b| if b > a { b } else { a })
    }

    unsafe fn zero_if_less(mut self, x: Self, least: Self) -> Self {
        for (y, (x, least)) in self.0.iter_mut().zip(x.0.into_iter().zip(least.0)) {
            *y = if x < least { 0.0 } else { *y };
        }
        self
    }

    unsafe fn limit(mut self, from: usize, to: usize) -> Self {
        let kept = first(to) & !first(from);
        for (i, x) in self.0.iter_mut().enumerate() {
            *x = if kept >> i & 1 == 1 { *x } else { f32::NEG_INFINITY };
        }
        self
    }

    unsafe fn power(self) -> Self {
        self.bits(|bits| bits << 23)
    }

    unsafe fn pairs(self, then: Self) -> Self {
        let mut words = [0.0; SIDE];
        for (x, words) in [self, then].iter().zip(words.as_chunks_mut::<{ SIDE / 2 }>().0) {
            for (word, x) in words.iter_mut().zip(x.0.as_chunks::<2>().0) {
                *word = f32::from_bits(crate::format::pair(x[0], x[1]));
            }
        }
        Self(words)
    }

    unsafe fn low(self) -> Self {
        self.bits(|bits| bits << 16)
    }

    unsafe fn high(self) -> Self {
        self.bits(|bits| bits & 0xffff_0000)
    }
}

#[cfg(test)]
mod tests {
    use super::{Lanes, Plain, SIDE};
    #[cfg(target_arch = "x86_64")]
    use crate::simd::testing::converts_pairs;
    use crate::tests::Noise;

    /// The results of all operations.
    ///
    /// # Safety
    /// The machine must have the instructions of `L`.
    #[inline(always)]
    unsafe fn results<L: Lanes>(x: &[[f32; SIDE]; 3]) -> Vec<u32> {
        let mut found = vec![];
        // SAFETY: the caller's guarantee; arrays have 16 numbers.
        unsafe {
            let [a, b, c] = [L::load(x[0].as_ptr()), L::load(x[1].as_ptr()), L::load(x[2].as_ptr())];
            let pairs = a.pairs(b);
            let all = [
                a.add(b),
                a.sub(b),
                a.mul(b),
                a.mul_add(b, c),
                a.larger(b),
                b.larger(a),
                a.zero_if_less(b, c),
                a.limit(0, 3),
                a.limit(5, 16),
                a.limit(4, 4),
                a.power(),
                pairs,
                pairs.low(),
                pairs.high(),
                L::splat(x[0][1]),
            ];
            for result in all {
                let mut numbers = [0f32; SIDE];
                result.store(numbers.as_mut_ptr());
                found.extend(numbers.map(f32::to_bits));
            }
        }
        found
    }

    #[test]
    fn operations_do_what_they_say() {
        let x = [1.0f32, -2.0, 0.5];
        // SAFETY: portable code.
        let found = unsafe { results::<Plain>(&x.map(|x| [x; SIDE])) };
        let first: Vec<f32> = found.chunks(SIDE).map(|x| f32::from_bits(x[0])).collect();
        assert_eq!(first[..10], [-1.0, 3.0, -2.0, -1.5, 1.0, 1.0, 0.0, 1.0, f32::NEG_INFINITY, f32::NEG_INFINITY]);
        assert_eq!(found[11 * SIDE], 0x3f80_3f80, "two of the first numbers");
        assert_eq!(found[12 * SIDE - 1], 0xc000_c000, "two of the others");
        assert_eq!(first[12..], [1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_machines_lanes_are_the_portable_ones() {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512bw") && converts_pairs() {
            #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512bf16,avx2,fma,f16c")]
            unsafe fn wide(x: &[[f32; SIDE]; 3]) -> Vec<u32> {
                // SAFETY: the machine has the instructions.
                unsafe { results::<super::V512>(x) }
            }
            let mut noise = Noise::new(8);
            for i in 0..100 {
                let mut x: [[f32; SIDE]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| noise.next()));
                if i % 2 == 1 {
                    x[i % 3][i % SIDE] = f32::INFINITY;
                    x[i % 3][i / 2 % SIDE] = -0.0;
                    x[i / 3 % 3][i / 5 % SIDE] = 3e38;
                }
                // SAFETY: the machine has the instructions; the others are portable code.
                let (found, expected) = unsafe { (wide(&x), results::<Plain>(&x)) };
                let same = |a: u32, b: u32| a == b || f32::from_bits(a).is_nan() && f32::from_bits(b).is_nan();
                let differs = found.iter().zip(&expected).position(|(a, b)| !same(*a, *b));
                let at = differs.map(|at| (at / SIDE, at % SIDE, found[at], expected[at]));
                assert_eq!(at, None, "operation, lane and numbers for {x:?}");
            }
        }
        let _ = Noise::new(8);
    }
}

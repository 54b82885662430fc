//! The operations in portable code, for machines without a supported instruction set.

use super::{Dot, Vector};

/// Eight f32.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Array([f32; 8]);

// SAFETY (all functions of this file): reads and writes are those that the traits' contracts allow.
impl Vector for Array {
    const LANES: usize = 8;
    const ROWS: usize = 1;

    #[inline(always)]
    unsafe fn zero() -> Self {
        Self([0.0; 8])
    }

    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: see above.
        Self(unsafe { p.cast::<[f32; 8]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn load_part(p: *const f32, n: usize) -> Self {
        let mut all = [0.0; 8];
        // SAFETY: see above; `n < 8`.
        unsafe { std::ptr::copy_nonoverlapping(p.cast::<u8>(), all.as_mut_ptr().cast::<u8>(), 4 * n) };
        Self(all)
    }

    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: see above.
        unsafe { p.cast::<[f32; 8]>().write_unaligned(self.0) };
    }

    #[inline(always)]
    unsafe fn store_part(self, p: *mut f32, n: usize) {
        // SAFETY: see above; `n < 8`.
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr().cast::<u8>(), p.cast::<u8>(), 4 * n) };
    }

    #[inline(always)]
    unsafe fn splat(p: *const f32) -> Self {
        // SAFETY: see above.
        Self([unsafe { p.read_unaligned() }; 8])
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        let mut sum = self.0;
        for (sum, (a, b)) in sum.iter_mut().zip(a.0.iter().zip(b.0)) {
            *sum += a * b;
        }
        Self(sum)
    }

    #[inline(always)]
    unsafe fn widen(self, half: usize, keep: u32) -> Self {
        widen(self.0.map(|word| word.to_bits() & keep), half)
    }

    #[inline(always)]
    unsafe fn sums(all: [Self; 4]) -> [f32; 4] {
        let mut sums = [0.0; 4];
        for (sum, Self(x)) in sums.iter_mut().zip(all) {
            let half = [x[0] + x[4], x[1] + x[5], x[2] + x[6], x[3] + x[7]];
            *sum = (half[0] + half[2]) + (half[1] + half[3]);
        }
        sums
    }
}

/// f32 weights with any kind of vector.
pub(super) struct F32<V, const TOKENS: usize>(std::marker::PhantomData<V>);

impl<V: Vector, const TOKENS: usize> Dot for F32<V, TOKENS> {
    type Acc = V;
    type Weight = V;
    type Input = V;
    const WEIGHT_BYTES: usize = 4 * V::LANES;
    const INPUT_BYTES: usize = 4 * V::LANES;
    const TOKENS: usize = TOKENS;
    const HALVES: usize = 1;

    #[inline(always)]
    unsafe fn weight(p: *const u8, _: usize) -> V {
        // SAFETY: as for the callee.
        unsafe { V::load(p.cast()) }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize, _: usize) -> V {
        // SAFETY: as for the callee.
        unsafe { V::load_part(p.cast(), bytes / 4) }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, _: usize) -> V {
        // SAFETY: as for the callee.
        unsafe { V::load(p.cast()) }
    }

    #[inline(always)]
    unsafe fn step(acc: V, weight: V, input: V) -> V {
        // SAFETY: as for the callee.
        unsafe { acc.add_product(weight, input) }
    }
}

/// bf16 weights: the numbers at even indices, then those at odd ones.
pub(super) struct Bf16;

#[inline(always)]
fn widen(pairs: [u32; 8], half: usize) -> Array {
    Array(pairs.map(|pair| f32::from_bits(if half == 0 { pair << 16 } else { pair & 0xffff_0000 })))
}

impl Dot for Bf16 {
    type Acc = Array;
    type Weight = Array;
    type Input = Array;
    const WEIGHT_BYTES: usize = 32;
    const INPUT_BYTES: usize = 32;
    const TOKENS: usize = 1;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8, half: usize) -> Array {
        // SAFETY: see above.
        widen(unsafe { p.cast::<[u32; 8]>().read_unaligned() }, half)
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize, half: usize) -> Array {
        let mut all = [0u32; 8];
        // SAFETY: see above; `bytes < 32`.
        unsafe { std::ptr::copy_nonoverlapping(p, all.as_mut_ptr().cast::<u8>(), bytes) };
        widen(all, half)
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, half: usize) -> Array {
        // SAFETY: see above.
        unsafe { Self::weight(p, half) }
    }

    #[inline(always)]
    unsafe fn step(acc: Array, weight: Array, input: Array) -> Array {
        // SAFETY: plain code.
        unsafe { acc.add_product(weight, input) }
    }
}

/// Q8_0 weights, two blocks in a step (`inputs.rs` describes the inputs).
pub(super) struct Bytes;

/// A scale and its 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct ScaledBytes(f32, [i8; 32]);

impl Dot for Bytes {
    type Acc = Array;
    type Weight = ScaledBytes;
    type Input = ScaledBytes;
    const WEIGHT_BYTES: usize = 68;
    const INPUT_BYTES: usize = 192;
    const TOKENS: usize = 1;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8, half: usize) -> ScaledBytes {
        // SAFETY: see above: two blocks of 34 bytes.
        unsafe {
            let p = p.add(34 * half);
            ScaledBytes(crate::format::f16_to_f32(p.cast::<u16>().read_unaligned()), p.add(2).cast::<[i8; 32]>().read_unaligned())
        }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, _: usize, half: usize) -> ScaledBytes {
        // SAFETY: see above; rows are whole blocks, so a partial step is one block.
        if half == 0 { unsafe { Self::weight(p, 0) } } else { ScaledBytes(0.0, [0; 32]) }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8, half: usize) -> ScaledBytes {
        // SAFETY: see above: 64 bytes, 64 bytes not needed here, and 16 f32: eight for each block.
        unsafe { ScaledBytes(p.add(128 + 32 * half).cast::<f32>().read_unaligned(), p.add(32 * half).cast::<[i8; 32]>().read_unaligned()) }
    }

    #[inline(always)]
    unsafe fn step(mut acc: Array, ScaledBytes(w_scale, w): ScaledBytes, ScaledBytes(x_scale, x): ScaledBytes) -> Array {
        let mut sums = [0i32; 8];
        for (i, (w, x)) in w.iter().zip(x).enumerate() {
            sums[i % 8] += i32::from(*w) * i32::from(x);
        }
        for (acc, sum) in acc.0.iter_mut().zip(sums) {
            *acc += w_scale * x_scale * sum as f32;
        }
        acc
    }
}

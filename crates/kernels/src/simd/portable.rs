//! The operations in plain code, for machines whose vector instructions we do not know.

use super::{Dot, Vector};

/// Eight numbers.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct Array([f32; 8]);

// SAFETY (all functions of this file): reads and writes are those that the traits' contracts allow.
impl Vector for Array {
    const LANES: usize = 8;
    const ROWS: usize = 2;

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
        unsafe { std::ptr::copy_nonoverlapping(p, all.as_mut_ptr(), n) };
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
        unsafe { std::ptr::copy_nonoverlapping(self.0.as_ptr(), p, n) };
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

    #[inline(always)]
    unsafe fn weight(p: *const u8) -> V {
        // SAFETY: as for the callee.
        unsafe { V::load(p.cast()) }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize) -> V {
        // SAFETY: as for the callee.
        unsafe { V::load_part(p.cast(), bytes / 4) }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8) -> V {
        // SAFETY: as for the callee.
        unsafe { V::load(p.cast()) }
    }

    #[inline(always)]
    unsafe fn step(acc: V, weight: V, input: V) -> V {
        // SAFETY: as for the callee.
        unsafe { acc.add_product(weight, input) }
    }
}

/// bf16 weights: numbers at even places, then those at odd ones.
pub(super) struct Bf16;

#[inline(always)]
fn widen(pairs: [u32; 8]) -> [Array; 2] {
    [Array(pairs.map(|pair| f32::from_bits(pair << 16))), Array(pairs.map(|pair| f32::from_bits(pair & 0xffff_0000)))]
}

impl Dot for Bf16 {
    type Acc = Array;
    type Weight = [Array; 2];
    type Input = [Array; 2];
    const WEIGHT_BYTES: usize = 32;
    const INPUT_BYTES: usize = 32;
    const TOKENS: usize = 2;

    #[inline(always)]
    unsafe fn weight(p: *const u8) -> [Array; 2] {
        // SAFETY: see above.
        widen(unsafe { p.cast::<[u32; 8]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, bytes: usize) -> [Array; 2] {
        let mut all = [0u32; 8];
        // SAFETY: see above; `bytes < 32`.
        unsafe { std::ptr::copy_nonoverlapping(p, all.as_mut_ptr().cast::<u8>(), bytes) };
        widen(all)
    }

    #[inline(always)]
    unsafe fn input(p: *const u8) -> [Array; 2] {
        // SAFETY: see above.
        unsafe { Self::weight(p) }
    }

    #[inline(always)]
    unsafe fn step(acc: Array, [w0, w1]: [Array; 2], [x0, x1]: [Array; 2]) -> Array {
        // SAFETY: plain code.
        unsafe { acc.add_product(w0, x0).add_product(w1, x1) }
    }
}

/// Weights in blocks of 32 bytes, two blocks in a step (for the inputs see `inputs.rs`).
pub(super) struct Bytes;

impl Dot for Bytes {
    type Acc = Array;
    type Weight = [(f32, [i8; 32]); 2];
    type Input = [(f32, [i8; 32]); 2];
    const WEIGHT_BYTES: usize = 68;
    const INPUT_BYTES: usize = 192;
    const TOKENS: usize = 1;

    #[inline(always)]
    unsafe fn weight(p: *const u8) -> Self::Weight {
        // SAFETY: see above: two blocks.
        unsafe { [group(p), group(p.add(34))] }
    }

    #[inline(always)]
    unsafe fn weight_part(p: *const u8, _: usize) -> Self::Weight {
        // SAFETY: see above: rows are whole blocks, so that this is one.
        unsafe { [group(p), (0.0, [0; 32])] }
    }

    #[inline(always)]
    unsafe fn input(p: *const u8) -> Self::Input {
        // SAFETY: see above: 64 bytes, 64 bytes not needed here, and 16 f32: eight for each block.
        unsafe {
            [
                (p.add(128).cast::<f32>().read_unaligned(), p.cast::<[i8; 32]>().read_unaligned()),
                (p.add(160).cast::<f32>().read_unaligned(), p.add(32).cast::<[i8; 32]>().read_unaligned()),
            ]
        }
    }

    #[inline(always)]
    unsafe fn step(mut acc: Array, weight: Self::Weight, input: Self::Input) -> Array {
        for i in 0..2 {
            let ((ws, w), (xs, x)) = (weight[i], input[i]);
            let mut sum = 0i32;
            for k in 0..32 {
                sum += i32::from(w[k]) * i32::from(x[k]);
            }
            acc.0[i] += ws * xs * sum as f32;
        }
        acc
    }
}

#[inline(always)]
unsafe fn group(p: *const u8) -> (f32, [i8; 32]) {
    // SAFETY: the caller vouches for 34 bytes.
    unsafe { (crate::format::f16_to_f32(p.cast::<u16>().read_unaligned()), p.add(2).cast::<[i8; 32]>().read_unaligned()) }
}

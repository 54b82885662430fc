//! The number formats of factors in matrix products, which are also those of stored activations.
//!
//! The kernels read 32-bit *words*: one f32, or two bf16 that are adjacent in the summed index.

use std::fmt::Debug;

/// A number format of factors.
pub(crate) trait Element: Copy + Default + Debug + Send + Sync + 'static {
    /// Elements in a word.
    const PER_WORD: usize;
    /// The nearest number of the format, ties to even.
    fn round(x: f32) -> Self;
    /// The exact value.
    fn widen(self) -> f32;
    /// The word of two elements; `second` is ignored if a word has one.
    fn word(first: Self, second: Self) -> u32;
}

impl Element for f32 {
    const PER_WORD: usize = 1;

    #[inline(always)]
    fn round(x: f32) -> Self {
        x
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }

    #[inline(always)]
    fn word(first: Self, _: Self) -> u32 {
        first.to_bits()
    }
}

/// A bfloat16: the upper half of an f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Bf16(pub(crate) u16);

impl Element for Bf16 {
    const PER_WORD: usize = 2;

    /// The same bits as `vcvtneps2bf16` but for numbers below 2^-126, which the products read as
    /// zero. A NaN stays one if its upper half has the quiet bit, as arithmetic makes it.
    #[inline(always)]
    fn round(x: f32) -> Self {
        let bits = x.to_bits();
        Self((bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }

    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }

    #[inline(always)]
    fn word(first: Self, second: Self) -> u32 {
        u32::from(first.0) | u32::from(second.0) << 16
    }
}

/// Words that hold `k` elements of the summed index.
pub(crate) fn depth<E: Element>(k: usize) -> usize {
    k.div_ceil(E::PER_WORD)
}

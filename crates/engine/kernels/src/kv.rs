//! Blocks of the KV cache: number formats, layouts, and how a token's key and value are stored.

use std::fmt;
use std::str::FromStr;

use crate::format::{pair, round_bf16};

/// Tokens in a KV block.
pub const BLOCK: usize = 16;

/// The number format of keys and values, and with it the layout of a layer's part of a block: an
/// array of 32-bit words, first the keys, then the values.
///
/// Attention reads 16 tokens' keys, or one position's values, as vectors of words. So a word holds
/// what is multiplied one after the other: in 16 bits a pair, of neighbouring dimensions in keys
/// and of neighbouring positions in values. That is also how the right factor of a tile unit lies
/// in memory: 32 dimensions of a block's keys are one tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KvFormat {
    /// 32-bit floating point (IEEE 754): keys `[kv_heads][dim][BLOCK]`, values
    /// `[kv_heads][BLOCK][dim]`.
    F32,
    /// bfloat16, rounded to nearest, ties to even: keys `[kv_heads][dim / 2][BLOCK][2]`, values
    /// `[kv_heads][BLOCK / 2][dim][2]`. After an odd last dimension of a key there is a zero.
    Bf16,
}

impl KvFormat {
    const ALL: [Self; 2] = [Self::F32, Self::Bf16];

    /// The name that [`FromStr`] reads.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    /// Words of one layer's part of a block.
    pub fn block_len(self, kv_heads: usize, dim: usize) -> usize {
        self.keys_len(kv_heads, dim) + kv_heads * self.values_len(dim)
    }

    /// Numbers in a word.
    pub(crate) fn per_word(self) -> usize {
        match self {
            Self::F32 => 1,
            Self::Bf16 => 2,
        }
    }

    /// Words of the keys of all heads.
    pub(crate) fn keys_len(self, kv_heads: usize, dim: usize) -> usize {
        kv_heads * dim.div_ceil(self.per_word()) * BLOCK
    }

    /// Words of the values of one head.
    pub(crate) fn values_len(self, dim: usize) -> usize {
        BLOCK / self.per_word() * dim
    }
}

impl fmt::Display for KvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An unknown name of a [`KvFormat`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKvFormat(pub String);

impl fmt::Display for UnknownKvFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown number format of keys and values `{}`: use `f32` or `bf16`", self.0)
    }
}

impl std::error::Error for UnknownKvFormat {}

impl FromStr for KvFormat {
    type Err = UnknownKvFormat;

    fn from_str(s: &str) -> Result<Self, UnknownKvFormat> {
        Self::ALL.into_iter().find(|f| f.name() == s).ok_or_else(|| UnknownKvFormat(s.to_owned()))
    }
}

/// Writes the key and value of one token, `[kv_heads * dim]` each, to slot `slot` of this layer's
/// part of a block. Other slots keep theirs.
///
/// # Panics
/// If the lengths are inconsistent or `slot >= BLOCK`.
pub fn store_kv(format: KvFormat, layer: &mut [u32], slot: usize, kv_heads: usize, dim: usize, k: &[f32], v: &[f32]) {
    assert!(slot < BLOCK, "slot {slot} of a block of {BLOCK}");
    assert!(
        layer.len() == format.block_len(kv_heads, dim) && k.len() == kv_heads * dim && v.len() == k.len(),
        "a block, a key and a value of {kv_heads} heads of {dim}"
    );
    if dim == 0 {
        return;
    }
    let (keys, values) = layer.split_at_mut(format.keys_len(kv_heads, dim));
    let values = values.chunks_exact_mut(format.values_len(dim)).zip(v.chunks_exact(dim));
    match format {
        KvFormat::F32 => {
            for (row, k) in keys.chunks_exact_mut(BLOCK).zip(k) {
                row[slot] = k.to_bits();
            }
            for (head, v) in values {
                for (word, v) in head[slot * dim..][..dim].iter_mut().zip(v) {
                    *word = v.to_bits();
                }
            }
        }
        KvFormat::Bf16 => {
            let heads = keys.chunks_exact_mut(dim.div_ceil(2) * BLOCK).zip(k.chunks_exact(dim));
            for (head, k) in heads {
                for (row, k) in head.chunks_exact_mut(BLOCK).zip(k.chunks(2)) {
                    row[slot] = pair(k[0], k.get(1).copied().unwrap_or(0.0));
                }
            }
            let shift = 16 * (slot % 2);
            for (head, v) in values {
                for (word, v) in head[slot / 2 * dim..][..dim].iter_mut().zip(v) {
                    *word = *word & !(0xffff << shift) | u32::from(round_bf16(*v)) << shift;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Noise;

    /// Key and value of one token, read by the documented layout.
    fn read(format: KvFormat, layer: &[u32], slot: usize, kv_heads: usize, dim: usize) -> (Vec<f32>, Vec<f32>) {
        let (per, pairs) = (format.per_word(), dim.div_ceil(format.per_word()));
        let number = |word: u32, half: usize| match format {
            KvFormat::F32 => f32::from_bits(word),
            KvFormat::Bf16 => f32::from_bits(if half == 0 { word << 16 } else { word & 0xffff_0000 }),
        };
        let values = &layer[kv_heads * pairs * BLOCK..];
        let all = || (0..kv_heads).flat_map(|h| (0..dim).map(move |d| (h, d)));
        let k = all().map(|(h, d)| number(layer[(h * pairs + d / per) * BLOCK + slot], d % per));
        let v = all().map(|(h, d)| number(values[(h * BLOCK / per + slot / per) * dim + d], slot % per));
        (k.collect(), v.collect())
    }

    #[test]
    fn what_was_stored_comes_back_rounded_and_alone() {
        for (kv_heads, dim) in [(1, 1), (2, 3), (3, 64), (1, 80)] {
            for format in KvFormat::ALL {
                let round = |x: &[f32]| -> Vec<f32> {
                    let bf16 = |x: &f32| f32::from_bits(u32::from(round_bf16(*x)) << 16);
                    if format == KvFormat::F32 { x.to_vec() } else { x.iter().map(bf16).collect() }
                };
                let mut noise = Noise::new(5);
                let mut token = || (noise.vec(kv_heads * dim), noise.vec(kv_heads * dim));
                let mut layer = vec![0x7fc0_7fc0; format.block_len(kv_heads, dim)];
                let mut tokens: Vec<_> = (0..BLOCK).map(|_| token()).collect();
                // out of order, and one of them again, as after a draft that was wrong
                for slot in (0..BLOCK).rev().chain([6, 7]) {
                    tokens[slot] = token();
                    store_kv(format, &mut layer, slot, kv_heads, dim, &tokens[slot].0, &tokens[slot].1);
                }
                for (slot, (k, v)) in tokens.iter().enumerate() {
                    let found = read(format, &layer, slot, kv_heads, dim);
                    assert_eq!(found, (round(k), round(v)), "{format} {kv_heads} x {dim}, slot {slot}");
                }
                assert!(!layer.contains(&0x7fc0_7fc0), "every word is written");
            }
        }
    }

    #[test]
    fn sixteen_bits_take_half_the_memory() {
        assert_eq!(KvFormat::F32.block_len(3, 64), 2 * 3 * 64 * BLOCK);
        assert_eq!(KvFormat::Bf16.block_len(3, 64), 3 * 64 * BLOCK);
        assert_eq!(KvFormat::Bf16.block_len(2, 3), 2 * (2 * BLOCK + 3 * BLOCK / 2), "an odd head is padded in keys");
        for format in KvFormat::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("q8_0".parse::<KvFormat>().is_err());
    }
}

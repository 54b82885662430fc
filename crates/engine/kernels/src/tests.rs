//! Compares the kernels with scalar f64 arithmetic, on every instruction set of the machine.

mod attention;
mod elementwise;
mod gated;
mod linear;

use autoact_base::random::SplitMix64;

use crate::{Format, quantize_q8_0, to_bf16};

/// Pseudo-random numbers between -1 and 1.
pub(crate) struct Noise(SplitMix64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> f32 {
        // the highest 24 bits, which is the precision of an f32
        (self.0.next_u64() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    pub(crate) fn vec(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.next()).collect()
    }
}

pub(crate) fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

/// Rows of `cols` numbers in a format.
pub(crate) fn encode(format: Format, x: &[f32], cols: usize) -> Vec<u8> {
    let mut bytes = vec![];
    for row in x.chunks(cols) {
        match format {
            Format::F32 => bytes.extend(row.iter().flat_map(|x| x.to_le_bytes())),
            Format::Bf16 => to_bf16(row, &mut bytes),
            Format::Q8_0 => quantize_q8_0(row, &mut bytes),
        }
    }
    bytes
}

/// Asserts that all numbers agree within `tolerance`.
#[track_caller]
pub(crate) fn assert_close(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((f64::from(*found) - expected).abs() <= tolerance, "{what}: number {i} is {found}, not {expected}");
    }
}

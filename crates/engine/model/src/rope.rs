//! Rotary position embedding (<https://arxiv.org/abs/2104.09864>): frequencies and angles.

use autoact_checkpoint::{Llama3Scaling, ModelConfig, RopeScaling};

/// Inverse frequencies, one per pair of a head's dimensions, scaled as `config.json` says.
#[derive(Debug)]
pub(crate) struct Rope {
    inv_freq: Vec<f32>,
}

impl Rope {
    pub(crate) fn new(config: &ModelConfig) -> Self {
        let dim = config.head_dim;
        let inv_freq = (0..dim / 2).map(|i| {
            let freq = config.rope_theta.powf(-((2 * i) as f64) / dim as f64);
            match config.rope_scaling {
                RopeScaling::None => freq,
                RopeScaling::Linear(factor) => freq / factor,
                RopeScaling::Llama3(scaling) => llama3(freq, scaling),
            }
        });
        Self { inv_freq: inv_freq.map(|f| f as f32).collect() }
    }

    /// Appends cos and sin, `head_dim / 2` each, of `position`. They are computed in every step,
    /// because a table for a context of 131,072 would be large. In f32, as in transformers.
    pub(crate) fn angles(&self, position: usize, cos: &mut Vec<f32>, sin: &mut Vec<f32>) {
        for f in &self.inv_freq {
            let (s, c) = (position as f32 * f).sin_cos();
            cos.push(c);
            sin.push(s);
        }
    }
}

/// Llama 3's scaling: long wavelengths are multiplied by `factor`, short ones unchanged, and those
/// in between interpolated (`_compute_llama3_parameters` in transformers'
/// `modeling_rope_utils.py`).
fn llama3(freq: f64, s: Llama3Scaling) -> f64 {
    let wavelength = 2.0 * std::f64::consts::PI / freq;
    if wavelength < s.original_context / s.high_freq_factor {
        freq
    } else if wavelength > s.original_context / s.low_freq_factor {
        freq / s.factor
    } else {
        let smooth = (s.original_context / wavelength - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor);
        (1.0 - smooth) * freq / s.factor + smooth * freq
    }
}

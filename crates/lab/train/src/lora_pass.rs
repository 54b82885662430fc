//! The forward and backward pass of LoRA adapters.

use std::ops::Range;

use autoact_base::random::mix;

use crate::config::Precision;
use crate::lora::{Adapter, Linear, LoraConfig, LoraWeights};
use crate::model_config::ModelConfig;
use crate::simd::{self, Mat, gemm};

/// The adapters during one micro-batch.
#[derive(Clone, Copy)]
pub(crate) struct LoraPass<'a> {
    weights: &'a LoraWeights,
    /// Seed of this micro-batch's dropout masks; `None` for no dropout (evaluation).
    key: Option<u64>,
    precision: Precision,
}

/// Buffers of one worker for the adapters.
pub(crate) struct LoraScratch {
    /// `A dropout(x)` of every adapter, `[layer][linear][T, r]`.
    hidden: Vec<f32>,
    /// Gradient of the hidden values, `[T, r]`.
    dhidden: Vec<f32>,
    /// `dropout(x)` or the gradient of the input, `[T, widest input]`.
    input: Vec<f32>,
    stride: usize,
    /// Tokens of the micro-batch that adapters do not act on (activated LoRA).
    base_rows: Vec<Range<usize>>,
}

impl LoraScratch {
    pub(crate) fn new(model: &ModelConfig, lora: Option<&LoraConfig>, tokens: usize) -> Self {
        let Some(lora) = lora else {
            return Self { hidden: vec![], dhidden: vec![], input: vec![], stride: 0, base_rows: vec![] };
        };
        let stride = tokens * lora.r;
        let widest = Linear::ALL.map(|l| l.dims(model).0).into_iter().max().unwrap_or(0);
        Self {
            hidden: vec![0.0; stride * Linear::ALL.len() * model.num_hidden_layers],
            dhidden: vec![0.0; stride],
            input: if lora.dropout > 0.0 { vec![0.0; tokens * widest] } else { vec![] },
            stride,
            base_rows: vec![],
        }
    }

    /// Starts a micro-batch.
    pub(crate) fn begin(&mut self, base_rows: &[Range<usize>]) {
        self.base_rows.clear();
        self.base_rows.extend_from_slice(base_rows);
    }
}

/// Zeroes the rows of `hidden` `[T, r]` of tokens on which adapters do not act. These rows then
/// contribute neither to the output nor to the gradient.
fn silence(hidden: &mut [f32], r: usize, base_rows: &[Range<usize>]) {
    for rows in base_rows {
        hidden[rows.start * r..rows.end * r].fill(0.0);
    }
}

impl<'a> LoraPass<'a> {
    pub(crate) fn new(weights: &'a LoraWeights, key: Option<u64>, precision: Precision) -> Self {
        let key = key.filter(|_| weights.config.dropout > 0.0);
        Self { weights, key, precision }
    }

    fn adapter(&self, layer: usize, linear: Linear) -> Option<&'a Adapter> {
        self.weights.adapters[layer][linear as usize].as_ref()
    }

    fn scale(&self) -> f32 {
        (self.weights.config.alpha / self.weights.config.r as f64) as f32
    }

    /// Key, threshold and scale of an adapter's dropout mask; `None` for no dropout.
    fn mask(&self, ad: &Adapter) -> Option<(u32, u32, f32)> {
        let p = self.weights.config.dropout;
        let key = mix(self.key? ^ mix(ad.id + 1)) as u32;
        Some((key, (p * 4_294_967_296.0) as u32, (1.0 / (1.0 - p)) as f32))
    }

    /// Adds the adapter's output to `y` `[T, outputs]`, whose rows are `ld` elements apart. `x` is
    /// `[T, inputs]`.
    pub(crate) fn forward(&self, layer: usize, linear: Linear, x: &[f32], y: &mut [f32], ld: usize, w: &mut LoraScratch) {
        let Some(ad) = self.adapter(layer, linear) else { return };
        let r = self.weights.config.r;
        let tokens = x.len() / ad.inputs;
        let x = match self.mask(ad) {
            Some((key, threshold, scale)) => {
                let masked = &mut w.input[..x.len()];
                simd::dropout(x, masked, key, threshold, scale, false);
                &*masked
            }
            None => x,
        };
        let data = &self.weights.data;
        let (a, b) = (Mat::rows(&data[ad.a..], ad.inputs), Mat::rows(&data[ad.b..], r));
        let h = hidden(&mut w.hidden, w.stride, ad.id, tokens * r);
        gemm(self.precision, (tokens, r, ad.inputs), h, r, Mat::rows(x, ad.inputs), a.t(), 1.0, false);
        silence(h, r, &w.base_rows);
        gemm(self.precision, (tokens, ad.outputs, r), y, ld, Mat::rows(h, r), b.t(), self.scale(), true);
    }

    /// First half of the backward pass. From `dy` `[T, outputs]` (rows `ld` elements apart) it adds
    /// to the gradient of `B` in `grad` and to `dx` `[T, inputs]`. It keeps the gradient of the
    /// hidden values for [`LoraPass::backward_weight`], which must be the next call.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn backward_input(
        &self,
        layer: usize,
        linear: Linear,
        dy: &[f32],
        ld: usize,
        dx: &mut [f32],
        grad: &mut [f32],
        w: &mut LoraScratch,
    ) {
        let Some(ad) = self.adapter(layer, linear) else { return };
        let r = self.weights.config.r;
        let tokens = dx.len() / ad.inputs;
        let data = &self.weights.data;
        let (a, b) = (Mat::rows(&data[ad.a..], ad.inputs), Mat::rows(&data[ad.b..], r));
        let dy = Mat::rows(dy, ld);
        let h = hidden(&mut w.hidden, w.stride, ad.id, tokens * r);
        let db = &mut grad[ad.b..];
        gemm(self.precision, (ad.outputs, r, tokens), db, r, dy.t(), Mat::rows(h, r), self.scale(), true);
        let dh = &mut w.dhidden[..tokens * r];
        gemm(self.precision, (tokens, r, ad.outputs), dh, r, dy, b, self.scale(), false);
        silence(dh, r, &w.base_rows);
        let dh = Mat::rows(dh, r);
        match self.mask(ad) {
            Some((key, threshold, scale)) => {
                let masked = &mut w.input[..dx.len()];
                gemm(self.precision, (tokens, ad.inputs, r), masked, ad.inputs, dh, a, 1.0, false);
                simd::dropout(masked, dx, key, threshold, scale, true);
            }
            None => gemm(self.precision, (tokens, ad.inputs, r), dx, ad.inputs, dh, a, 1.0, true),
        }
    }

    /// Second half of the backward pass: adds to the gradient of `A`. `x` `[T, inputs]` is the
    /// input of the forward pass.
    pub(crate) fn backward_weight(&self, layer: usize, linear: Linear, x: &[f32], grad: &mut [f32], w: &mut LoraScratch) {
        let Some(ad) = self.adapter(layer, linear) else { return };
        let r = self.weights.config.r;
        let tokens = x.len() / ad.inputs;
        let x = match self.mask(ad) {
            Some((key, threshold, scale)) => {
                let masked = &mut w.input[..x.len()];
                simd::dropout(x, masked, key, threshold, scale, false);
                &*masked
            }
            None => x,
        };
        let dh = Mat::rows(&w.dhidden[..tokens * r], r);
        let da = &mut grad[ad.a..];
        gemm(self.precision, (r, ad.inputs, tokens), da, ad.inputs, dh.t(), Mat::rows(x, ad.inputs), 1.0, true);
    }
}

fn hidden(all: &mut [f32], stride: usize, id: u64, len: usize) -> &mut [f32] {
    let at = id as usize * stride;
    &mut all[at..at + len]
}

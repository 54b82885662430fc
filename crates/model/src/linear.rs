//! Linear layers, several of them fused into one product, and the adapters' updates beside them.

use autoact_lora::Adapter;
use candle_core::{DType, Device, Result, Tensor};

use crate::LoadError;
use crate::kernels::product;
use crate::weights::Weights;

/// One of the checkpoint's linear layers inside a fused one.
#[derive(Debug, Clone)]
pub(crate) struct Part {
    /// Module name, such as `model.layers.0.self_attn.q_proj`.
    pub(crate) name: String,
    /// Features out.
    pub(crate) out: usize,
}

/// `y = W x + b` for one or more layers that share their input, outputs side by side.
#[derive(Debug)]
pub(crate) struct Linear {
    /// [out, in], as in the checkpoint
    weight: Tensor,
    bias: Option<Tensor>,
    pub(crate) parts: Vec<Part>,
    pub(crate) features_in: usize,
}

impl Linear {
    /// Loads and joins the layers named in `parts`.
    pub(crate) fn load(weights: &Weights, features_in: usize, bias: bool, parts: Vec<Part>) -> std::result::Result<Self, LoadError> {
        let mut each = Vec::with_capacity(parts.len());
        let mut biases = Vec::new();
        for part in &parts {
            each.push(weights.get(&format!("{}.weight", part.name), &[part.out, features_in])?);
            if bias {
                biases.push(weights.get(&format!("{}.bias", part.name), &[part.out])?);
            }
        }
        let weight = Tensor::cat(&each, 0)?;
        let bias = if bias { Some(Tensor::cat(&biases, 0)?) } else { None };
        Ok(Self { weight, bias, parts, features_in })
    }

    /// A layer over a tensor that is already there: the tied output head.
    pub(crate) fn tied(weight: &Tensor, name: &str) -> Result<Self> {
        let (out, features_in) = weight.dims2()?;
        Ok(Self { weight: weight.clone(), bias: None, parts: vec![Part { name: name.to_owned(), out }], features_in })
    }

    /// [n, in] -> [n, out]
    pub(crate) fn forward(&self, x: &Tensor, update: Option<&Update>) -> Result<Tensor> {
        let mut y = product(x, &self.weight)?;
        if let Some(bias) = &self.bias {
            y = y.broadcast_add(bias)?;
        }
        match update {
            None => Ok(y),
            Some(update) => y + product(&product(x, &update.a)?, &update.b)?,
        }
    }

    fn features_out(&self) -> usize {
        self.parts.iter().map(|p| p.out).sum()
    }
}

/// An adapter's update of one fused layer: `y += (x A) B`, where A holds the adapted parts' A side by side and B
/// theirs along a diagonal, scale included. Two small products, whatever the number of parts.
#[derive(Debug)]
pub(crate) struct Update {
    /// [r, in]
    a: Tensor,
    /// [out, r]
    b: Tensor,
}

impl Update {
    /// `None` when the adapter touches no part of `linear`. Shapes were checked against the base before.
    pub(crate) fn new(linear: &Linear, adapter: &Adapter, dtype: DType, device: &Device) -> Result<Option<Self>> {
        let out = linear.features_out();
        let adapted = || linear.parts.iter().filter_map(|p| adapter.modules.get(&p.name));
        let rank: usize = adapted().map(|pair| pair.a.rows).sum();
        if rank == 0 {
            return Ok(None);
        }
        let a: Vec<f32> = adapted().flat_map(|pair| &pair.a.data).copied().collect();
        let mut b = vec![0f32; out * rank];
        let (mut row, mut column) = (0, 0);
        for part in &linear.parts {
            if let Some(pair) = adapter.modules.get(&part.name) {
                for (o, values) in pair.b.data.chunks_exact(pair.b.cols).enumerate() {
                    let start = (row + o) * rank + column;
                    for (to, from) in b[start..].iter_mut().zip(values) {
                        *to = pair.scale * from;
                    }
                }
                column += pair.a.rows;
            }
            row += part.out;
        }
        Ok(Some(Self {
            a: Tensor::from_vec(a, (rank, linear.features_in), device)?.to_dtype(dtype)?,
            b: Tensor::from_vec(b, (out, rank), device)?.to_dtype(dtype)?,
        }))
    }
}

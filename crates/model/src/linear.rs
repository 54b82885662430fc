//! Linear layers, several of them fused into one product, and the adapters' updates beside them.

use autoact_lora::Adapter;
use candle_core::{DType, Device, Result, Tensor};

use crate::LoadError;
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
    /// [in, out]: a transposed view of the checkpoint's [out, in].
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
        let weight = Tensor::cat(&each, 0)?.t()?;
        let bias = if bias { Some(Tensor::cat(&biases, 0)?) } else { None };
        Ok(Self { weight, bias, parts, features_in })
    }

    /// A layer over a tensor that is already there: the tied output head.
    pub(crate) fn tied(weight: &Tensor, name: &str) -> Result<Self> {
        let (out, features_in) = weight.dims2()?;
        Ok(Self { weight: weight.t()?, bias: None, parts: vec![Part { name: name.to_owned(), out }], features_in })
    }

    /// [n, in] -> [n, out]
    pub(crate) fn forward(&self, x: &Tensor, update: Option<&Update>) -> Result<Tensor> {
        let mut y = x.matmul(&self.weight)?;
        if let Some(bias) = &self.bias {
            y = y.broadcast_add(bias)?;
        }
        match update {
            None => Ok(y),
            Some(update) => y + x.matmul(&update.a)?.matmul(&update.b)?,
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
    /// [in, r]
    a: Tensor,
    /// [r, out]
    b: Tensor,
}

impl Update {
    /// `None` when the adapter touches no part of `linear`. Shapes were checked against the base before.
    pub(crate) fn new(linear: &Linear, adapter: &Adapter, dtype: DType, device: &Device) -> Result<Option<Self>> {
        let out = linear.features_out();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut offset = 0;
        for part in &linear.parts {
            if let Some(pair) = adapter.modules.get(&part.name) {
                a.extend_from_slice(&pair.a.data);
                for r in 0..pair.a.rows {
                    let mut row = vec![0f32; out];
                    for (o, value) in row[offset..offset + part.out].iter_mut().enumerate() {
                        *value = pair.scale * pair.b.data[o * pair.b.cols + r];
                    }
                    b.extend_from_slice(&row);
                }
            }
            offset += part.out;
        }
        let rank = b.len() / out;
        if rank == 0 {
            return Ok(None);
        }
        Ok(Some(Self {
            a: Tensor::from_vec(a, (rank, linear.features_in), device)?.to_dtype(dtype)?.t()?,
            b: Tensor::from_vec(b, (rank, out), device)?.to_dtype(dtype)?,
        }))
    }
}

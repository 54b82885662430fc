//! Keys and values of the tokens a sequence has been through.

use candle_core::{DType, Device, Result, Tensor};

use crate::ModelConfig;

/// The cache grows in steps of this many tokens, doubling: one sequence costs what it needs, rarely copied.
const STEP: usize = 256;

struct LayerCache {
    /// [kv_heads, capacity, head_dim]
    k: Tensor,
    /// [kv_heads, capacity, head_dim]
    v: Tensor,
}

/// Keys and values of one sequence under one adapter, written in place.
pub struct KvCache {
    layers: Vec<LayerCache>,
    len: usize,
    capacity: usize,
    kv_heads: usize,
    head_dim: usize,
    dtype: DType,
    device: Device,
}

impl std::fmt::Debug for KvCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KvCache({} of {} tokens)", self.len, self.capacity)
    }
}

impl KvCache {
    pub(crate) fn new(config: &ModelConfig, dtype: DType, device: &Device) -> Result<Self> {
        let mut cache = Self {
            layers: Vec::with_capacity(config.layers),
            len: 0,
            capacity: STEP,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
            dtype,
            device: device.clone(),
        };
        for _ in 0..config.layers {
            let (k, v) = (cache.zeros(STEP)?, cache.zeros(STEP)?);
            cache.layers.push(LayerCache { k, v });
        }
        Ok(cache)
    }

    /// Tokens held.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no token is held.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory held.
    pub fn bytes(&self) -> usize {
        self.layers.len() * 2 * self.kv_heads * self.capacity * self.head_dim * self.dtype.size_in_bytes()
    }

    /// Forgets every token after the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// A cache of its own with the first `len` tokens of this one.
    pub fn copy_prefix(&self, len: usize) -> Result<Self> {
        let len = len.min(self.len);
        let capacity = len.div_ceil(STEP).max(1) * STEP;
        let mut copy = Self { layers: Vec::with_capacity(self.layers.len()), len, capacity, device: self.device.clone(), ..*self };
        for layer in &self.layers {
            let (k, v) = (copy.zeros(capacity)?, copy.zeros(capacity)?);
            if len > 0 {
                k.slice_set(&layer.k.narrow(1, 0, len)?.contiguous()?, 1, 0)?;
                v.slice_set(&layer.v.narrow(1, 0, len)?.contiguous()?, 1, 0)?;
            }
            copy.layers.push(LayerCache { k, v });
        }
        Ok(copy)
    }

    /// Makes room for `n` more tokens.
    pub(crate) fn reserve(&mut self, n: usize) -> Result<()> {
        let needed = self.len + n;
        if needed > self.capacity {
            let target = needed.max(self.capacity * 2).div_ceil(STEP) * STEP;
            let mut grown = Vec::with_capacity(self.layers.len());
            for layer in &self.layers {
                let (k, v) = (self.zeros(target)?, self.zeros(target)?);
                k.slice_set(&layer.k, 1, 0)?;
                v.slice_set(&layer.v, 1, 0)?;
                grown.push(LayerCache { k, v });
            }
            (self.layers, self.capacity) = (grown, target);
        }
        Ok(())
    }

    /// Writes keys and values ([kv_heads, n, head_dim], contiguous) of the next tokens into `layer` and gives back
    /// those from position `first` on, the new ones included.
    pub(crate) fn append(&self, layer: usize, k: &Tensor, v: &Tensor, first: usize) -> Result<(Tensor, Tensor)> {
        let cache = &self.layers[layer];
        cache.k.slice_set(k, 1, self.len)?;
        cache.v.slice_set(v, 1, self.len)?;
        let keys = self.len + k.dim(1)? - first;
        Ok((cache.k.narrow(1, first, keys)?, cache.v.narrow(1, first, keys)?))
    }

    /// Counts `n` tokens as held: after every layer has appended them.
    pub(crate) fn advance(&mut self, n: usize) {
        self.len += n;
    }

    fn zeros(&self, capacity: usize) -> Result<Tensor> {
        Tensor::zeros((self.kv_heads, capacity, self.head_dim), self.dtype, &self.device)
    }
}

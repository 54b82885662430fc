//! The decoder: embedding, blocks, norm, head.

use std::collections::BTreeMap;

use autoact_lora::{Adapter, BaseLayout};
use candle_core::{DType, Device, Result, Tensor};
use candle_nn::ops::rms_norm;
use candle_nn::rotary_emb::rope;

use crate::kernels::{Causal, attend_few, causal_softmax, few, swiglu};
use crate::linear::{Linear, Part, Update};
use crate::rope::Rope;
use crate::weights::Weights;
use crate::{KvCache, LoadError, ModelConfig, ModelDir};

/// A decoder-only model of the Llama family, its weights in memory. Holds no state: see [`KvCache`].
#[derive(Debug)]
pub struct Transformer {
    config: ModelConfig,
    name: String,
    /// [vocab_size, hidden_size]
    embed: Tensor,
    blocks: Vec<Block>,
    norm: Tensor,
    head: Linear,
    rope: Rope,
    dtype: DType,
    device: Device,
}

#[derive(Debug)]
struct Block {
    attn_norm: Tensor,
    qkv: Linear,
    /// Norms over each head of q and of k (Qwen3).
    qk_norm: Option<(Tensor, Tensor)>,
    o: Linear,
    mlp_norm: Tensor,
    gate_up: Linear,
    down: Linear,
}

/// An adapter as the forward pass wants it: bound to one [`Transformer`], never merged into it.
#[derive(Debug)]
pub struct BoundAdapter {
    blocks: Vec<BlockUpdate>,
    head: Option<Update>,
}

#[derive(Debug)]
struct BlockUpdate {
    qkv: Option<Update>,
    o: Option<Update>,
    gate_up: Option<Update>,
    down: Option<Update>,
}

/// Which positions' logits [`Transformer::forward`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// The last token's: [1, vocab_size].
    Last,
    /// Every given token's: [n, vocab_size].
    All,
}

/// Positions shared by all layers of one forward pass.
struct Step {
    cos: Tensor,
    sin: Tensor,
    causal: Causal,
}

impl Transformer {
    /// Reads the weights of `dir` into `dtype` (f32 on a CPU, whose products know no bf16) on `device`.
    pub fn load(dir: &ModelDir, dtype: DType, device: &Device) -> std::result::Result<Self, LoadError> {
        let config = dir.config().clone();
        let weights = Weights::open(dir, dtype, device)?;
        let embed = weights.get("model.embed_tokens.weight", &[config.vocab_size, config.hidden_size])?;
        let blocks = (0..config.layers).map(|i| Block::load(&weights, &config, i)).collect::<std::result::Result<_, _>>()?;
        let norm = weights.get("model.norm.weight", &[config.hidden_size])?;
        let head = if config.tied {
            Linear::tied(&embed, "lm_head")?
        } else {
            Linear::load(&weights, config.hidden_size, false, vec![Part { name: "lm_head".to_owned(), out: config.vocab_size }])?
        };
        let rope = Rope::new(&config);
        Ok(Self { name: dir.name().to_owned(), config, embed, blocks, norm, head, rope, dtype, device: device.clone() })
    }

    /// The model's hyper-parameters.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// An empty cache for one sequence.
    pub fn new_cache(&self) -> Result<KvCache> {
        KvCache::new(&self.config, self.dtype, &self.device)
    }

    /// What adapters are checked against; `digest` is the sha256 of the weights.
    pub fn layout(&self, digest: Option<&str>) -> BaseLayout {
        let mut linears = BTreeMap::new();
        let all = self.blocks.iter().flat_map(|b| [&b.qkv, &b.o, &b.gate_up, &b.down]).chain([&self.head]);
        for linear in all {
            linears.extend(linear.parts.iter().map(|p| (p.name.clone(), (linear.features_in, p.out))));
        }
        BaseLayout { name: self.name.clone(), digest: digest.map(str::to_owned), linears }
    }

    /// Checks that `adapter` fits and puts its matrices beside the base's.
    pub fn bind(&self, adapter: &Adapter, digest: Option<&str>) -> std::result::Result<BoundAdapter, LoadError> {
        adapter.check_base(&self.layout(digest))?;
        let update = |linear| Update::new(linear, adapter, self.dtype, &self.device);
        let blocks = self
            .blocks
            .iter()
            .map(|b| Ok(BlockUpdate { qkv: update(&b.qkv)?, o: update(&b.o)?, gate_up: update(&b.gate_up)?, down: update(&b.down)? }));
        Ok(BoundAdapter { blocks: blocks.collect::<Result<_>>()?, head: update(&self.head)? })
    }

    /// Runs `tokens` (at least one) after what `cache` holds, adds them to it, and gives logits in f32.
    pub fn forward(&self, tokens: &[u32], cache: &mut KvCache, adapter: Option<&BoundAdapter>, logits: Logits) -> Result<Tensor> {
        let n = tokens.len();
        let past = cache.len();
        cache.reserve(n)?;
        let (cos, sin) = self.rope.angles(past, n, self.dtype, &self.device)?;
        let window = self.config.sliding_window.unwrap_or(usize::MAX);
        let first_key = (past + 1).saturating_sub(window);
        let step = Step { cos, sin, causal: Causal { queries: n, first_query: past, first_key, window } };
        let ids = Tensor::from_slice(tokens, n, &self.device)?;
        let mut x = self.embed.index_select(&ids, 0)?;
        for (i, block) in self.blocks.iter().enumerate() {
            x = block.forward(&self.config, x, &step, i, cache, adapter.map(|a| &a.blocks[i]))?;
        }
        cache.advance(n);
        if logits == Logits::Last && n > 1 {
            x = x.narrow(0, n - 1, 1)?.contiguous()?;
        }
        let x = rms_norm(&x, &self.norm, self.config.rms_norm_eps as f32)?;
        self.head.forward(&x, adapter.and_then(|a| a.head.as_ref()))?.to_dtype(DType::F32)
    }
}

impl Block {
    fn load(weights: &Weights, c: &ModelConfig, i: usize) -> std::result::Result<Self, LoadError> {
        let part = |name: &str, out| Part { name: format!("model.layers.{i}.{name}"), out };
        let norm = |name: &str, n: usize| weights.get(&format!("model.layers.{i}.{name}.weight"), &[n]);
        let (q, kv) = (c.q_width(), c.kv_width());
        let qkv = vec![part("self_attn.q_proj", q), part("self_attn.k_proj", kv), part("self_attn.v_proj", kv)];
        let gate_up = vec![part("mlp.gate_proj", c.intermediate_size), part("mlp.up_proj", c.intermediate_size)];
        let qk_norm = if c.qk_norm { Some((norm("self_attn.q_norm", c.head_dim)?, norm("self_attn.k_norm", c.head_dim)?)) } else { None };
        Ok(Self {
            attn_norm: norm("input_layernorm", c.hidden_size)?,
            qkv: Linear::load(weights, c.hidden_size, c.qkv_bias, qkv)?,
            qk_norm,
            o: Linear::load(weights, q, c.o_bias, vec![part("self_attn.o_proj", c.hidden_size)])?,
            mlp_norm: norm("post_attention_layernorm", c.hidden_size)?,
            gate_up: Linear::load(weights, c.hidden_size, c.mlp_bias, gate_up)?,
            down: Linear::load(weights, c.intermediate_size, c.mlp_bias, vec![part("mlp.down_proj", c.hidden_size)])?,
        })
    }

    /// [n, hidden_size] -> [n, hidden_size]
    fn forward(
        &self,
        c: &ModelConfig,
        x: Tensor,
        step: &Step,
        layer: usize,
        cache: &KvCache,
        update: Option<&BlockUpdate>,
    ) -> Result<Tensor> {
        let eps = c.rms_norm_eps as f32;
        let h = rms_norm(&x, &self.attn_norm, eps)?;
        let qkv = self.qkv.forward(&h, update.and_then(|u| u.qkv.as_ref()))?;
        let attended = self.attention(c, &qkv, step, layer, cache)?;
        let x = (x + self.o.forward(&attended, update.and_then(|u| u.o.as_ref()))?)?;
        let h = rms_norm(&x, &self.mlp_norm, eps)?;
        let h = swiglu(&self.gate_up.forward(&h, update.and_then(|u| u.gate_up.as_ref()))?)?;
        x + self.down.forward(&h, update.and_then(|u| u.down.as_ref()))?
    }

    /// [n, q + k + v] -> [n, q]. Heads that share a key head become rows of one product, so keys are never repeated.
    fn attention(&self, c: &ModelConfig, qkv: &Tensor, step: &Step, layer: usize, cache: &KvCache) -> Result<Tensor> {
        let n = qkv.dim(0)?;
        let (heads, kv_heads, dim) = (c.heads, c.kv_heads, c.head_dim);
        let eps = c.rms_norm_eps as f32;
        // q and k turn together: [heads + kv_heads, n, dim]
        let qk = qkv.narrow(1, 0, c.q_width() + c.kv_width())?.reshape((n, heads + kv_heads, dim))?;
        let qk = qk.transpose(0, 1)?.contiguous()?;
        let qk = match &self.qk_norm {
            None => qk,
            Some((q_norm, k_norm)) => {
                let q = rms_norm(&qk.narrow(0, 0, heads)?, q_norm, eps)?;
                let k = rms_norm(&qk.narrow(0, heads, kv_heads)?, k_norm, eps)?;
                Tensor::cat(&[q, k], 0)?
            }
        };
        let qk = rope(&qk.unsqueeze(0)?, &step.cos, &step.sin)?.squeeze(0)?;
        let v = qkv.narrow(1, c.q_width() + c.kv_width(), c.kv_width())?.reshape((n, kv_heads, dim))?;
        let v = v.transpose(0, 1)?.contiguous()?;
        let (k, v) = cache.append(layer, &qk.narrow(0, heads, kv_heads)?, &v, step.causal.first_key)?;
        let q = qk.narrow(0, 0, heads)?;
        if few(&q, n) {
            return attend_few(&q, &k, &v, step.causal);
        }
        let q = (q * (1.0 / (dim as f64).sqrt()))?.reshape((kv_heads, heads / kv_heads * n, dim))?;
        let scores = causal_softmax(q.matmul(&k.t()?)?, step.causal)?;
        // [kv_heads, group * n, dim] is [heads, n, dim] in memory.
        let out = scores.matmul(&v)?.reshape((heads, n, dim))?;
        out.transpose(0, 1)?.reshape((n, heads * dim))
    }
}

//! The decoder: token embedding, decoder layers, final norm and output head.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use autoact_kernels::{AttentionShape, Format, GatedBuffers, Inputs, KvFormat, Queries, Team, add, attend, rms_norm, rotate};
use autoact_lora::{Adapter, BaseLayout};

use crate::kv::BlockShape;
use crate::linear::{Linear, Update};
use crate::rope::Rope;
use crate::weights::{Stored, Weights};
use crate::{KvCache, LoadError, ModelConfig, ModelDir};

/// A decoder-only model of the Llama family with memory-mapped weights. The state of a sequence is
/// in its [`KvCache`].
#[derive(Debug)]
pub struct Transformer {
    config: ModelConfig,
    name: String,
    /// `[vocab_size, hidden_size]`
    embed: Stored,
    blocks: Vec<Block>,
    norm: Vec<f32>,
    head: Linear,
    rope: Rope,
    kv: Arc<BlockShape>,
}

#[derive(Debug)]
struct Block {
    attn_norm: Vec<f32>,
    qkv: Linear,
    /// Norms over each head of queries and keys (Qwen 3).
    qk_norm: Option<(Vec<f32>, Vec<f32>)>,
    o: Linear,
    mlp_norm: Vec<f32>,
    gate_up: Linear,
    down: Linear,
}

/// An adapter, checked for one [`Transformer`]. It is never merged into the weights.
#[derive(Debug)]
pub struct BoundAdapter {
    blocks: Vec<BlockUpdate>,
    head: Option<Update>,
    /// Activated LoRA: the adapter acts from the last occurrence of these tokens in the prompt on.
    invocation: Option<Vec<u32>>,
}

impl BoundAdapter {
    /// Index of the first token of `prompt` on which the adapter acts: 0, or for activated LoRA the
    /// beginning of the last occurrence of its invocation. `None` if the prompt does not contain
    /// it; then the base answers.
    pub fn acts_from(&self, prompt: &[u32]) -> Option<usize> {
        let Some(invocation) = &self.invocation else { return Some(0) };
        prompt.windows(invocation.len()).rposition(|window| window == invocation)
    }
}

#[derive(Debug)]
struct BlockUpdate {
    qkv: Option<Update>,
    o: Option<Update>,
    gate_up: Option<Update>,
    down: Option<Update>,
}

/// The tokens whose logits [`Transformer::forward`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logits {
    /// None, because more of the prompt follows.
    None,
    /// The last token.
    Last,
    /// The last tokens, this many, but at most those given.
    Tail(usize),
    /// All given tokens.
    All,
}

/// One sequence's part of a forward pass.
#[derive(Debug)]
pub struct Item<'a> {
    /// At least one token, which follow those in `cache`.
    pub tokens: &'a [u32],
    /// Keys and values of the earlier tokens. Those of `tokens` are added.
    pub cache: &'a mut KvCache,
    /// The adapter; `None`: the base.
    pub adapter: Option<&'a BoundAdapter>,
    /// Index in `tokens` of the first token on which the adapter acts; any beyond their end: none.
    pub adapter_from: usize,
    /// The tokens whose logits are needed.
    pub logits: Logits,
}

/// The numbers of the hidden states from which on the memory of all buffers is worth giving back.
const LARGE: usize = 1 << 16;

/// Buffers of a forward pass, which are reused.
#[derive(Debug, Default)]
pub struct Scratch {
    x: Vec<f32>,
    h: Vec<f32>,
    qkv: Vec<f32>,
    attended: Vec<f32>,
    gated: GatedBuffers,
    cos: Vec<f32>,
    sin: Vec<f32>,
    logits: Vec<f32>,
    inputs: Inputs,
    /// The inputs of the second half of the feed-forward network.
    inner: Inputs,
}

impl Scratch {
    /// Releases the memory of the buffers if they are large.
    pub(crate) fn give_back(&mut self) {
        if self.x.capacity() > LARGE {
            *self = Self::default();
        }
    }
}

/// Adapters by ranges of rows.
type Speakers<'a> = Vec<(Range<usize>, &'a BoundAdapter)>;

impl Transformer {
    /// Maps the weights of `dir`. Matrices are used in the files' format, or converted to `wanted`,
    /// which costs memory.
    pub fn load(dir: &ModelDir, wanted: Option<Format>) -> Result<Self, LoadError> {
        let config = dir.config().clone();
        let weights = Weights::open(dir, wanted)?;
        let embed = weights.matrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size)?;
        let blocks = (0..config.layers).map(|i| Block::load(&weights, &config, i)).collect::<Result<_, _>>()?;
        let norm = weights.vector("model.norm.weight", config.hidden_size)?;
        let head = if config.tied {
            Linear::tied(&embed, config.hidden_size, "lm_head")
        } else {
            Linear::load(&weights, config.hidden_size, false, &[("lm_head".to_owned(), config.vocab_size)])?
        };
        let (rope, kv) = (Rope::new(&config), BlockShape::new(&config, KvFormat::F32));
        let model = Self { name: dir.name().to_owned(), config, embed, blocks, norm, head, rope, kv };
        let kv = if model.format() == Format::F32 { KvFormat::F32 } else { KvFormat::Bf16 };
        Ok(model.with_kv(kv))
    }

    /// With keys and values in `format`. By default they are in bf16; in f32 if the weights are.
    pub fn with_kv(self, format: KvFormat) -> Self {
        Self { kv: BlockShape::new(&self.config, format), ..self }
    }

    /// The model's hyperparameters.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The number format of its matrix products.
    pub fn format(&self) -> Format {
        self.blocks.first().map_or(self.embed.format(), |b| b.qkv.stored().next().map_or(Format::F32, Stored::format))
    }

    /// The number format of keys and values.
    pub fn kv_format(&self) -> KvFormat {
        self.kv.format()
    }

    /// Whether every matrix is memory-mapped, so that processes share it.
    pub fn mapped(&self) -> bool {
        self.linears().flat_map(Linear::stored).chain([&self.embed]).all(Stored::mapped)
    }

    /// An empty cache for one sequence.
    pub fn new_cache(&self) -> KvCache {
        KvCache::new(&self.kv)
    }

    pub(crate) fn block_shape(&self) -> &Arc<BlockShape> {
        &self.kv
    }

    /// The shapes that adapters are checked against; `digest` is the SHA-256 digest of the weights.
    pub fn layout(&self, digest: Option<&str>) -> BaseLayout {
        let linears: BTreeMap<_, _> = self.linears().flat_map(Linear::layout).collect();
        BaseLayout { name: self.name.clone(), digest: digest.map(str::to_owned), linears }
    }

    fn linears(&self) -> impl Iterator<Item = &Linear> {
        self.blocks.iter().flat_map(|b| [&b.qkv, &b.o, &b.gate_up, &b.down]).chain([&self.head])
    }

    /// Checks that `adapter` fits and prepares its matrices.
    pub fn bind(&self, adapter: &Adapter, digest: Option<&str>) -> Result<BoundAdapter, LoadError> {
        adapter.check_base(&self.layout(digest))?;
        let update = |linear| Update::new(linear, adapter);
        let blocks = self.blocks.iter();
        let blocks =
            blocks.map(|b| BlockUpdate { qkv: update(&b.qkv), o: update(&b.o), gate_up: update(&b.gate_up), down: update(&b.down) });
        let invocation = adapter.config.alora_invocation_tokens.clone();
        Ok(BoundAdapter { blocks: blocks.collect(), head: update(&self.head), invocation })
    }

    /// Computes every item's tokens and adds their keys and values to its cache. Returns the
    /// requested logits, `[rows, vocab_size]`, in the order of the items.
    ///
    /// A token's logits have the same bits for every batch and every split of its prompt into
    /// passes, because the kernels compute each row separately, in a fixed order.
    ///
    /// # Panics
    /// If a token is not in the vocabulary.
    pub fn forward<'s>(&self, team: &Team, items: &mut [Item<'_>], scratch: &'s mut Scratch) -> &'s mut [f32] {
        let c = &self.config;
        let (hidden, eps) = (c.hidden_size, c.rms_norm_eps as f32);
        let rows: usize = items.iter().map(|item| item.tokens.len()).sum();
        let s = scratch;
        s.x.resize(rows * hidden, 0.0);
        s.h.resize(rows * hidden, 0.0);
        s.qkv.resize(rows * (c.q_width() + 2 * c.kv_width()), 0.0);
        s.attended.resize(rows * c.q_width(), 0.0);
        s.cos.clear();
        s.sin.clear();
        let embed = self.embed.matrix();
        let mut x = s.x.chunks_exact_mut(hidden);
        for item in items.iter_mut() {
            item.cache.reserve(item.tokens.len());
            for (i, (token, x)) in item.tokens.iter().zip(&mut x).enumerate() {
                embed.row_to_f32(*token as usize, x);
                self.rope.angles(item.cache.len() + i, &mut s.cos, &mut s.sin);
            }
        }
        let speakers = speakers(items);
        for (i, block) in self.blocks.iter().enumerate() {
            let update = |pick: fn(&BlockUpdate) -> &Option<Update>| -> Vec<(Range<usize>, &Update)> {
                let updates = speakers.iter().filter_map(|(rows, adapter)| Some((rows.clone(), pick(&adapter.blocks[i]).as_ref()?)));
                updates.collect()
            };
            norm(team, &s.x, &block.attn_norm, eps, &mut s.h);
            block.qkv.forward(team, &mut s.inputs, &s.h, &update(|u| &u.qkv), &mut s.qkv);
            self.attention(team, i, block, items, &mut s.qkv, &s.cos, &s.sin, &mut s.attended);
            block.o.forward(team, &mut s.inputs, &s.attended, &update(|u| &u.o), &mut s.h);
            sum(team, &mut s.x, &s.h, hidden);
            norm(team, &s.x, &block.mlp_norm, eps, &mut s.h);
            let (updates, then) = (update(|u| &u.gate_up), update(|u| &u.down));
            let to = (&mut s.inner, &block.down, !then.is_empty());
            block.gate_up.gated(team, &mut s.inputs, &s.h, &updates, &mut s.gated, to);
            block.down.product(team, &s.inner, &then, &mut s.h);
            sum(team, &mut s.x, &s.h, hidden);
        }
        for item in items.iter_mut() {
            item.cache.advance(item.tokens.len());
        }
        self.logits(team, items, s)
    }

    fn logits<'s>(&self, team: &Team, items: &[Item<'_>], s: &'s mut Scratch) -> &'s mut [f32] {
        let hidden = self.config.hidden_size;
        let mut updates = Vec::new();
        let (mut row, mut kept) = (0, 0);
        for item in items {
            let n = item.tokens.len();
            let wanted = match item.logits {
                Logits::None => 0,
                Logits::Last => 1,
                Logits::Tail(wanted) => wanted.min(n),
                Logits::All => n,
            };
            // Rows move only to the front, over rows that are not needed.
            s.x.copy_within((row + n - wanted) * hidden..(row + n) * hidden, kept * hidden);
            let silent = item.adapter_from.saturating_sub(n - wanted).min(wanted);
            if let Some(update) = item.adapter.and_then(|a| a.head.as_ref()).filter(|_| silent < wanted) {
                updates.push((kept + silent..kept + wanted, update));
            }
            row += n;
            kept += wanted;
        }
        s.logits.resize(kept * self.config.vocab_size, 0.0);
        if kept > 0 {
            let h = &mut s.h[..kept * hidden];
            rms_norm(&s.x[..kept * hidden], &self.norm, self.config.rms_norm_eps as f32, h);
            self.head.forward(team, &mut s.inputs, h, &updates, &mut s.logits);
        }
        &mut s.logits
    }

    /// Attention of one layer: `qkv` `[rows, q + k + v]` to `out` `[rows, q]`.
    #[allow(clippy::too_many_arguments)]
    fn attention(
        &self,
        team: &Team,
        layer: usize,
        block: &Block,
        items: &mut [Item<'_>],
        qkv: &mut [f32],
        cos: &[f32],
        sin: &[f32],
        out: &mut [f32],
    ) {
        let c = &self.config;
        let (q_width, kv_width, dim) = (c.q_width(), c.kv_width(), c.head_dim);
        let width = q_width + 2 * kv_width;
        if let Some((q_norm, k_norm)) = &block.qk_norm {
            let mut head = vec![0.0; dim];
            for row in qkv.chunks_exact_mut(width) {
                let (q, rest) = row.split_at_mut(q_width);
                let heads = q.chunks_exact_mut(dim).map(|h| (h, q_norm));
                for (values, norm) in heads.chain(rest[..kv_width].chunks_exact_mut(dim).map(|h| (h, k_norm))) {
                    rms_norm(values, norm, c.rms_norm_eps as f32, &mut head);
                    values.copy_from_slice(&head);
                }
            }
        }
        let half = dim / 2;
        team.rows(qkv, width, &|row, qkv| {
            let angles = row * half..(row + qkv.len() / width) * half;
            rotate(qkv, width, c.heads + c.kv_heads, dim, &cos[angles.clone()], &sin[angles]);
        });
        let mut rows = qkv.chunks_exact(width);
        for item in items.iter_mut() {
            for (position, row) in (item.cache.len()..).zip(rows.by_ref().take(item.tokens.len())) {
                let (k, v) = row[q_width..].split_at(kv_width);
                item.cache.store(layer, position, k, v);
            }
        }
        let blocks: Vec<Vec<&[u32]>> = items.iter().map(|item| item.cache.layer(layer).collect()).collect();
        let mut row = 0;
        let mut queries = Vec::with_capacity(items.len());
        for (item, blocks) in items.iter().zip(&blocks) {
            queries.push(Queries { row, rows: item.tokens.len(), first: item.cache.len(), blocks });
            row += item.tokens.len();
        }
        let (window, format) = (c.sliding_window.unwrap_or(usize::MAX), self.kv.format());
        let shape = AttentionShape { heads: c.heads, kv_heads: c.kv_heads, dim, window, format };
        attend(team, &shape, qkv, width, &queries, out);
    }
}

/// RMSNorm of rows, on all threads.
fn norm(team: &Team, x: &[f32], weight: &[f32], eps: f32, y: &mut [f32]) {
    let width = weight.len();
    team.rows(y, width, &|row, y| rms_norm(&x[row * width..][..y.len()], weight, eps, y));
}

/// `x += y` for rows of `width` numbers, on all threads.
fn sum(team: &Team, x: &mut [f32], y: &[f32], width: usize) {
    team.rows(x, width, &|row, x| add(x, &y[row * width..][..x.len()]));
}

/// The adapter of each row; adjacent rows with the same adapter form one range.
fn speakers<'a>(items: &[Item<'a>]) -> Speakers<'a> {
    let mut speakers: Speakers<'a> = Vec::new();
    let mut row = 0;
    for item in items {
        let end = row + item.tokens.len();
        // Saturating: an adapter that acts on none of a prompt begins at `usize::MAX`.
        let from = row.saturating_add(item.adapter_from);
        if let Some(adapter) = item.adapter.filter(|_| from < end) {
            match speakers.last_mut() {
                Some((rows, last)) if rows.end == from && std::ptr::eq(*last, adapter) => rows.end = end,
                _ => speakers.push((from..end, adapter)),
            }
        }
        row = end;
    }
    speakers
}

impl Block {
    fn load(weights: &Weights, c: &ModelConfig, i: usize) -> Result<Self, LoadError> {
        let part = |name: &str, out| (format!("model.layers.{i}.{name}"), out);
        let norm = |name: &str, n: usize| weights.vector(&format!("model.layers.{i}.{name}.weight"), n);
        let (q, kv) = (c.q_width(), c.kv_width());
        let qkv = [part("self_attn.q_proj", q), part("self_attn.k_proj", kv), part("self_attn.v_proj", kv)];
        let gate_up = [part("mlp.gate_proj", c.intermediate_size), part("mlp.up_proj", c.intermediate_size)];
        let qk_norm = if c.qk_norm { Some((norm("self_attn.q_norm", c.head_dim)?, norm("self_attn.k_norm", c.head_dim)?)) } else { None };
        Ok(Self {
            attn_norm: norm("input_layernorm", c.hidden_size)?,
            qkv: Linear::load(weights, c.hidden_size, c.qkv_bias, &qkv)?,
            qk_norm,
            o: Linear::load(weights, q, c.o_bias, &[part("self_attn.o_proj", c.hidden_size)])?,
            mlp_norm: norm("post_attention_layernorm", c.hidden_size)?,
            gate_up: Linear::load(weights, c.hidden_size, c.mlp_bias, &gate_up)?,
            down: Linear::load(weights, c.intermediate_size, c.mlp_bias, &[part("mlp.down_proj", c.hidden_size)])?,
        })
    }
}

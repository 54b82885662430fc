//! The buffers of one worker, allocated once.

use std::sync::Arc;

use crate::aligned::Aligned;
use crate::attention::Scratch;
use crate::config::TrainConfig;
use crate::element::{Element, depth};
use crate::histories::Histories;
use crate::lora_pass::LoraScratch;
use crate::model_config::ModelConfig;
use crate::simd;
use crate::timing::Stopwatch;

/// Number of logits computed at a time, so that they stay in the cache between the passes, and the
/// fewest rows of them, so that a large head is not read too often.
const LOGITS: usize = 256 * 1024;
const LOGIT_ROWS: usize = 96;

/// Tokens computed at a time between two attentions: their activations stay in the L2 cache. On
/// tiles a block is larger, because reading the weights once per block would take longer than the
/// products, and has whole tiles.
pub(crate) fn block<E: Element>() -> usize {
    if simd::has_tiles::<E>() { 256 } else { 120 }
}

/// Activations of one layer that the backward pass needs. `T` is the number of tokens, `C` the
/// hidden size, `I` the width of the SwiGLU layer. Factors of products are elements, the rest f32.
pub(crate) struct LayerActs<E> {
    /// Input of the layer `[T, C]`.
    pub(crate) x: Vec<f32>,
    /// Input after the first norm `[T, C]`.
    pub(crate) xn: Vec<E>,
    /// Reciprocal roots of the first norm `[T]`.
    pub(crate) rstd1: Vec<f32>,
    /// Queries and keys after the rotation, and values `[T, q + 2 kv]`.
    pub(crate) qkv: Vec<E>,
    /// Attention output `[T, q]`.
    pub(crate) att: Vec<E>,
    /// Log-sum-exp of attention rows, `[heads, L]` for each document.
    pub(crate) lse: Vec<f32>,
    /// Residual stream after attention `[T, C]`.
    pub(crate) x2: Vec<f32>,
    /// The same after the second norm `[T, C]`.
    pub(crate) hn: Vec<E>,
    /// Reciprocal roots of the second norm `[T]`.
    pub(crate) rstd2: Vec<f32>,
    /// Gate and up `[T, 2 I]`; the backward pass replaces them by their gradient.
    pub(crate) gate_up: Vec<E>,
}

/// Interleaved factors of the gradients of the model's own matrices.
pub(crate) struct WeightGradients {
    pub(crate) x: Aligned<u32>,
    pub(crate) dy: Aligned<u32>,
}

/// All buffers of one worker. Those of `B` rows belong to one block.
pub(crate) struct Workspace<E> {
    pub(crate) layers: Vec<LayerActs<E>>,
    /// What the last layer reads after its attention, gathered for the tokens with loss: its input
    /// `[T, C]` and its attention output `[T, q]`.
    pub(crate) loss_x: Vec<f32>,
    pub(crate) loss_att: Vec<E>,
    /// Output of the last layer `[T, C]` for the tokens with loss.
    pub(crate) last: Vec<f32>,
    /// Widest rows of f32: `qkv` before the rotation, or a gradient before the base's product
    /// `[B, max(q + 2 kv, I)]`.
    pub(crate) wide: Aligned<f32>,
    /// SwiGLU output `[B, I]`; in the backward pass its gradient, then the output again.
    pub(crate) act: Vec<E>,
    /// Gradient of the residual stream `[T, C]`, and its rounded block `[B, C]`.
    pub(crate) dx: Vec<f32>,
    pub(crate) dx_rounded: Vec<E>,
    /// Gradient of a norm's output `[B, C]`.
    pub(crate) dn: Aligned<f32>,
    /// Gradient of the attention output `[T, q]`.
    pub(crate) datt: Vec<E>,
    /// Gradient of `qkv` `[T, q + 2 kv]`.
    pub(crate) dqkv: Vec<E>,
    /// Normed values and gradients `[T, C]` of the tokens with loss.
    pub(crate) head_n: Vec<E>,
    pub(crate) head_d: Vec<f32>,
    pub(crate) head_rstd: Vec<f32>,
    /// Logits `[logit_rows, V]` and their gradient, whose rows are padded to whole words.
    pub(crate) logits: Aligned<f32>,
    pub(crate) dlogits: Vec<E>,
    pub(crate) logit_rows: usize,
    pub(crate) attention: Scratch<E>,
    pub(crate) lora: LoraScratch<E>,
    pub(crate) gradients: WeightGradients,
    /// The histories that the base has read already, shared with the other workers.
    pub(crate) histories: Arc<Histories<E>>,
    pub(crate) watch: Stopwatch,
}

impl<E: Element> Workspace<E> {
    pub(crate) fn new(m: &ModelConfig, t: &TrainConfig, histories: Arc<Histories<E>>) -> Self {
        let tokens = t.micro_capacity();
        let block = block::<E>().min(tokens);
        let floats = |width: usize| vec![0.0f32; tokens * width];
        let elements = |width: usize| vec![E::default(); tokens * width];
        let (c, inner) = (m.hidden_size, m.intermediate_size);
        let layers = (0..m.num_hidden_layers).map(|_| LayerActs {
            x: floats(c),
            xn: elements(c),
            rstd1: floats(1),
            qkv: elements(m.qkv_width()),
            att: elements(m.q_width()),
            lse: floats(m.num_attention_heads),
            x2: floats(c),
            hn: elements(c),
            rstd2: floats(1),
            gate_up: elements(2 * inner),
        });
        let logit_rows = (LOGITS / m.vocab_size).max(LOGIT_ROWS).min(tokens);
        let words = |rows: usize, width: usize| depth::<E>(rows) * width;
        let outputs = m.qkv_width().max(2 * inner).max(c);
        let gradients = match t.lora {
            Some(_) => WeightGradients { x: Aligned::new(0), dy: Aligned::new(0) },
            None => WeightGradients {
                x: Aligned::new(words(block, c.max(m.q_width()).max(inner)).max(words(logit_rows, c))),
                dy: Aligned::new(words(block, outputs).max(words(logit_rows, m.vocab_size))),
            },
        };
        Self {
            layers: layers.collect(),
            loss_x: floats(c),
            loss_att: elements(m.q_width()),
            last: floats(c),
            wide: Aligned::new(block * m.qkv_width().max(inner)),
            act: vec![E::default(); block * inner],
            dx: floats(c),
            dx_rounded: vec![E::default(); block * c],
            dn: Aligned::new(block * c),
            datt: elements(m.q_width()),
            dqkv: elements(m.qkv_width()),
            head_n: elements(c),
            head_d: floats(c),
            head_rstd: floats(1),
            logits: Aligned::new(logit_rows * m.vocab_size),
            dlogits: vec![E::default(); logit_rows * m.vocab_size.next_multiple_of(E::PER_WORD)],
            logit_rows,
            attention: Scratch::new(t.seq_len, m.head_dim),
            lora: LoraScratch::new(m, t.lora.as_ref(), tokens, block),
            gradients,
            histories,
            watch: Stopwatch::new(),
        }
    }
}

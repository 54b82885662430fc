//! The buffers of one worker, allocated once.

use crate::attention::Scratch;
use crate::config::TrainConfig;
use crate::lora_pass::LoraScratch;
use crate::model_config::ModelConfig;
use crate::timing::Stopwatch;

/// Number of logits computed at a time: 2 MiB, so that they stay in the cache between the passes.
const LOGITS: usize = 512 * 1024;

/// Activations of one layer that the backward pass needs. `T` is the number of tokens, `C` the
/// hidden size, `I` the width of the SwiGLU layer.
pub(crate) struct LayerActs {
    /// Input of the layer `[T, C]`.
    pub(crate) x: Vec<f32>,
    /// Input after the first norm `[T, C]`.
    pub(crate) xn: Vec<f32>,
    /// Reciprocal roots of the first norm `[T]`.
    pub(crate) rstd1: Vec<f32>,
    /// Queries and keys after the rotation, and values `[T, q + 2 kv]`.
    pub(crate) qkv: Vec<f32>,
    /// Attention output `[T, q]`.
    pub(crate) att: Vec<f32>,
    /// Log-sum-exp of attention rows, `[heads, L]` for each document.
    pub(crate) lse: Vec<f32>,
    /// Residual stream after attention `[T, C]`.
    pub(crate) x2: Vec<f32>,
    /// The same after the second norm `[T, C]`.
    pub(crate) hn: Vec<f32>,
    /// Reciprocal roots of the second norm `[T]`.
    pub(crate) rstd2: Vec<f32>,
    /// Gate and up `[T, 2 I]`; the backward pass replaces them by their gradient.
    pub(crate) gate_up: Vec<f32>,
}

/// All buffers of one worker.
pub(crate) struct Workspace {
    pub(crate) layers: Vec<LayerActs>,
    /// Output of the last layer `[T, C]`.
    pub(crate) last: Vec<f32>,
    /// SwiGLU output `[T, I]`; in the backward pass its gradient, then the output again.
    pub(crate) act: Vec<f32>,
    /// Gradient of the residual stream `[T, C]`.
    pub(crate) dx: Vec<f32>,
    /// Gradient of a norm's output `[T, C]`, or the rows of the head's norm.
    pub(crate) dn: Vec<f32>,
    /// Gradient of the attention output `[T, q]`.
    pub(crate) datt: Vec<f32>,
    /// Gradient of `qkv` `[T, q + 2 kv]`.
    pub(crate) dqkv: Vec<f32>,
    /// Hidden states, normed values and gradients `[T, C]` of the tokens with loss, gathered.
    pub(crate) head_x: Vec<f32>,
    pub(crate) head_n: Vec<f32>,
    pub(crate) head_d: Vec<f32>,
    pub(crate) head_rstd: Vec<f32>,
    /// Logits `[logit_rows, V]`.
    pub(crate) logits: Vec<f32>,
    pub(crate) logit_rows: usize,
    pub(crate) attention: Scratch,
    pub(crate) lora: LoraScratch,
    pub(crate) watch: Stopwatch,
}

impl Workspace {
    pub(crate) fn new(m: &ModelConfig, t: &TrainConfig) -> Self {
        let tokens = t.micro_capacity();
        let zeros = |width: usize| vec![0.0f32; tokens * width];
        let c = m.hidden_size;
        let layers = (0..m.num_hidden_layers).map(|_| LayerActs {
            x: zeros(c),
            xn: zeros(c),
            rstd1: zeros(1),
            qkv: zeros(m.qkv_width()),
            att: zeros(m.q_width()),
            lse: zeros(m.num_attention_heads),
            x2: zeros(c),
            hn: zeros(c),
            rstd2: zeros(1),
            gate_up: zeros(2 * m.intermediate_size),
        });
        let logit_rows = (LOGITS / m.vocab_size).clamp(16.min(tokens), tokens);
        Self {
            layers: layers.collect(),
            last: zeros(c),
            act: zeros(m.intermediate_size),
            dx: zeros(c),
            dn: zeros(c),
            datt: zeros(m.q_width()),
            dqkv: zeros(m.qkv_width()),
            head_x: zeros(c),
            head_n: zeros(c),
            head_d: zeros(c),
            head_rstd: zeros(1),
            logits: vec![0.0; logit_rows * m.vocab_size],
            logit_rows,
            attention: Scratch::new(t.seq_len),
            lora: LoraScratch::new(m, t.lora.as_ref(), tokens),
            watch: Stopwatch::new(),
        }
    }
}

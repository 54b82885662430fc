//! The position of each tensor in the flat parameter vector.
//!
//! The query, key and value matrices are adjacent, so that they also form one packed matrix
//! `[q + 2 kv, hidden]`; likewise gate and up. All matrices are row-major `[out, in]`.

use crate::model_config::ModelConfig;

/// The kind of a tensor, which determines its optimiser and its weight decay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TensorKind {
    /// Token embeddings, also the output head if it is tied.
    Embedding,
    /// The weight of an RMSNorm.
    Norm,
    /// A hidden matrix of a layer, or a LoRA factor.
    Matrix,
    /// An untied output head.
    Head,
}

/// One named tensor inside the flat vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorSpec {
    /// Its name in safetensors files.
    pub name: String,
    /// Index of its first element in the flat vector.
    pub offset: usize,
    /// Rows (outputs); 1 for a norm.
    pub rows: usize,
    /// Columns (inputs).
    pub cols: usize,
    /// Its kind.
    pub kind: TensorKind,
}

impl TensorSpec {
    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows * self.cols
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its shape in the file: `[cols]` for norms, `[rows, cols]` for all others.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        if self.kind == TensorKind::Norm { vec![self.cols] } else { vec![self.rows, self.cols] }
    }

    /// Its range of indices in the flat vector.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.len()
    }
}

/// Offsets of one decoder layer's tensors.
#[derive(Debug, Clone)]
pub(crate) struct LayerOffsets {
    pub(crate) norm1: usize,
    pub(crate) qkv: usize,
    pub(crate) o: usize,
    pub(crate) norm2: usize,
    pub(crate) gate_up: usize,
    pub(crate) down: usize,
}

/// The flat layout of a model.
#[derive(Debug, Clone)]
pub struct Layout {
    tensors: Vec<TensorSpec>,
    total: usize,
    pub(crate) embed: usize,
    pub(crate) layers: Vec<LayerOffsets>,
    pub(crate) norm: usize,
    pub(crate) head: usize,
}

impl Layout {
    /// The layout of a model with this shape.
    #[must_use]
    pub fn new(c: &ModelConfig) -> Self {
        let mut b = Builder::default();
        let h = c.hidden_size;
        let embed = b.add("model.embed_tokens.weight", c.vocab_size, h, TensorKind::Embedding);
        let layers = (0..c.num_hidden_layers)
            .map(|i| {
                let p = format!("model.layers.{i}");
                let matrix = TensorKind::Matrix;
                let norm1 = b.add(&format!("{p}.input_layernorm.weight"), 1, h, TensorKind::Norm);
                let qkv = b.add(&format!("{p}.self_attn.q_proj.weight"), c.q_width(), h, matrix);
                b.add(&format!("{p}.self_attn.k_proj.weight"), c.kv_width(), h, matrix);
                b.add(&format!("{p}.self_attn.v_proj.weight"), c.kv_width(), h, matrix);
                let o = b.add(&format!("{p}.self_attn.o_proj.weight"), h, c.q_width(), matrix);
                let name = format!("{p}.post_attention_layernorm.weight");
                let norm2 = b.add(&name, 1, h, TensorKind::Norm);
                let inner = c.intermediate_size;
                let gate_up = b.add(&format!("{p}.mlp.gate_proj.weight"), inner, h, matrix);
                b.add(&format!("{p}.mlp.up_proj.weight"), inner, h, matrix);
                let down = b.add(&format!("{p}.mlp.down_proj.weight"), h, inner, matrix);
                LayerOffsets { norm1, qkv, o, norm2, gate_up, down }
            })
            .collect();
        let norm = b.add("model.norm.weight", 1, h, TensorKind::Norm);
        let head = if c.tie_word_embeddings { embed } else { b.add("lm_head.weight", c.vocab_size, h, TensorKind::Head) };
        Self { tensors: b.tensors, total: b.total, embed, layers, norm, head }
    }

    /// All tensors in order. They cover the flat vector without gaps.
    #[must_use]
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// Number of parameters.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }
}

/// Places tensors one after the other.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) tensors: Vec<TensorSpec>,
    pub(crate) total: usize,
}

impl Builder {
    pub(crate) fn add(&mut self, name: &str, rows: usize, cols: usize, kind: TensorKind) -> usize {
        let offset = self.total;
        self.total += rows * cols;
        self.tensors.push(TensorSpec { name: name.to_owned(), offset, rows, cols, kind });
        offset
    }
}

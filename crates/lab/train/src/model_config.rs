//! The shape of a model, as Hugging Face's `config.json` describes it.

use std::path::Path;

use autoact_checkpoint::{CONFIG_FILE, Family, ModelConfig as CheckpointConfig, RopeScaling};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// The shape of a Llama model; field names are those of Hugging Face's `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the SwiGLU layer.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Number of query heads.
    pub num_attention_heads: usize,
    /// Number of key/value heads (grouped-query attention); divides `num_attention_heads`.
    pub num_key_value_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// Number of tokens in the vocabulary.
    pub vocab_size: usize,
    /// Epsilon of RMSNorm, added to the mean square.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Maximum context length in tokens; written to `config.json`, not checked here.
    pub max_position_embeddings: usize,
    /// Whether the output head shares the embedding matrix.
    pub tie_word_embeddings: bool,
    /// Token that begins a sequence.
    pub bos_token_id: Option<u32>,
    /// Token that ends a sequence.
    pub eos_token_id: Option<u32>,
}

impl ModelConfig {
    /// Reads `config.json` from the Hugging Face directory `dir`.
    ///
    /// # Errors
    /// If the file is unreadable or malformed, or describes another architecture than Llama.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join(CONFIG_FILE);
        let file = CheckpointConfig::load(dir)?;
        if file.family != Family::Llama {
            return Err(TrainError::format(&path, format!("`model_type` is {:?}, expected `llama`", file.family)));
        }
        if file.qkv_bias || file.o_bias || file.mlp_bias {
            return Err(TrainError::format(&path, "models with biases are not supported"));
        }
        if file.rope_scaling != RopeScaling::None {
            return Err(TrainError::format(&path, "`rope_scaling` is not supported"));
        }
        let config = Self {
            hidden_size: file.hidden_size,
            intermediate_size: file.intermediate_size,
            num_hidden_layers: file.layers,
            num_attention_heads: file.heads,
            num_key_value_heads: file.kv_heads,
            head_dim: file.head_dim,
            vocab_size: file.vocab_size,
            rms_norm_eps: file.rms_norm_eps,
            rope_theta: file.rope_theta,
            max_position_embeddings: file.context_length,
            tie_word_embeddings: file.tied,
            bos_token_id: file.bos,
            eos_token_id: file.eos.first().copied(),
        };
        config.validate().map_err(|e| TrainError::format(&path, e))?;
        Ok(config)
    }

    /// Checks that this crate can train the shape.
    ///
    /// # Errors
    /// The first rule that the shape violates.
    pub fn validate(&self) -> Result<()> {
        let positive = [
            ("hidden_size", self.hidden_size),
            ("intermediate_size", self.intermediate_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("num_key_value_heads", self.num_key_value_heads),
            ("head_dim", self.head_dim),
            ("vocab_size", self.vocab_size),
        ];
        for (name, value) in positive {
            if value == 0 {
                return Err(TrainError::Config(format!("`{name}` must not be 0")));
            }
        }
        if !self.num_attention_heads.is_multiple_of(self.num_key_value_heads) {
            return Err(TrainError::Config(format!(
                "`num_attention_heads` ({}) must be a multiple of `num_key_value_heads` ({})",
                self.num_attention_heads, self.num_key_value_heads
            )));
        }
        if !self.head_dim.is_multiple_of(2) {
            let m = format!("`head_dim` must be even, found {}", self.head_dim);
            return Err(TrainError::Config(m));
        }
        if !(self.rms_norm_eps.is_finite() && self.rms_norm_eps > 0.0) {
            let m = format!("`rms_norm_eps` must be above 0, found {}", self.rms_norm_eps);
            return Err(TrainError::Config(m));
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 1.0) {
            let m = format!("`rope_theta` must be above 1, found {}", self.rope_theta);
            return Err(TrainError::Config(m));
        }
        Ok(())
    }

    /// The content of `config.json` for this model, with weights saved as `torch_dtype`.
    #[must_use]
    pub fn to_hf_json(&self, torch_dtype: &str) -> serde_json::Value {
        serde_json::json!({
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_act": "silu",
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_hidden_layers": self.num_hidden_layers,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "head_dim": self.head_dim,
            "vocab_size": self.vocab_size,
            "rms_norm_eps": self.rms_norm_eps,
            "rope_theta": self.rope_theta,
            "rope_scaling": null,
            "max_position_embeddings": self.max_position_embeddings,
            "tie_word_embeddings": self.tie_word_embeddings,
            "attention_bias": false,
            "mlp_bias": false,
            "attention_dropout": 0.0,
            "bos_token_id": self.bos_token_id,
            "eos_token_id": self.eos_token_id,
            "initializer_range": 0.02,
            "torch_dtype": torch_dtype,
            "use_cache": true,
        })
    }

    /// Width of the packed query/key/value projection.
    pub(crate) fn qkv_width(&self) -> usize {
        (self.num_attention_heads + 2 * self.num_key_value_heads) * self.head_dim
    }

    /// Width of all query heads together.
    pub(crate) fn q_width(&self) -> usize {
        self.num_attention_heads * self.head_dim
    }

    /// Width of all key (or value) heads together.
    pub(crate) fn kv_width(&self) -> usize {
        self.num_key_value_heads * self.head_dim
    }
}

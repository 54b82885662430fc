//! The shape of a model, as Hugging Face's `config.json` describes it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};

/// The shape of a Llama model; field names are those of Hugging Face's `config.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelConfig {
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width of the SwiGLU inner layer.
    pub intermediate_size: usize,
    /// Number of decoder layers.
    pub num_hidden_layers: usize,
    /// Query heads.
    pub num_attention_heads: usize,
    /// Key/value heads; divides `num_attention_heads`.
    pub num_key_value_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// Number of tokens.
    pub vocab_size: usize,
    /// Added to the mean square inside RMSNorm.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Longest context that the model claims; written to `config.json`, not enforced here.
    pub max_position_embeddings: usize,
    /// Whether the output head shares the embedding matrix.
    pub tie_word_embeddings: bool,
    /// Token that begins a sequence.
    pub bos_token_id: Option<u32>,
    /// Token that ends a sequence.
    pub eos_token_id: Option<u32>,
}

/// `config.json` as found on disk: optional fields get Hugging Face's defaults.
#[derive(Deserialize)]
struct HfConfig {
    model_type: Option<String>,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    #[serde(default = "default_eps")]
    rms_norm_eps: f64,
    rope_theta: Option<f64>,
    rope_parameters: Option<serde_json::Value>,
    rope_scaling: Option<serde_json::Value>,
    #[serde(default = "default_positions")]
    max_position_embeddings: usize,
    #[serde(default)]
    tie_word_embeddings: bool,
    #[serde(default)]
    bos_token_id: Option<serde_json::Value>,
    #[serde(default)]
    eos_token_id: Option<serde_json::Value>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
}

fn default_eps() -> f64 {
    1e-6
}
fn default_positions() -> usize {
    2048
}

impl ModelConfig {
    /// Reads `config.json` from the Hugging Face directory `dir`.
    ///
    /// # Errors
    /// If the file is unreadable, malformed, or describes something other than a plain Llama.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join("config.json");
        let text = std::fs::read_to_string(&path).map_err(TrainError::io("read", &path))?;
        let hf: HfConfig = serde_json::from_str(&text).map_err(|e| TrainError::format(&path, e))?;
        if let Some(kind) = &hf.model_type
            && kind != "llama"
        {
            let m = format!("`model_type` is `{kind}`, expected `llama`");
            return Err(TrainError::format(&path, m));
        }
        if hf.attention_bias || hf.mlp_bias {
            return Err(TrainError::format(&path, "models with biases are not supported"));
        }
        if hf.rope_scaling.as_ref().is_some_and(|v| !v.is_null()) {
            return Err(TrainError::format(&path, "`rope_scaling` is not supported"));
        }
        if hf.num_attention_heads == 0 {
            return Err(TrainError::format(&path, "`num_attention_heads` is 0"));
        }
        let nested = hf.rope_parameters.as_ref();
        if let Some(kind) = nested.and_then(|v| v.get("rope_type")).and_then(|v| v.as_str())
            && kind != "default"
        {
            let m = format!("`rope_type` is `{kind}`, expected `default`");
            return Err(TrainError::format(&path, m));
        }
        let theta = hf.rope_theta.or_else(|| nested.and_then(|v| v.get("rope_theta")).and_then(|v| v.as_f64()));
        let config = Self {
            hidden_size: hf.hidden_size,
            intermediate_size: hf.intermediate_size,
            num_hidden_layers: hf.num_hidden_layers,
            num_attention_heads: hf.num_attention_heads,
            num_key_value_heads: hf.num_key_value_heads.unwrap_or(hf.num_attention_heads),
            head_dim: hf.head_dim.unwrap_or(hf.hidden_size / hf.num_attention_heads),
            vocab_size: hf.vocab_size,
            rms_norm_eps: hf.rms_norm_eps,
            rope_theta: theta.unwrap_or(10_000.0),
            max_position_embeddings: hf.max_position_embeddings,
            tie_word_embeddings: hf.tie_word_embeddings,
            bos_token_id: first_id(hf.bos_token_id.as_ref()),
            eos_token_id: first_id(hf.eos_token_id.as_ref()),
        };
        config.validate().map_err(|e| TrainError::format(&path, e))?;
        Ok(config)
    }

    /// Checks that the shape is one that this crate can train.
    ///
    /// # Errors
    /// With the first rule that is broken.
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

/// The first id of a field that is a number or a list of numbers.
fn first_id(value: Option<&serde_json::Value>) -> Option<u32> {
    let value = value?;
    let value = value.as_array().and_then(|a| a.first()).unwrap_or(value);
    value.as_u64().and_then(|v| u32::try_from(v).ok())
}

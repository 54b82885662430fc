//! `config.json`: hyper-parameters of the Llama family, from any of the four dialects.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::error::ConfigError;

/// File name of the configuration inside a checkpoint's directory.
pub const CONFIG_FILE: &str = "config.json";

/// The architectures that the engine computes. They share one implementation and differ in a few
/// switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Llama 2 and 3.
    Llama,
    /// Mistral: Llama with an optional sliding window.
    Mistral,
    /// Qwen2 and Qwen2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: RMS norms on q and k, and its own head size.
    Qwen3,
}

/// Llama 3's stretching of the rotary frequencies beyond the context it was trained on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Llama3Scaling {
    /// How far low frequencies are stretched.
    pub factor: f64,
    /// Wavelengths above `original_context / low_freq_factor` tokens are stretched fully.
    pub low_freq_factor: f64,
    /// Wavelengths below `original_context / high_freq_factor` tokens are left alone.
    pub high_freq_factor: f64,
    /// Tokens of context before stretching.
    pub original_context: f64,
}

/// How rotary frequencies are scaled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// All divided by a factor.
    Linear(f64),
    /// By wavelength (Llama 3.1 and later).
    Llama3(Llama3Scaling),
}

/// The hyper-parameters of a model, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// Which dialect it came from.
    pub family: Family,
    /// Rows of the embedding table, columns of the logits.
    pub vocab_size: usize,
    /// Width of the residual stream.
    pub hidden_size: usize,
    /// Width inside the feed-forward block.
    pub intermediate_size: usize,
    /// Number of blocks.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// ε of the RMS norms.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Scaling of the rotary frequencies.
    pub rope_scaling: RopeScaling,
    /// Most tokens in one sequence, prompt and completion together.
    pub context_length: usize,
    /// A token sees this many tokens, itself included; `None` = all before it.
    pub sliding_window: Option<usize>,
    /// Whether the output head is the embedding table.
    pub tied: bool,
    /// Biases on q, k, v.
    pub qkv_bias: bool,
    /// Bias on the attention's output.
    pub o_bias: bool,
    /// Biases in the feed-forward block.
    pub mlp_bias: bool,
    /// RMS norm over each head of q and k.
    pub qk_norm: bool,
    /// End-of-sequence tokens named here (`generation_config.json` may name more).
    pub eos: Vec<u32>,
    /// Begin-of-sequence token, when named here.
    pub bos: Option<u32>,
}

#[derive(Deserialize)]
struct Raw {
    vocab_size: usize,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    #[serde(default = "default_eps")]
    rms_norm_eps: f64,
    rope_theta: Option<f64>,
    rope_scaling: Option<RawRope>,
    /// Transformers 5 moved theta and scaling here.
    rope_parameters: Option<RawRope>,
    max_position_embeddings: Option<usize>,
    sliding_window: Option<usize>,
    #[serde(default)]
    use_sliding_window: bool,
    #[serde(default)]
    layer_types: Vec<String>,
    tie_word_embeddings: Option<bool>,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    hidden_act: Option<String>,
    eos_token_id: Option<TokenIds>,
    bos_token_id: Option<TokenIds>,
}

#[derive(Deserialize)]
struct RawRope {
    #[serde(alias = "type")]
    rope_type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

/// One token id or several: Hugging Face writes either.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum TokenIds {
    /// One.
    One(u32),
    /// Several.
    Many(Vec<u32>),
}

impl TokenIds {
    /// All of them.
    pub fn into_vec(self) -> Vec<u32> {
        match self {
            Self::One(id) => vec![id],
            Self::Many(ids) => ids,
        }
    }
}

/// What the libraries assume when `config.json` is silent (Llama 2's value).
const DEFAULT_ROPE_THETA: f64 = 10_000.0;

/// The four families' default in transformers.
fn default_eps() -> f64 {
    1e-6
}

impl Family {
    /// transformers' default for `max_position_embeddings`.
    fn default_context(self) -> usize {
        match self {
            Family::Llama => 2_048,
            Family::Mistral => 131_072,
            Family::Qwen2 | Family::Qwen3 => 32_768,
        }
    }
}

impl ModelConfig {
    /// Reads and checks `config.json` in the directory `dir`.
    ///
    /// # Errors
    /// The file cannot be read, is malformed, or describes another kind of model.
    pub fn load(dir: &Path) -> Result<Self, ConfigError> {
        let path = dir.join(CONFIG_FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| ConfigError::Read { path: path.clone(), source })?;
        Self::parse(&text, &path)
    }

    /// Parses and checks the text of `config.json`; `path` is for messages only.
    ///
    /// # Errors
    /// The text is malformed or describes another kind of model.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let json = |source| ConfigError::Json { path: path.to_owned(), source };
        let value: Value = serde_json::from_str(text).map_err(json)?;
        let unsupported = |key, found: String, expected: &str| ConfigError::Unsupported {
            path: path.to_owned(),
            key,
            found,
            expected: expected.to_owned(),
        };
        let family = match value.get("model_type").and_then(Value::as_str) {
            Some("llama") => Family::Llama,
            Some("mistral") => Family::Mistral,
            Some("qwen2") => Family::Qwen2,
            Some("qwen3") => Family::Qwen3,
            other => {
                let found = other.unwrap_or("nothing").to_owned();
                return Err(unsupported("model_type", found, "`llama`, `mistral`, `qwen2` or `qwen3`"));
            }
        };
        let raw: Raw = serde_json::from_value(value).map_err(json)?;
        if let Some(act) = raw.hidden_act.as_deref().filter(|a| *a != "silu") {
            return Err(unsupported("hidden_act", act.to_owned(), "`silu`"));
        }
        let (heads, kv_heads) = (raw.num_attention_heads, raw.num_key_value_heads.unwrap_or(raw.num_attention_heads));
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(unsupported("num_key_value_heads", kv_heads.to_string(), &format!("a divisor of `{heads}`, the number of heads")));
        }
        let head_dim = raw.head_dim.unwrap_or(raw.hidden_size / heads);
        if head_dim == 0 || !head_dim.is_multiple_of(2) {
            return Err(unsupported("head_dim", head_dim.to_string(), "an even number"));
        }
        let context_length = raw.max_position_embeddings.unwrap_or_else(|| family.default_context());
        for (key, n) in [
            ("vocab_size", raw.vocab_size),
            ("hidden_size", raw.hidden_size),
            ("num_hidden_layers", raw.num_hidden_layers),
            ("max_position_embeddings", context_length),
        ] {
            if n == 0 {
                return Err(unsupported(key, "0".to_owned(), "at least 1"));
            }
        }
        let sliding_window = match family {
            Family::Mistral => raw.sliding_window,
            // Qwen names a window and leaves it off; per-layer mixes are not computed here.
            Family::Qwen2 | Family::Qwen3 if raw.use_sliding_window => {
                if raw.layer_types.iter().any(|t| t != "sliding_attention") || raw.layer_types.is_empty() {
                    return Err(unsupported("use_sliding_window", "true".to_owned(), "`false`, or a window on every layer"));
                }
                raw.sliding_window
            }
            _ => None,
        };
        let rope = raw.rope_parameters.as_ref().or(raw.rope_scaling.as_ref());
        let rope_scaling = match rope {
            None => RopeScaling::None,
            Some(rope) => {
                scaling(rope).map_err(|found| unsupported("rope_scaling", found, "`default`, `linear` or a complete `llama3`"))?
            }
        };
        Ok(Self {
            family,
            vocab_size: raw.vocab_size,
            hidden_size: raw.hidden_size,
            intermediate_size: raw.intermediate_size,
            layers: raw.num_hidden_layers,
            heads,
            kv_heads,
            head_dim,
            rms_norm_eps: raw.rms_norm_eps,
            rope_theta: raw.rope_theta.or_else(|| rope.and_then(|r| r.rope_theta)).unwrap_or(DEFAULT_ROPE_THETA),
            rope_scaling,
            context_length,
            sliding_window: sliding_window.filter(|w| *w > 0),
            tied: raw.tie_word_embeddings.unwrap_or(false),
            qkv_bias: family == Family::Qwen2 || raw.attention_bias,
            o_bias: family != Family::Qwen2 && raw.attention_bias,
            mlp_bias: raw.mlp_bias,
            qk_norm: family == Family::Qwen3,
            eos: raw.eos_token_id.map(TokenIds::into_vec).unwrap_or_default(),
            bos: raw.bos_token_id.and_then(|ids| ids.into_vec().first().copied()),
        })
    }

    /// Width of all query heads together.
    pub fn q_width(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all key (or value) heads together.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}

fn scaling(raw: &RawRope) -> Result<RopeScaling, String> {
    match raw.rope_type.as_deref() {
        None | Some("default") => Ok(RopeScaling::None),
        Some("linear") => raw.factor.map(RopeScaling::Linear).ok_or_else(|| "linear without a factor".to_owned()),
        Some("llama3") => {
            let fields = (raw.factor, raw.low_freq_factor, raw.high_freq_factor, raw.original_max_position_embeddings);
            let (Some(factor), Some(low_freq_factor), Some(high_freq_factor), Some(original_context)) = fields else {
                return Err("llama3 with a field missing".to_owned());
            };
            Ok(RopeScaling::Llama3(Llama3Scaling { factor, low_freq_factor, high_freq_factor, original_context }))
        }
        Some(other) => Err(other.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(change: impl Fn(&mut Value)) -> Result<ModelConfig, ConfigError> {
        let mut value = serde_json::json!({
            "model_type": "llama", "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "rms_norm_eps": 1e-5, "max_position_embeddings": 128, "eos_token_id": 2,
        });
        change(&mut value);
        ModelConfig::parse(&value.to_string(), Path::new("config.json"))
    }

    #[test]
    fn silence_means_the_defaults_of_the_reference() {
        let config = parse(|_| {}).unwrap();
        assert_eq!((config.kv_heads, config.head_dim, config.rope_theta), (4, 8, 10_000.0));
        assert!(!config.tied && !config.qkv_bias);
        let config = parse(|v| {
            for key in ["rms_norm_eps", "max_position_embeddings"] {
                v.as_object_mut().unwrap().remove(key);
            }
        });
        assert_eq!(config.map(|c| (c.rms_norm_eps, c.context_length)).unwrap(), (1e-6, 2_048));
    }

    #[test]
    fn the_newer_place_for_rope_is_read() {
        let config = parse(|v| v["rope_parameters"] = serde_json::json!({"rope_type": "default", "rope_theta": 5e5})).unwrap();
        assert_eq!(config.rope_theta, 5e5);
    }

    #[test]
    fn a_window_counts_only_where_it_is_on() {
        let window = |model: &str| {
            parse(|v| {
                v["model_type"] = model.into();
                v["sliding_window"] = 16.into();
            })
            .unwrap()
            .sliding_window
        };
        assert_eq!(window("mistral"), Some(16));
        assert_eq!(window("qwen2"), None);
    }

    #[test]
    fn what_we_cannot_compute_is_refused_by_name() {
        let key = |change: &dyn Fn(&mut Value)| match parse(change) {
            Err(ConfigError::Unsupported { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(key(&|v| v["model_type"] = "gpt2".into()), "model_type");
        assert_eq!(key(&|v| v["hidden_act"] = "gelu".into()), "hidden_act");
        assert_eq!(key(&|v| v["num_key_value_heads"] = 3.into()), "num_key_value_heads");
        assert_eq!(key(&|v| v["rope_scaling"] = serde_json::json!({"rope_type": "yarn"})), "rope_scaling");
    }
}

//! `adapter_config.json`, as PEFT writes it.

use std::collections::BTreeMap;
use std::path::Path;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::AdapterError;

/// The part of PEFT's `LoraConfig` that determines the adapter's result.
///
/// [`AdapterConfig::parse`] rejects keys that would change the result and are not implemented
/// (`use_dora`, `modules_to_save`, …). Keys that matter only in training are ignored.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct AdapterConfig {
    /// Always `LORA`.
    pub peft_type: String,
    /// Rank: the number of rows of A and columns of B.
    pub r: usize,
    /// α: the update is scaled by α/r, or α/√r with [`use_rslora`](Self::use_rslora).
    pub lora_alpha: f64,
    /// Dropout probability in training; ignored here.
    #[serde(default)]
    pub lora_dropout: f64,
    /// The linear layers with an update.
    pub target_modules: TargetModules,
    /// Which biases were trained; only `none` is supported.
    #[serde(default = "no_bias")]
    pub bias: String,
    /// Whether weights are stored transposed. PEFT ignores it for linear layers, and so does this
    /// crate.
    #[serde(default)]
    pub fan_in_fan_out: bool,
    /// Scale by α/√r instead of α/r (<https://arxiv.org/abs/2312.03732>).
    #[serde(default)]
    pub use_rslora: bool,
    /// Ranks that differ from `r`, by module-name pattern.
    #[serde(default)]
    pub rank_pattern: BTreeMap<String, usize>,
    /// α that differs from `lora_alpha`, by module-name pattern.
    #[serde(default)]
    pub alpha_pattern: BTreeMap<String, f64>,
    /// If set, only these layers have updates.
    #[serde(default)]
    pub layers_to_transform: Option<Layers>,
    /// Path or hub name of the base; not used.
    #[serde(default)]
    pub base_model_name_or_path: Option<String>,
    /// PEFT's task type; not used.
    #[serde(default)]
    pub task_type: Option<String>,
    /// Activated LoRA (<https://arxiv.org/abs/2504.12397>), if set: the adapter acts only from the
    /// last occurrence of these tokens in the prompt on. So all adapters share the keys and values
    /// of earlier tokens. A prompt without these tokens is answered by the base.
    #[serde(default)]
    pub alora_invocation_tokens: Option<Vec<u32>>,
}

/// `target_modules`: names (matched as a suffix) or one regular expression (matched whole).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TargetModules {
    /// A regular expression over the module's full name, or `all-linear`.
    Pattern(String),
    /// Module names, such as `q_proj` or `self_attn.q_proj`.
    Names(Vec<String>),
}

/// `layers_to_transform`: one layer or several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Layers {
    /// A single layer's index.
    One(usize),
    /// Several layers' indices.
    Many(Vec<usize>),
}

fn no_bias() -> String {
    "none".to_owned()
}

/// Keys that change the adapter's result unless they are unset (null, false, empty).
const UNSUPPORTED: [&str; 10] = [
    "modules_to_save",
    "use_dora",
    "use_qalora",
    "lora_bias",
    "layer_replication",
    "layers_pattern",
    "exclude_modules",
    "trainable_token_indices",
    "target_parameters",
    "arrow_config",
];

impl AdapterConfig {
    /// Plain LoRA on the layers with these names.
    pub fn new(r: usize, lora_alpha: f64, names: Vec<String>) -> Self {
        Self {
            peft_type: "LORA".to_owned(),
            r,
            lora_alpha,
            lora_dropout: 0.0,
            target_modules: TargetModules::Names(names),
            bias: no_bias(),
            fan_in_fan_out: false,
            use_rslora: false,
            rank_pattern: BTreeMap::new(),
            alpha_pattern: BTreeMap::new(),
            layers_to_transform: None,
            base_model_name_or_path: None,
            task_type: Some("CAUSAL_LM".to_owned()),
            alora_invocation_tokens: None,
        }
    }

    /// The file's content: PEFT's own keys, with those that are not implemented unset.
    pub fn to_json(&self) -> Value {
        let alphas: BTreeMap<&String, Value> = self.alpha_pattern.iter().map(|(pattern, alpha)| (pattern, number(*alpha))).collect();
        serde_json::json!({
            "peft_type": self.peft_type,
            "task_type": self.task_type,
            "base_model_name_or_path": self.base_model_name_or_path,
            "r": self.r,
            "lora_alpha": number(self.lora_alpha),
            "lora_dropout": self.lora_dropout,
            "target_modules": self.target_modules,
            "bias": self.bias,
            "fan_in_fan_out": self.fan_in_fan_out,
            "inference_mode": true,
            "init_lora_weights": true,
            "modules_to_save": null,
            "layers_to_transform": self.layers_to_transform,
            "layers_pattern": null,
            "rank_pattern": self.rank_pattern,
            "alpha_pattern": alphas,
            "use_rslora": self.use_rslora,
            "use_dora": false,
            "revision": null,
            "alora_invocation_tokens": self.alora_invocation_tokens,
        })
    }

    /// Parses and checks the file's content; `path` is used in error messages only.
    pub fn parse(text: &str, path: &Path) -> Result<Self, AdapterError> {
        let json = |source| AdapterError::Config { path: path.to_owned(), source };
        let raw: Value = serde_json::from_str(text).map_err(json)?;
        let unsupported = |option: &str, found: &Value, supported| AdapterError::Unsupported {
            path: path.to_owned(),
            option: option.to_owned(),
            found: found.to_string(),
            supported,
        };
        if let Some(found) = raw.get("peft_type").filter(|v| v.as_str() != Some("LORA")) {
            return Err(unsupported("peft_type", found, "`LORA`"));
        }
        for option in UNSUPPORTED {
            if let Some(found) = raw.get(option).filter(|v| is_set(v)) {
                return Err(unsupported(option, found, "leaving it unset"));
            }
        }
        if let Some(found) = raw.get("bias").filter(|v| v.as_str() != Some("none")) {
            return Err(unsupported("bias", found, "`none`"));
        }
        let mut config: Self = serde_json::from_value(raw).map_err(json)?;
        config.alora_invocation_tokens = config.alora_invocation_tokens.filter(|tokens| !tokens.is_empty());
        if config.r == 0 || config.rank_pattern.values().any(|r| *r == 0) {
            return Err(unsupported("r", &Value::from(0), "a rank of at least 1"));
        }
        Ok(config)
    }
}

/// Whole numbers are written as integers, as PEFT's `lora_alpha` is.
fn number(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 1e9 { (x as i64).into() } else { x.into() }
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

/// The configuration with compiled patterns, for looking up modules by name.
///
/// A module name is its path in the base, such as `model.layers.0.self_attn.q_proj`.
#[derive(Debug, Clone)]
pub(crate) struct Matcher<'a> {
    config: &'a AdapterConfig,
    target: Target,
    ranks: Vec<(Regex, usize)>,
    alphas: Vec<(Regex, f64)>,
}

#[derive(Debug, Clone)]
enum Target {
    AllLinear,
    Pattern(Regex),
    Names(Vec<String>),
}

impl<'a> Matcher<'a> {
    pub(crate) fn new(config: &'a AdapterConfig, path: &Path) -> Result<Self, AdapterError> {
        let regex = |pattern: String| {
            Regex::new(&pattern).map_err(|source| AdapterError::Pattern { path: path.to_owned(), pattern, source: Box::new(source) })
        };
        // PEFT: `re.match(rf"(.*\.)?({key})$", module)`.
        let suffix = |key: &str| regex(format!(r"^(?:.*\.)?(?:{key})$"));
        let target = match &config.target_modules {
            TargetModules::Pattern(p) if p == "all-linear" => Target::AllLinear,
            TargetModules::Pattern(p) => Target::Pattern(regex(format!("^(?:{p})$"))?),
            TargetModules::Names(names) => Target::Names(names.clone()),
        };
        let ranks = config.rank_pattern.iter().map(|(k, v)| Ok((suffix(k)?, *v))).collect::<Result<_, AdapterError>>()?;
        let alphas = config.alpha_pattern.iter().map(|(k, v)| Ok((suffix(k)?, *v))).collect::<Result<_, AdapterError>>()?;
        Ok(Self { config, target, ranks, alphas })
    }

    /// Whether the configuration adapts the linear layer `module`.
    pub(crate) fn targets(&self, module: &str) -> bool {
        let wanted = match &self.config.layers_to_transform {
            None => true,
            Some(layers) => layer_of(module).is_some_and(|i| match layers {
                Layers::One(one) => *one == i,
                Layers::Many(many) => many.contains(&i),
            }),
        };
        wanted
            && match &self.target {
                Target::AllLinear => module != "lm_head",
                Target::Pattern(pattern) => pattern.is_match(module),
                Target::Names(names) => names.iter().any(|n| is_suffix(module, n)),
            }
    }

    /// Names in `target_modules` that match none of `modules`.
    pub(crate) fn unmatched(&self, modules: &[&str]) -> Vec<String> {
        match &self.target {
            Target::Names(names) => names.iter().filter(|n| !modules.iter().any(|m| is_suffix(m, n))).cloned().collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn rank(&self, module: &str) -> usize {
        self.ranks.iter().find(|(p, _)| p.is_match(module)).map_or(self.config.r, |(_, r)| *r)
    }

    /// The factor on `B (A x)` for `module`.
    pub(crate) fn scale(&self, module: &str) -> f64 {
        let alpha = self.alphas.iter().find(|(p, _)| p.is_match(module)).map_or(self.config.lora_alpha, |(_, a)| *a);
        let rank = self.rank(module) as f64;
        alpha / if self.config.use_rslora { rank.sqrt() } else { rank }
    }
}

fn is_suffix(module: &str, name: &str) -> bool {
    module == name || module.strip_suffix(name).is_some_and(|head| head.ends_with('.'))
}

/// `model.layers.7.mlp.up_proj` -> 7
fn layer_of(module: &str) -> Option<usize> {
    module.split('.').skip_while(|part| *part != "layers").nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: Value) -> Result<AdapterConfig, AdapterError> {
        AdapterConfig::parse(&json.to_string(), Path::new("adapter_config.json"))
    }

    fn base() -> Value {
        serde_json::json!({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]})
    }

    fn with(key: &str, value: Value) -> Value {
        let mut json = base();
        json[key] = value;
        json
    }

    #[test]
    fn names_match_whole_path_segments() {
        let config = config(base()).unwrap();
        let m = Matcher::new(&config, Path::new("x")).unwrap();
        assert!(m.targets("model.layers.0.self_attn.q_proj"));
        assert!(!m.targets("model.layers.0.self_attn.xq_proj"));
        assert!(!m.targets("model.layers.0.self_attn.q_proj.inner"));
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        let config = config(with("target_modules", r".*\.(q|v)_proj".into())).unwrap();
        let m = Matcher::new(&config, Path::new("x")).unwrap();
        assert!(m.targets("model.layers.1.self_attn.v_proj"));
        assert!(!m.targets("model.layers.1.self_attn.v_proj.x"));
    }

    #[test]
    fn patterns_change_rank_and_scale() {
        let mut json = with("rank_pattern", serde_json::json!({"layers.1.self_attn.q_proj": 2}));
        json["use_rslora"] = true.into();
        let config = config(json).unwrap();
        let m = Matcher::new(&config, Path::new("x")).unwrap();
        assert_eq!(m.scale("model.layers.0.self_attn.q_proj"), 4.0);
        assert_eq!(m.scale("model.layers.1.self_attn.q_proj"), 8.0 / 2f64.sqrt());
    }

    #[test]
    fn what_is_written_is_read_back() {
        let names = vec!["q_proj".to_owned(), "v_proj".to_owned()];
        let mut wanted = AdapterConfig::new(8, 16.0, names);
        assert_eq!(wanted.to_json()["lora_alpha"], 16);
        assert_eq!(config(wanted.to_json()).unwrap(), wanted);
        wanted.lora_alpha = 0.5;
        wanted.use_rslora = true;
        wanted.rank_pattern.insert("layers.1.self_attn.q_proj".to_owned(), 2);
        wanted.alpha_pattern.insert("v_proj".to_owned(), 3.0);
        wanted.layers_to_transform = Some(Layers::Many(vec![0, 1]));
        wanted.alora_invocation_tokens = Some(vec![5, 6]);
        assert_eq!(config(wanted.to_json()).unwrap(), wanted);
    }

    #[test]
    fn layers_can_be_selected() {
        let config = config(with("layers_to_transform", serde_json::json!([1]))).unwrap();
        let m = Matcher::new(&config, Path::new("x")).unwrap();
        assert!(m.targets("model.layers.1.self_attn.q_proj"));
        assert!(!m.targets("model.layers.0.self_attn.q_proj"));
    }

    #[test]
    fn what_we_do_not_implement_is_refused() {
        for (key, value) in [
            ("peft_type", "IA3".into()),
            ("modules_to_save", serde_json::json!(["lm_head"])),
            ("use_dora", true.into()),
            ("bias", "all".into()),
            ("r", 0.into()),
        ] {
            let found = config(with(key, value));
            assert!(matches!(&found, Err(AdapterError::Unsupported { option, .. }) if option == key), "{found:?}");
        }
        assert!(matches!(config(with("r", "four".into())), Err(AdapterError::Config { .. })));
    }
}

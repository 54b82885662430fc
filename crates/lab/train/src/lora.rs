//! LoRA adapters (<https://arxiv.org/abs/2106.09685>) in PEFT's format:
//! `y = W x + (alpha / r) B A dropout(x)` with `A` `[r, inputs]` and `B` `[outputs, r]`.

use std::path::Path;

use autoact_base::random::SplitMix64;
use autoact_checkpoint::{SaveDtype, Tensor};
use autoact_lora::{Adapter as PeftAdapter, AdapterConfig, CONFIG_FILE, Factor, TargetModules, WEIGHTS_FILE, tensor_name};
use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::layout::{Builder, TensorKind, TensorSpec};
use crate::model_config::ModelConfig;
use crate::tensors::encode_all;

/// A linear layer that can have an adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Linear {
    /// Query projection.
    #[serde(rename = "q_proj")]
    Q,
    /// Key projection.
    #[serde(rename = "k_proj")]
    K,
    /// Value projection.
    #[serde(rename = "v_proj")]
    V,
    /// Attention output projection.
    #[serde(rename = "o_proj")]
    O,
    /// Gate of the SwiGLU.
    #[serde(rename = "gate_proj")]
    Gate,
    /// Up projection.
    #[serde(rename = "up_proj")]
    Up,
    /// Down projection.
    #[serde(rename = "down_proj")]
    Down,
}

impl Linear {
    /// All seven, in the order of a layer.
    pub const ALL: [Self; 7] = [Self::Q, Self::K, Self::V, Self::O, Self::Gate, Self::Up, Self::Down];

    /// Its name in Hugging Face's Llama.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Q => "q_proj",
            Self::K => "k_proj",
            Self::V => "v_proj",
            Self::O => "o_proj",
            Self::Gate => "gate_proj",
            Self::Up => "up_proj",
            Self::Down => "down_proj",
        }
    }

    fn parent(self) -> &'static str {
        match self {
            Self::Q | Self::K | Self::V | Self::O => "self_attn",
            _ => "mlp",
        }
    }

    /// Widths of its input and its output.
    pub(crate) fn dims(self, c: &ModelConfig) -> (usize, usize) {
        match self {
            Self::Q => (c.hidden_size, c.q_width()),
            Self::K | Self::V => (c.hidden_size, c.kv_width()),
            Self::O => (c.q_width(), c.hidden_size),
            Self::Gate | Self::Up => (c.hidden_size, c.intermediate_size),
            Self::Down => (c.intermediate_size, c.hidden_size),
        }
    }
}

/// The settings of the adapters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoraConfig {
    /// Rank.
    pub r: usize,
    /// Scaling: the adapter's output is multiplied by `alpha / r`.
    pub alpha: f64,
    /// Probability of dropping an input element of the adapter. Adapters that read the same input
    /// share its mask.
    pub dropout: f64,
    /// Which linear layers get an adapter.
    pub target_modules: Vec<Linear>,
    /// The base model's name in `adapter_config.json`.
    #[serde(default)]
    pub base_model: Option<String>,
    /// Activated LoRA (<https://arxiv.org/abs/2504.12397>): the adapter acts from the last
    /// occurrence of these tokens in a prompt on. This is written for servers. Training itself uses
    /// [`Document::invocations`](crate::Document::invocations).
    #[serde(default)]
    pub alora_invocation_tokens: Option<Vec<u32>>,
}

impl LoraConfig {
    /// The settings of an adapter that PEFT wrote. It must be plain LoRA on whole linear layers.
    fn of_peft(file: &AdapterConfig) -> std::result::Result<Self, String> {
        let TargetModules::Names(names) = &file.target_modules else {
            return Err("`target_modules` is a pattern, expected a list of names".to_owned());
        };
        let linear = |name: &String| {
            let known = Linear::ALL.into_iter().find(|linear| linear.name() == name);
            known.ok_or_else(|| format!("`target_modules` names `{name}`, expected {}", Linear::ALL.map(Linear::name).join(", ")))
        };
        if file.use_rslora {
            return Err("rsLoRA is not supported".to_owned());
        }
        if !file.rank_pattern.is_empty() || !file.alpha_pattern.is_empty() || file.layers_to_transform.is_some() {
            return Err("ranks, alphas or layers that differ from the rest are not supported".to_owned());
        }
        Ok(Self {
            r: file.r,
            alpha: file.lora_alpha,
            dropout: file.lora_dropout,
            target_modules: names.iter().map(linear).collect::<std::result::Result<_, String>>()?,
            base_model: file.base_model_name_or_path.clone(),
            alora_invocation_tokens: file.alora_invocation_tokens.clone(),
        })
    }

    fn to_peft(&self) -> AdapterConfig {
        let names = self.target_modules.iter().map(|linear| linear.name().to_owned()).collect();
        AdapterConfig {
            lora_dropout: self.dropout,
            base_model_name_or_path: self.base_model.clone(),
            alora_invocation_tokens: self.alora_invocation_tokens.clone(),
            ..AdapterConfig::new(self.r, self.alpha, names)
        }
    }

    pub(crate) fn check(&self, rule: &mut impl FnMut(bool, String)) {
        rule(self.r > 0, "lora `r` must be above 0".into());
        let ok = self.alpha.is_finite() && self.alpha > 0.0;
        rule(ok, format!("lora `alpha` must be above 0, found {}", self.alpha));
        let ok = (0.0..1.0).contains(&self.dropout);
        rule(ok, format!("lora `dropout` must be from 0 to below 1, found {}", self.dropout));
        rule(!self.target_modules.is_empty(), "lora `target_modules` must not be empty".into());
    }
}

/// One adapter's position in the flat vector.
#[derive(Debug, Clone)]
pub(crate) struct Adapter {
    /// Offset of `A` `[r, inputs]`.
    pub(crate) a: usize,
    /// Offset of `B` `[outputs, r]`.
    pub(crate) b: usize,
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
}

/// All adapters of a model in one flat f32 vector.
#[derive(Debug, Clone)]
pub struct LoraWeights {
    pub(crate) config: LoraConfig,
    tensors: Vec<TensorSpec>,
    pub(crate) adapters: Vec<[Option<Adapter>; 7]>,
    pub(crate) data: Vec<f32>,
}

impl LoraWeights {
    /// Initial adapters, as PEFT creates them: `A` uniform in `±1/sqrt(inputs)` (Kaiming with
    /// `a = sqrt(5)`), `B` zero.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn init(model: &ModelConfig, config: &LoraConfig, seed: u64) -> Result<Self> {
        model.validate()?;
        let mut bad = Vec::new();
        config.check(&mut |ok, text| {
            if !ok {
                bad.push(text);
            }
        });
        if !bad.is_empty() {
            return Err(TrainError::Config(bad.join("; ")));
        }
        let mut builder = Builder::default();
        let adapters = (0..model.num_hidden_layers)
            .map(|layer| {
                Linear::ALL.map(|linear| {
                    if !config.target_modules.contains(&linear) {
                        return None;
                    }
                    let (inputs, outputs) = linear.dims(model);
                    let (parent, name) = (linear.parent(), linear.name());
                    let module = format!("model.layers.{layer}.{parent}.{name}");
                    let kind = TensorKind::Matrix;
                    let a = builder.add(&tensor_name(&module, Factor::A), config.r, inputs, kind);
                    let b = builder.add(&tensor_name(&module, Factor::B), outputs, config.r, kind);
                    Some(Adapter { a, b, inputs, outputs })
                })
            })
            .collect();
        let mut data = vec![0.0f32; builder.total];
        for (i, spec) in builder.tensors.iter().enumerate() {
            if spec.name.ends_with("lora_A.weight") {
                let bound = 1.0 / (spec.cols as f64).sqrt();
                let mut rng = SplitMix64::stream(seed, i as u64);
                let uniform = |w: &mut f32| *w = ((2.0 * rng.unit() - 1.0) * bound) as f32;
                data[spec.range()].iter_mut().for_each(uniform);
            }
        }
        Ok(Self { config: config.clone(), tensors: builder.tensors, adapters, data })
    }

    /// Reads adapters written by [`LoraWeights::save`] or PEFT, to train them further. Rank, alpha
    /// and target layers come from `adapter_config.json`.
    ///
    /// # Errors
    /// If a file is missing or malformed, or needs a LoRA variant that is not supported.
    pub fn load(dir: &Path, model: &ModelConfig) -> Result<Self> {
        Self::of_peft(&PeftAdapter::load(dir)?, dir, model)
    }

    /// [`LoraWeights::load`] for the base whose `model.safetensors` has this SHA-256 digest (hex).
    ///
    /// # Errors
    /// As [`LoraWeights::load`], and if the file names another base.
    pub fn load_for_base(dir: &Path, model: &ModelConfig, base_sha256: &str) -> Result<Self> {
        let adapter = PeftAdapter::load(dir)?;
        if let Some(found) = adapter.base_digest.as_deref().filter(|found| *found != base_sha256) {
            let message = format!("the adapter was made for another base: expected the digest {base_sha256}, found {found}");
            return Err(TrainError::format(&dir.join(WEIGHTS_FILE), message));
        }
        Self::of_peft(&adapter, dir, model)
    }

    fn of_peft(adapter: &PeftAdapter, dir: &Path, model: &ModelConfig) -> Result<Self> {
        let bad = |e: &dyn std::fmt::Display| TrainError::format(&dir.join(CONFIG_FILE), e);
        let config = LoraConfig::of_peft(&adapter.config).map_err(|e| bad(&e))?;
        let mut out = Self::init(model, &config, 0).map_err(|e| bad(&e))?;
        let path = dir.join(WEIGHTS_FILE);
        for spec in &out.tensors {
            let missing = || TrainError::MissingTensor { path: path.clone(), name: spec.name.clone() };
            let matrix = adapter.tensor(&spec.name).ok_or_else(missing)?;
            if spec.shape() != [matrix.rows, matrix.cols] {
                return Err(TrainError::Shape {
                    path,
                    name: spec.name.clone(),
                    expected: spec.shape(),
                    found: vec![matrix.rows, matrix.cols],
                });
            }
            out.data[spec.range()].copy_from_slice(&matrix.data);
        }
        Ok(out)
    }

    /// The same adapters, activated by these tokens from now on; `None`: they always act.
    #[must_use]
    pub fn activated_by(mut self, tokens: Option<Vec<u32>>) -> Self {
        self.config.alora_invocation_tokens = tokens;
        self
    }

    /// Writes `adapter_config.json` and `adapter_model.safetensors` to `dir`.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, dir: &Path, dtype: SaveDtype) -> Result<()> {
        Ok(autoact_lora::save(dir, &self.config.to_peft(), &self.encoded(dtype), dtype, None)?)
    }

    /// [`LoraWeights::save`] with the SHA-256 digest (hex) of the base's `model.safetensors` in the
    /// file, so that a loader can refuse another base.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save_for_base(&self, dir: &Path, dtype: SaveDtype, base_sha256: &str) -> Result<()> {
        Ok(autoact_lora::save(dir, &self.config.to_peft(), &self.encoded(dtype), dtype, Some(base_sha256))?)
    }

    fn encoded(&self, dtype: SaveDtype) -> Vec<Tensor> {
        encode_all(&self.tensors, &self.data, dtype)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &LoraConfig {
        &self.config
    }

    /// The position of each factor in [`LoraWeights::data`], with its PEFT name.
    #[must_use]
    pub fn tensors(&self) -> &[TensorSpec] {
        &self.tensors
    }

    /// The flat vector of all factors.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The flat vector, mutable.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The factors' positions, and the flat vector, mutable.
    pub(crate) fn split(&mut self) -> (&[TensorSpec], &mut [f32]) {
        (&self.tensors, &mut self.data)
    }

    /// Whether these adapters fit a model of this shape.
    pub(crate) fn fits(&self, model: &ModelConfig) -> bool {
        Self::init(model, &self.config, 0).is_ok_and(|other| other.tensors == self.tensors)
    }
}

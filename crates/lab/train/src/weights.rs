//! The parameters of a model: initialise, load from and save to a Hugging Face directory.

use std::collections::BTreeMap;
use std::path::Path;

use autoact_base::random::SplitMix64;
use autoact_checkpoint::{self as checkpoint, CONFIG_FILE, SaveDtype};

use crate::error::Result;
use crate::layout::{Layout, TensorKind, TensorSpec};
use crate::model_config::ModelConfig;
use crate::tensors::{encode_all, read_tensors};

/// Standard deviation of initial weights, as in GPT-2 and Hugging Face's Llama.
pub const INIT_STD: f64 = 0.02;

/// All parameters of a model in one flat f32 vector.
#[derive(Debug, Clone)]
pub struct Weights {
    layout: Layout,
    data: Vec<f32>,
}

impl Weights {
    /// Initial weights: normal with [`INIT_STD`]. Norms are 1. Output projections are divided by
    /// `sqrt(2 layers)`, so that the residual stream keeps its scale (GPT-2).
    ///
    /// # Errors
    /// If the shape is invalid.
    pub fn init(config: &ModelConfig, seed: u64) -> Result<Self> {
        config.validate()?;
        let layout = Layout::new(config);
        let mut data = vec![0.0f32; layout.total()];
        let residual = 1.0 / (2.0 * config.num_hidden_layers as f64).sqrt();
        for (i, spec) in layout.tensors().iter().enumerate() {
            let out = &mut data[spec.range()];
            if spec.kind == TensorKind::Norm {
                out.fill(1.0);
                continue;
            }
            let into_residual = spec.name.ends_with("o_proj.weight") || spec.name.ends_with("down_proj.weight");
            let std = if into_residual { INIT_STD * residual } else { INIT_STD };
            let mut rng = SplitMix64::stream(seed, i as u64);
            out.iter_mut().for_each(|w| *w = (rng.normal() * std) as f32);
        }
        Ok(Self { layout, data })
    }

    /// Reads `model.safetensors` in `dir`; f32, bf16 and f16 tensors are accepted.
    ///
    /// # Errors
    /// If the file is missing, cut short, or lacks a tensor of the right shape.
    pub fn load(dir: &Path, config: &ModelConfig) -> Result<Self> {
        config.validate()?;
        let path = dir.join("model.safetensors");
        let bytes = checkpoint::read(&path)?;
        let file = checkpoint::parse(&path, &bytes)?;
        let layout = Layout::new(config);
        let mut data = vec![0.0f32; layout.total()];
        read_tensors(&path, &file, layout.tensors(), &mut data)?;
        Ok(Self { layout, data })
    }

    /// Writes `config.json` and `model.safetensors` to `dir`, which is created if necessary.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, dir: &Path, config: &ModelConfig, dtype: SaveDtype) -> Result<()> {
        checkpoint::make_dir(dir)?;
        let json = format!("{:#}\n", config.to_hf_json(dtype.torch_name()));
        let path = dir.join("model.safetensors");
        let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
        checkpoint::write_tensors(&path, &encode_all(self.layout.tensors(), &self.data, dtype), dtype, &metadata)?;
        Ok(checkpoint::write_whole(&dir.join(CONFIG_FILE), json.as_bytes())?)
    }

    /// The position of each tensor in the flat vector.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The flat vector of all parameters, as [`Weights::layout`] describes it.
    #[must_use]
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The flat vector, mutable.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The tensors' positions, and the flat vector, mutable.
    pub(crate) fn split(&mut self) -> (&[TensorSpec], &mut [f32]) {
        (self.layout.tensors(), &mut self.data)
    }

    /// The values of one tensor by its Hugging Face name, row-major; `None` if there is no such
    /// tensor.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<&[f32]> {
        let spec = self.layout.tensors().iter().find(|t| t.name == name)?;
        self.data.get(spec.range())
    }
}

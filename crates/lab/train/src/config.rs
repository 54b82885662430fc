//! Training settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::lora::LoraConfig;
use crate::simd;

/// The optimiser of the layers' matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW (<https://arxiv.org/abs/1711.05101>) for all parameters.
    AdamW,
    /// Muon (<https://kellerjordan.github.io/posts/muon/>) for the layers' matrices and LoRA
    /// factors, AdamW for embeddings, norms and the output head.
    Muon,
}

/// The number format of the factors in matrix products. Sums and everything else are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// bfloat16 factors and activations with f32 sums (mixed precision), on CPUs with AVX512_BF16 or
    /// AMX. Others compute in [`Precision::F32`], which is faster for them; see
    /// [`Precision::in_use`].
    Bf16,
}

impl Precision {
    /// The format that this machine computes in. A checkpoint remembers it, so that a resumed run
    /// does not go on in another one.
    #[must_use]
    pub fn in_use(self) -> Self {
        if simd::has_bf16() { self } else { Self::F32 }
    }
}

/// How the learning rate falls after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// Not at all.
    Constant,
    /// Linearly to the minimum.
    Linear,
    /// By a half cosine to the minimum.
    Cosine,
}

/// The length of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// Number of optimiser steps.
    Steps(u64),
    /// Number of tokens, rounded up to whole steps of `rows * seq_len * accumulation`.
    Tokens(u64),
}

/// The settings of one training run. [`TrainConfig::default`] trains from scratch with AdamW.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainConfig {
    /// The length of the run.
    pub length: Length,
    /// Rows in a batch. A step has `rows * seq_len * accumulation` token positions.
    pub rows: usize,
    /// Tokens in a row. Longer documents are cut.
    pub seq_len: usize,
    /// Rows in a micro-batch, which one worker computes at a time. It should fit the caches and
    /// still be large enough for efficient matrix products.
    pub micro_rows: usize,
    /// Number of gradient shards. It fixes the order of sums for any number of threads.
    pub shards: usize,
    /// Worker threads; 0: one per core.
    pub threads: usize,
    /// Batches whose gradients are summed for one optimiser step.
    pub accumulation: usize,
    /// Peak learning rate of AdamW.
    pub lr: f64,
    /// Peak learning rate of Muon.
    pub muon_lr: f64,
    /// Momentum of Muon.
    pub muon_momentum: f64,
    /// AdamW's decay rates of the first and second moment.
    pub betas: (f64, f64),
    /// AdamW's epsilon.
    pub eps: f64,
    /// Decoupled weight decay of matrices and embeddings (norms have none).
    pub weight_decay: f64,
    /// Fraction of the steps with a rising learning rate.
    pub warmup_ratio: f64,
    /// Warm-up in steps; replaces `warmup_ratio` if set.
    pub warmup_steps: Option<u64>,
    /// How the learning rate falls after the warm-up.
    pub decay: Decay,
    /// Minimum learning rate as a fraction of the peak.
    pub min_lr_ratio: f64,
    /// Maximum of the global gradient norm; 0: no clipping.
    pub clip: f64,
    /// Seed of the dropout masks and of the LoRA initialisation.
    pub seed: u64,
    /// Steps between checkpoints; 0: none.
    pub checkpoint_every: u64,
    /// The directory for checkpoints.
    pub checkpoint_dir: Option<PathBuf>,
    /// Number of checkpoints kept; older ones are deleted.
    pub keep_checkpoints: usize,
    /// The number format of matrix products.
    pub precision: Precision,
    /// The optimiser of the layers' matrices.
    pub optimizer: Optimizer,
    /// Train adapters instead of the weights.
    pub lora: Option<LoraConfig>,
    /// Maximum number of bytes of keys and values that are kept of the histories of activated
    /// adapters, so that the base reads each once and not in every epoch; 0: none. It changes no bit
    /// of the result. Worth it for documents that come again, see [`Cycle`](crate::Cycle).
    pub history_bytes: usize,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            length: Length::Steps(1000),
            rows: 16,
            seq_len: 320,
            micro_rows: 2,
            shards: 2,
            threads: 0,
            accumulation: 1,
            lr: 1e-3,
            muon_lr: 0.02,
            muon_momentum: 0.95,
            betas: (0.9, 0.95),
            eps: 1e-8,
            weight_decay: 0.1,
            warmup_ratio: 0.03,
            warmup_steps: None,
            decay: Decay::Cosine,
            min_lr_ratio: 0.1,
            clip: 1.0,
            seed: 0,
            checkpoint_every: 0,
            checkpoint_dir: None,
            keep_checkpoints: 2,
            precision: Precision::F32,
            optimizer: Optimizer::AdamW,
            lora: None,
            history_bytes: 0,
        }
    }
}

impl TrainConfig {
    /// Number of optimiser steps in the run.
    #[must_use]
    pub fn total_steps(&self) -> u64 {
        match self.length {
            Length::Steps(n) => n,
            Length::Tokens(n) => n.div_ceil((self.rows * self.seq_len * self.accumulation).max(1) as u64),
        }
    }

    /// Number of warm-up steps.
    #[must_use]
    pub fn total_warmup(&self) -> u64 {
        self.warmup_steps.unwrap_or((self.total_steps() as f64 * self.warmup_ratio).round() as u64)
    }

    /// Micro-batches in one optimiser step.
    pub(crate) fn micro_batches(&self) -> usize {
        (self.rows * self.accumulation).div_ceil(self.micro_rows)
    }

    /// Token positions that one micro-batch can hold.
    pub(crate) fn micro_capacity(&self) -> usize {
        self.micro_rows * self.seq_len
    }

    /// Checks every setting.
    ///
    /// # Errors
    /// All violated rules together.
    pub fn validate(&self) -> Result<()> {
        let mut bad = Vec::new();
        let mut rule = |ok: bool, text: String| {
            if !ok {
                bad.push(text);
            }
        };
        let positive = [
            ("rows", self.rows),
            ("seq_len", self.seq_len),
            ("micro_rows", self.micro_rows),
            ("shards", self.shards),
            ("accumulation", self.accumulation),
        ];
        for (name, value) in positive {
            rule(value > 0, format!("`{name}` must be above 0"));
        }
        let finite =
            [("lr", self.lr), ("muon_lr", self.muon_lr), ("weight_decay", self.weight_decay), ("clip", self.clip), ("eps", self.eps)];
        for (name, value) in finite {
            let ok = value.is_finite() && value >= 0.0;
            rule(ok, format!("`{name}` must be a number from 0, found {value}"));
        }
        let (b1, b2) = self.betas;
        let parts = [
            ("betas.0", b1, false),
            ("betas.1", b2, false),
            ("muon_momentum", self.muon_momentum, false),
            ("warmup_ratio", self.warmup_ratio, true),
            ("min_lr_ratio", self.min_lr_ratio, true),
        ];
        for (name, value, one) in parts {
            let ok = (0.0..1.0).contains(&value) || (one && value == 1.0);
            rule(ok, format!("`{name}` must be a part of 1, found {value}"));
        }
        rule(self.checkpoint_every == 0 || self.checkpoint_dir.is_some(), "`checkpoint_every` needs `checkpoint_dir`".into());
        if let Some(lora) = &self.lora {
            lora.check(&mut rule);
        }
        if bad.is_empty() { Ok(()) } else { Err(TrainError::Config(bad.join("; "))) }
    }
}

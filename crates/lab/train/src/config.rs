//! Training settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::{Result, TrainError};
use crate::lora::LoraConfig;

/// Which update rule moves the hidden matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Optimizer {
    /// AdamW for everything.
    AdamW,
    /// Muon for the 2-D matrices of the layers (and of LoRA), AdamW for embeddings, norms, head.
    Muon,
}

/// The number format of the factors in matrix products; sums, weights and the rest are f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// 32-bit floats.
    #[default]
    F32,
    /// bfloat16 with f32 sums, as mixed-precision training does; about twice as fast on CPUs with
    /// AVX512_BF16, the same as [`Precision::F32`] on others.
    Bf16,
}

/// How the learning rate falls after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decay {
    /// It does not.
    Constant,
    /// In a straight line to the floor.
    Linear,
    /// Along half a cosine to the floor.
    Cosine,
}

/// How long to train.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Length {
    /// That many optimiser steps.
    Steps(u64),
    /// About that many tokens: rounded up to whole steps of `rows * seq_len * accumulation`.
    Tokens(u64),
}

/// The settings of one training run. [`TrainConfig::default`] trains from scratch with AdamW.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrainConfig {
    /// How long to train.
    pub length: Length,
    /// Rows in a batch; with `seq_len` it sets the tokens per step.
    pub rows: usize,
    /// Tokens in a row; also the longest document that is not cut.
    pub seq_len: usize,
    /// Rows that one worker takes at a time; small enough for the caches, large enough for GEMM.
    pub micro_rows: usize,
    /// Gradient shards: fixes the order of sums, whatever the number of threads.
    pub shards: usize,
    /// Worker threads; 0 = as many as there are cores.
    pub threads: usize,
    /// Batches summed into one optimiser step.
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
    /// Part of the steps that warms the learning rate up.
    pub warmup_ratio: f64,
    /// Warm-up in steps; if set, it wins over `warmup_ratio`.
    pub warmup_steps: Option<u64>,
    /// How the learning rate falls after the warm-up.
    pub decay: Decay,
    /// Floor of the learning rate, as a part of the peak.
    pub min_lr_ratio: f64,
    /// Largest global gradient norm; 0 = no clipping.
    pub clip: f64,
    /// Seed of the dropout masks and of the LoRA initialisation.
    pub seed: u64,
    /// Steps between checkpoints; 0 = none.
    pub checkpoint_every: u64,
    /// Where checkpoints go.
    pub checkpoint_dir: Option<PathBuf>,
    /// Checkpoints kept; older ones are deleted.
    pub keep_checkpoints: usize,
    /// The number format of matrix products.
    pub precision: Precision,
    /// The update rule.
    pub optimizer: Optimizer,
    /// Train adapters instead of the weights.
    pub lora: Option<LoraConfig>,
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
        }
    }
}

impl TrainConfig {
    /// Optimiser steps in the whole run.
    #[must_use]
    pub fn total_steps(&self) -> u64 {
        match self.length {
            Length::Steps(n) => n,
            Length::Tokens(n) => n.div_ceil((self.rows * self.seq_len * self.accumulation).max(1) as u64),
        }
    }

    /// Steps of warm-up.
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
    /// Lists all broken rules together.
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

//! The training loop.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use autoact_base::random::mix;

use crate::checkpoint::{self, Meta};
use crate::config::{Precision, TrainConfig};
use crate::data::{Document, DocumentSource};
use crate::error::{Result, TrainError};
use crate::layout::TensorSpec;
use crate::lora::LoraWeights;
use crate::model_config::ModelConfig;
use crate::optim::{self, OptimState, muon, schedule};
use crate::packing::{Batch, DataPosition, MicroBatch, PackStats, Packer, pack_all};
use crate::passes::{self, Parameters, Passes};
use crate::progress::{Progress, Report, Speed, smooth};
use crate::timing::{Phase, Timings};
use crate::weights::Weights;

/// Batches that the data thread prepares ahead.
const PREFETCH: usize = 2;

/// The gradient of every trained tensor, by name.
pub type NamedGradients = Vec<(String, Vec<f32>)>;

/// A model in training, with its optimiser state and data position.
pub struct Trainer {
    model: ModelConfig,
    config: TrainConfig,
    weights: Weights,
    lora: Option<LoraWeights>,
    state: OptimState,
    passes: Box<dyn Passes>,
    /// One element per worker thread.
    muon: Vec<muon::Scratch>,
    /// One gradient vector per shard.
    shards: Vec<Vec<f32>>,
    position: DataPosition,
    stats: PackStats,
    tokens: u64,
    loss_ema: Option<f64>,
    timings: Timings,
}

impl Trainer {
    /// A trainer of `weights`, or with `config.lora` of new adapters on frozen `weights`.
    ///
    /// # Errors
    /// If a setting is out of range or the weights do not fit the model.
    pub fn new(model: ModelConfig, weights: Weights, config: TrainConfig) -> Result<Self> {
        config.validate()?;
        let lora = config.lora.as_ref();
        let lora = lora.map(|l| LoraWeights::init(&model, l, config.seed)).transpose()?;
        Self::build(model, weights, config, lora)
    }

    /// A trainer of existing adapters; `config.lora` is replaced by their settings.
    ///
    /// # Errors
    /// If a setting is out of range or the weights or adapters do not fit the model.
    pub fn with_adapters(model: ModelConfig, weights: Weights, adapters: LoraWeights, mut config: TrainConfig) -> Result<Self> {
        config.lora = Some(adapters.config().clone());
        config.validate()?;
        if !adapters.fits(&model) {
            return Err(TrainError::Config("the adapters do not fit the model".into()));
        }
        Self::build(model, weights, config, Some(adapters))
    }

    fn build(model: ModelConfig, weights: Weights, mut config: TrainConfig, lora: Option<LoraWeights>) -> Result<Self> {
        model.validate()?;
        config.precision = config.precision.in_use();
        if config.precision == Precision::Bf16 && !(model.hidden_size.is_multiple_of(2) && model.intermediate_size.is_multiple_of(2)) {
            return Err(TrainError::Config("products in bf16 need an even `hidden_size` and `intermediate_size`".into()));
        }
        if weights.layout().tensors() != crate::layout::Layout::new(&model).tensors() {
            return Err(TrainError::Config("the weights do not fit the model's shape".into()));
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = if config.threads == 0 { cores } else { config.threads };
        let trained = lora.as_ref().map_or(weights.data().len(), |l| l.data().len());
        let shards = config.shards.min(config.micro_batches());
        Ok(Self {
            state: OptimState::new(trained),
            passes: passes::new(&model, &config, &weights, threads),
            muon: (0..threads).map(|_| muon::Scratch::default()).collect(),
            shards: vec![vec![0.0; trained]; shards],
            position: DataPosition::default(),
            stats: PackStats::default(),
            tokens: 0,
            loss_ema: None,
            timings: Timings::default(),
            model,
            config,
            weights,
            lora,
        })
    }

    /// Trains to the end of the schedule, or until `on_step` breaks. Batches are prepared on a
    /// separate thread. Checkpoints are written as configured, and in addition on an early stop and
    /// at the end.
    ///
    /// # Errors
    /// If a document is malformed, a checkpoint cannot be written, or the training diverges.
    pub fn run(&mut self, source: &mut dyn DocumentSource, on_step: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Report> {
        let vocab = self.model.vocab_size;
        let position = &self.position;
        let mut packer = Packer::new(source, &self.config, vocab, position, self.stats)?;
        std::thread::scope(|scope| {
            let (sender, batches) = sync_channel::<Result<Batch>>(PREFETCH);
            let producer = scope.spawn(move || {
                loop {
                    let batch = packer.batch();
                    let failed = batch.is_err();
                    if sender.send(batch).is_err() || failed {
                        break;
                    }
                }
            });
            let report = self.steps(batches, on_step);
            // the receiver is gone, so the producer ends at its next batch
            match producer.join() {
                Ok(()) => report,
                Err(_) => Err(TrainError::Thread("data")),
            }
        })
    }

    fn steps(&mut self, batches: Receiver<Result<Batch>>, on_step: &mut dyn FnMut(&Progress) -> ControlFlow<()>) -> Result<Report> {
        let total = self.config.total_steps();
        let every = self.config.checkpoint_every;
        let mut speed = Speed::new();
        let mut stopped = false;
        let mut saved = self.state.step;
        while self.state.step < total && !stopped {
            let waiting = Instant::now();
            let batch = batches.recv().map_err(|_| TrainError::Thread("data"))??;
            self.timings.add(Phase::Data, waiting.elapsed());
            let factor = schedule::factor(&self.config, self.state.step);
            let (loss, grad_norm) = self.step(&batch, factor)?;
            self.tokens += batch.tokens;
            self.position = batch.position;
            self.stats = batch.stats;
            let loss_ema = smooth(self.loss_ema, loss);
            self.loss_ema = Some(loss_ema);
            let step = self.state.step;
            if every > 0 && step.is_multiple_of(every) {
                self.checkpoint()?;
                saved = step;
            }
            let (tokens_per_second, per_step) = speed.step(batch.tokens);
            let progress = Progress {
                step,
                total,
                tokens: self.tokens,
                loss,
                loss_ema,
                lr: self.config.lr * factor,
                grad_norm,
                tokens_per_second,
                eta_seconds: per_step * (total - step) as f64,
                data: self.stats,
            };
            stopped = on_step(&progress).is_break();
        }
        if self.config.checkpoint_dir.is_some() && saved != self.state.step {
            self.checkpoint()?;
        }
        Ok(Report {
            steps: self.state.step,
            tokens: self.tokens,
            loss_ema: self.loss_ema.unwrap_or(f64::NAN),
            seconds: speed.started.elapsed().as_secs_f64(),
            stopped: stopped && self.state.step < total,
            data: self.stats,
        })
    }

    /// One optimiser step. Returns the loss in nats per target and the gradient norm before
    /// clipping.
    fn step(&mut self, batch: &Batch, factor: f64) -> Result<(f64, f64)> {
        let loss = self.accumulate(&batch.micros, batch.loss_tokens, true);
        let started = Instant::now();
        let grad_norm = optim::reduce(&mut self.muon, &mut self.shards).sqrt();
        if !(loss.is_finite() && grad_norm.is_finite()) {
            return Err(TrainError::Diverged { step: self.state.step + 1, loss, grad_norm });
        }
        let clip = self.config.clip;
        let scale = if clip > 0.0 { (clip / (grad_norm + 1e-6)).min(1.0) } else { 1.0 };
        let (tensors, params) = match &mut self.lora {
            Some(lora) => lora.split(),
            None => self.weights.split(),
        };
        let Some(grad) = self.shards.first_mut() else { return Ok((loss, grad_norm)) };
        optim::update(&mut self.muon, &self.config, tensors, params, grad, &mut self.state, factor, scale as f32);
        self.timings.add(Phase::Optimizer, started.elapsed());
        Ok((loss, grad_norm))
    }

    /// Computes the shards' gradients. Returns the mean loss in nats per target.
    fn accumulate(&mut self, micros: &[MicroBatch], loss_tokens: u64, train: bool) -> f64 {
        let key = train.then(|| mix(self.config.seed ^ mix(self.state.step)));
        let parameters = Parameters { model: &self.model, weights: &self.weights, lora: self.lora.as_ref() };
        self.passes.gradients(parameters, micros, loss_tokens, key, &mut self.shards) / loss_tokens.max(1) as f64
    }

    /// Mean loss over the targets of `documents`, in nats, without dropout; `NaN` if there are no
    /// targets. Documents are cut to `seq_len` as in training.
    ///
    /// # Errors
    /// If a document is malformed.
    pub fn evaluate(&mut self, documents: &[Document]) -> Result<f64> {
        let micros = pack_all(documents, &self.config, self.model.vocab_size)?;
        let parameters = Parameters { model: &self.model, weights: &self.weights, lora: self.lora.as_ref() };
        let loss = self.passes.losses(parameters, &micros);
        let targets: usize = micros.iter().map(|m| m.targets.len()).sum();
        Ok(loss / targets as f64)
    }

    /// The mean loss over `documents` in nats per target, and the gradient of every trained tensor
    /// by name, without dropout. For tests and diagnosis; parameters do not change.
    ///
    /// # Errors
    /// If a document is malformed.
    pub fn gradients(&mut self, documents: &[Document]) -> Result<(f64, NamedGradients)> {
        let micros = pack_all(documents, &self.config, self.model.vocab_size)?;
        let targets: usize = micros.iter().map(|m| m.targets.len()).sum();
        let loss = self.accumulate(&micros, targets as u64, false);
        optim::reduce(&mut self.muon, &mut self.shards);
        let grad = self.shards.first().map_or(&[][..], |g| g);
        let named = |t: &TensorSpec| (t.name.clone(), grad[t.range()].to_vec());
        let tensors = match &self.lora {
            Some(lora) => lora.tensors(),
            None => self.weights.layout().tensors(),
        };
        Ok((loss, tensors.iter().map(named).collect()))
    }

    /// The settings that must be equal in a checkpoint and in the trainer that resumes from it.
    fn fingerprint(&self) -> String {
        let c = &self.config;
        let base = self.lora.as_ref().map(|_| {
            let bits = self.weights.data().iter().map(|w| u64::from(w.to_bits()));
            bits.fold(0u64, |h, b| mix(h ^ b))
        });
        serde_json::json!({
            "model": self.model,
            "rows": c.rows * c.accumulation,
            "micro_rows": c.micro_rows,
            "seq_len": c.seq_len,
            "precision": c.precision,
            "sums": crate::product::order(c.precision),
            "optimizer": c.optimizer,
            "seed": c.seed,
            "lora": c.lora,
            "base": base,
        })
        .to_string()
    }

    /// Writes a checkpoint of the current state to `checkpoint_dir` and returns its path.
    ///
    /// # Errors
    /// If no directory is set or the file cannot be written.
    pub fn checkpoint(&self) -> Result<PathBuf> {
        let Some(dir) = &self.config.checkpoint_dir else {
            return Err(TrainError::Config("`checkpoint_dir` is not set".into()));
        };
        let meta = Meta {
            step: self.state.step,
            tokens: self.tokens,
            loss_ema: self.loss_ema,
            position: self.position.clone(),
            stats: self.stats,
            fingerprint: self.fingerprint(),
        };
        let params = self.lora.as_ref().map_or(self.weights.data(), |l| l.data());
        let data = [params, &self.state.m, &self.state.v];
        checkpoint::save(dir, &meta, data, self.config.keep_checkpoints)
    }

    /// Restores the state of a checkpoint. The next [`Trainer::run`] gives the same bits as a run
    /// without interruption.
    ///
    /// # Errors
    /// If the file is incomplete or belongs to a training with other settings.
    pub fn resume(&mut self, path: &Path) -> Result<()> {
        let ck = checkpoint::load(path, self.state.m.len())?;
        let different = differences(&ck.meta.fingerprint, &self.fingerprint());
        if !different.is_empty() {
            let m = format!("the checkpoint is of another training: {}; delete it to begin anew", different.join(", "));
            return Err(TrainError::format(path, m));
        }
        let params = match &mut self.lora {
            Some(lora) => lora.data_mut(),
            None => self.weights.data_mut(),
        };
        params.copy_from_slice(&ck.params);
        self.state = OptimState { m: ck.m, v: ck.v, step: ck.meta.step };
        self.tokens = ck.meta.tokens;
        self.loss_ema = ck.meta.loss_ema;
        self.position = ck.meta.position;
        self.stats = ck.meta.stats;
        Ok(())
    }

    /// Resumes from the newest checkpoint in `checkpoint_dir` and returns its step; `None` if there
    /// is no checkpoint.
    ///
    /// # Errors
    /// As [`Trainer::resume`].
    pub fn resume_latest(&mut self) -> Result<Option<u64>> {
        let Some(dir) = &self.config.checkpoint_dir else { return Ok(None) };
        let Some((step, path)) = checkpoint::list(dir)?.pop() else { return Ok(None) };
        self.resume(&path)?;
        Ok(Some(step))
    }

    /// The model's shape.
    #[must_use]
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// The settings; the precision is the one in use.
    #[must_use]
    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    /// The weights; with LoRA these are the frozen base's.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The adapters, if adapters are trained.
    #[must_use]
    pub fn adapters(&self) -> Option<&LoraWeights> {
        self.lora.as_ref()
    }

    /// Number of optimiser steps done.
    #[must_use]
    pub fn step_count(&self) -> u64 {
        self.state.step
    }

    /// Number of trained parameters.
    #[must_use]
    pub fn trained_parameters(&self) -> usize {
        self.state.m.len()
    }

    /// Time spent in each phase since the trainer was created.
    #[must_use]
    pub fn timings(&self) -> Timings {
        let mut all = self.timings;
        all.merge(&self.passes.timings());
        all
    }
}

/// What two fingerprints differ in, with both values. The directory of the base does not count: it may
/// be called in another way, and `base` is of its weights.
fn differences(theirs: &str, mine: &str) -> Vec<String> {
    let read = |text: &str| -> serde_json::Map<String, serde_json::Value> {
        let mut all: serde_json::Map<_, _> = serde_json::from_str(text).unwrap_or_default();
        if let Some(lora) = all.get_mut("lora").and_then(serde_json::Value::as_object_mut) {
            lora.remove("base_model");
        }
        all
    };
    let (theirs, mine) = (read(theirs), read(mine));
    let names: std::collections::BTreeSet<&String> = theirs.keys().chain(mine.keys()).collect();
    let shown = |value: Option<&serde_json::Value>| value.map_or_else(|| "none".to_owned(), ToString::to_string);
    let other = |name: &&String| theirs.get(*name) != mine.get(*name);
    names
        .into_iter()
        .filter(other)
        .map(|name| format!("`{name}` is {} there, {} here", shown(theirs.get(name)), shown(mine.get(name))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_compared_by_what_changes_a_training() {
        let of = |seed: u64, dir: &str| format!(r#"{{"seed":{seed},"base":7,"lora":{{"r":8,"base_model":"{dir}"}}}}"#);
        assert!(differences(&of(1, "models/stem"), &of(1, "/models/stem")).is_empty());
        assert_eq!(differences(&of(1, "a"), &of(2, "b")), ["`seed` is 1 there, 2 here"]);
        assert_eq!(differences("", &of(2, "b")).len(), 3, "what cannot be read is of no training");
    }
}

//! The LoRA training runs: one adapter after the other. Each can be resumed, records its loss
//! curve, and stops early on the validation loss.

use std::ops::ControlFlow;
use std::path::Path;

use autoact_base::random::stable_hash;
use autoact_prompt::{Role, segments};
use autoact_train::{Cycle, Document, Length, LoraWeights, ModelConfig, Optimizer, Progress, SaveDtype, TrainConfig, Trainer, Weights};
use serde::{Deserialize, Serialize};

use crate::differentiate::segments_before;
use crate::encode::Encoder;
use crate::error::LearnError;
use crate::memory;
use crate::records::{CurvePoint, DocumentRecord, history};
use crate::round::Round;
use crate::settings::{PAPER_LEARNING_RATE, Training};
use crate::stage::Stage;
use crate::store::{Store, read, read_json, write_atomic, write_json};
use crate::workplace::Workplace;

/// Hidden size of the models for which table 4 gives the learning rate.
const PAPER_WIDTH: f64 = 4096.0;
/// Steps between checkpoints, which is seconds for a small model.
const CHECKPOINT_EVERY: u64 = 25;
/// Of the free memory, the part that may be taken by the keys and values of histories while an adapter
/// is trained, and the bytes that are enough. In f32 a token of the bundled base has 14 KiB.
const HISTORY_SHARE: u64 = 4;
const HISTORY_BYTES: u64 = 8 << 30;
/// Approximate fraction of a batch that is filled, because documents are not cut.
const FILL: f64 = 0.95;

/// `adapters/*/training.json`: how an adapter was trained. The file exists once training is
/// complete.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trained {
    /// The adapter.
    pub adapter: String,
    /// The round it belongs to.
    pub round: usize,
    /// Number of training documents.
    pub documents: usize,
    /// Number of validation documents.
    pub validation_documents: usize,
    /// Number of steps.
    pub steps: u64,
    /// Number of epochs.
    pub epochs: u64,
    /// The step whose weights were kept; 0: no epoch was better than the base.
    pub best_step: u64,
    /// Validation loss at that step, in nats per token; `None` without validation documents.
    pub validation_loss: Option<f64>,
    /// Validation loss of the base, in nats per token.
    pub base_loss: Option<f64>,
    /// Smoothed training loss at the end, in nats per token.
    pub loss: f64,
    /// Whether early stopping ended it.
    pub stopped_early: bool,
    /// Number of tokens processed.
    pub tokens: u64,
    /// Median speed of the recorded steps, in tokens per second.
    pub tokens_per_second: f64,
    /// Number of trained parameters.
    pub parameters: usize,
    /// Peak learning rate.
    pub learning_rate: f64,
}

/// Trains those of the round's adapters `names` that do not exist yet.
///
/// # Errors
/// The model, the data or a file fails, or a stop was requested.
pub(crate) fn train<S: AsRef<str>>(work: &Workplace, round: &Round, names: &[S]) -> Result<(), LearnError> {
    let model = ModelConfig::load(&work.model).map_err(LearnError::train("base"))?;
    let weights = Weights::load(&work.model, &model).map_err(LearnError::train("base"))?;
    let encoder = Encoder::open(&work.model)?;
    for name in names.iter().map(AsRef::as_ref) {
        let target = round.adapter(name);
        if read_json::<Trained>(&target.join("training.json"))?.is_some() {
            continue;
        }
        let data: Vec<DocumentRecord> = read(&round.path(&format!("datasets/{name}.jsonl")))?;
        let one = Adapter { work, name, round, target: &target, files: round.training(name) };
        one.train(&model, &weights, &encoder, &data)?;
    }
    Ok(())
}

/// One adapter in training.
struct Adapter<'a> {
    work: &'a Workplace,
    name: &'a str,
    round: &'a Round,
    target: &'a Path,
    files: std::path::PathBuf,
}

impl Adapter<'_> {
    fn train(&self, model: &ModelConfig, weights: &Weights, encoder: &Encoder, data: &[DocumentRecord]) -> Result<(), LearnError> {
        let settings = &self.work.task.settings.train;
        let failed = LearnError::train(self.name);
        let activated_by = self.activated_by(data);
        let (mut documents, mut validation) = (Vec::new(), Vec::new());
        for record in data {
            let encoded = self.encode(encoder, record, activated_by.is_some())?;
            if record.validation { validation.extend(encoded) } else { documents.extend(encoded) }
        }
        if documents.is_empty() {
            return Err(LearnError::TooFew {
                what: "there is no document to train on",
                found: format!("{} in `datasets/{}.jsonl`, all of them kept for validation", data.len(), self.name),
                fix: "raise `instruct.questions`, or lower `differentiate.validation`".to_owned(),
            });
        }
        let settings = &Training { sequence: encoder.row(settings.sequence, documents.iter().chain(&validation)), ..settings.clone() };
        let per_epoch = steps_per_epoch(&documents, settings);
        let mut config = config(settings, self.name, model, per_epoch, self.work, &self.files);
        if let (Some(lora), Some(role)) = (&mut config.lora, activated_by) {
            lora.alora_invocation_tokens = Some(encoder.cue(role)?);
        }
        let learning_rate = config.lr;
        let seed = config.seed;
        let mut trainer = Trainer::new(model.clone(), weights.clone(), config).map_err(&failed)?;
        trainer.resume_latest().map_err(&failed)?;
        let mut curve = Curve::open(&self.files.join("curve.jsonl"), trainer.step_count())?;
        let total = per_epoch * settings.epochs;
        let mut source = Cycle::new(documents.clone(), seed);
        let mut outcome = None;
        self.work.view.begin(Stage::Train, &crate::synthesize::part(self.round, self.name), trainer.step_count(), total);
        loop {
            let step = trainer.step_count();
            if step.is_multiple_of(per_epoch) && !curve.validated(step) {
                let loss = trainer.evaluate(&validation).map_err(&failed)?;
                // at step 0 the adapter changes nothing; it stays if no epoch fits the validation data better
                if loss.is_nan() || curve.best().is_none_or(|(_, best)| loss < best) {
                    self.keep(&trainer)?;
                }
                curve.push(CurvePoint {
                    step,
                    total,
                    loss: None,
                    validation: Some(loss).filter(|loss| !loss.is_nan()),
                    lr: None,
                    speed: None,
                })?;
            }
            if step >= total || curve.stagnates(settings.patience, settings.threshold) {
                break;
            }
            self.work.go_on(Stage::Train)?;
            let mut broken = None;
            let report = trainer.run(&mut source, &mut |progress| {
                let told = curve.push(CurvePoint {
                    step: progress.step,
                    total,
                    loss: Some(progress.loss),
                    validation: None,
                    lr: Some(progress.lr),
                    speed: Some(progress.tokens_per_second),
                });
                if let Err(error) = told {
                    broken = Some(error);
                    return ControlFlow::Break(());
                }
                self.work.view.advance(progress.step, &told_progress(progress, curve.best()));
                let over = self.work.stop.is_raised() || progress.step.is_multiple_of(per_epoch);
                if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            if let Some(error) = broken {
                return Err(error);
            }
            outcome = Some(report.map_err(&failed)?);
        }
        let best = curve.best();
        let (steps, last) = (trainer.step_count(), curve.last_loss());
        let trained = Trained {
            adapter: self.name.to_owned(),
            round: self.round.number,
            documents: documents.len(),
            validation_documents: validation.len(),
            steps,
            epochs: steps / per_epoch,
            best_step: best.map_or(steps, |(step, _)| step),
            validation_loss: best.map(|(_, loss)| loss),
            base_loss: curve.base(),
            loss: last.unwrap_or_default(),
            stopped_early: steps < total,
            tokens: outcome.map_or(0, |report| report.tokens),
            tokens_per_second: curve.speed(),
            parameters: trainer.trained_parameters(),
            learning_rate,
        };
        write_json(&self.target.join("training.json"), &trained)?;
        // checkpoints are not needed any more
        let checkpoints = self.files.join("checkpoints");
        std::fs::remove_dir_all(&checkpoints).map_err(LearnError::io("delete", &checkpoints))?;
        let validated = best.map_or_else(|| "no validation".to_owned(), |(_, loss)| format!("validation loss {loss:.4}"));
        let base = curve.base().map_or_else(String::new, |loss| format!(" (base {loss:.4})"));
        self.work.view.end(&format!(
            "{} documents, {} epochs, {validated}{base}, {:.0} tokens/s{}{}",
            documents.len(),
            trained.epochs,
            trained.tokens_per_second,
            if trained.stopped_early { ", stopped early" } else { "" },
            if trained.best_step == 0 { ", no epoch better than the base" } else { "" }
        ));
        Ok(())
    }

    fn keep(&self, trainer: &Trainer) -> Result<(), LearnError> {
        let Some(adapters) = trainer.adapters() else { return Ok(()) };
        LoraWeights::save_for_base(adapters, self.target, SaveDtype::F32, self.work.base_digest()).map_err(LearnError::train(self.name))
    }

    /// The role whose cue activates the adapter. `None` if the adapter always acts: the settings
    /// say so, or it has several roles.
    fn activated_by(&self, data: &[DocumentRecord]) -> Option<Role> {
        let role = data.first().and_then(role_of)?;
        let alone = data.iter().all(|record| role_of(record) == Some(role));
        (alone && self.work.task.settings.train.lora.activated == Some(true)).then_some(role)
    }

    fn encode(&self, encoder: &Encoder, record: &DocumentRecord, activated: bool) -> Result<Vec<Document>, LearnError> {
        let trajectory = history(&record.question, &record.tools, &record.turns, &self.work.library);
        let role = role_of(record);
        let mut inputs = trajectory.steps().filter(|step| step.params.is_some()).map(|step| step.tool.as_str());
        // the parameters are in the order of the steps
        let rejected = segments_before(&trajectory, record.rejected);
        let counts: Vec<bool> = segments(&trajectory)
            .iter()
            .enumerate()
            .map(|(at, segment)| {
                let tool = if segment.role == Some(Role::Tool) { inputs.next() } else { None };
                at >= rejected
                    && segment.role.is_some()
                    && segment.role == role
                    && (record.tool.is_empty() || tool == Some(record.tool.as_str()))
            })
            .collect();
        encoder.documents(&trajectory, &counts, activated)
    }
}

/// The role whose text is a document's target.
fn role_of(record: &DocumentRecord) -> Option<Role> {
    Role::ALL.into_iter().find(|role| role.as_str() == record.role)
}

fn told_progress(progress: &Progress, best: Option<(u64, f64)>) -> String {
    let validation = best.map_or_else(String::new, |(_, loss)| format!(", validation {loss:.4}"));
    format!("loss {:.4}{validation}, {:.0} tokens/s", progress.loss_ema, progress.tokens_per_second)
}

/// The learning rate of the settings, or the default. It is inversely proportional to the hidden
/// size, because the same rate changes the function of a narrow model less.
fn learning_rate(settings: &Training, width: usize) -> f64 {
    settings.learning_rate.unwrap_or(PAPER_LEARNING_RATE * PAPER_WIDTH / width.max(1) as f64)
}

fn config(settings: &Training, name: &str, model: &ModelConfig, per_epoch: u64, work: &Workplace, files: &Path) -> TrainConfig {
    let micro_rows = settings.batch.min(2);
    TrainConfig {
        length: Length::Steps(per_epoch * settings.epochs),
        rows: settings.batch,
        seq_len: settings.sequence,
        micro_rows,
        shards: (settings.batch * settings.accumulation).div_ceil(micro_rows),
        accumulation: settings.accumulation,
        lr: learning_rate(settings, model.hidden_size),
        betas: (0.9, 0.999),
        weight_decay: settings.weight_decay,
        warmup_ratio: settings.warmup_ratio,
        decay: settings.decay,
        min_lr_ratio: 0.0,
        clip: settings.clip,
        seed: work.task.seed ^ stable_hash(name),
        checkpoint_every: CHECKPOINT_EVERY,
        checkpoint_dir: Some(files.join("checkpoints")),
        precision: settings.precision,
        optimizer: Optimizer::AdamW,
        lora: Some(settings.lora.config(&work.model.to_string_lossy())),
        history_bytes: (memory::free() / HISTORY_SHARE).min(HISTORY_BYTES) as usize,
        ..TrainConfig::default()
    }
}

fn steps_per_epoch(documents: &[Document], settings: &Training) -> u64 {
    let used = |document: &Document| {
        let last_target = || document.loss.iter().rposition(|counts| *counts).unwrap_or_default().min(settings.sequence);
        if document.invocations.is_empty() { last_target() } else { document.positions() }
    };
    let tokens: usize = documents.iter().map(used).sum();
    let step = (settings.batch * settings.sequence * settings.accumulation) as f64 * FILL;
    ((tokens as f64 / step).ceil() as u64).max(1)
}

/// The loss curve, with its file.
struct Curve {
    store: Store<CurvePoint>,
    points: Vec<CurvePoint>,
}

impl Curve {
    /// Opens it and deletes the points after the step at which training resumes.
    fn open(path: &Path, step: u64) -> Result<Curve, LearnError> {
        let mut points: Vec<CurvePoint> = read(path)?;
        points.retain(|point| point.step <= step);
        let mut bytes = Vec::new();
        for point in &points {
            bytes.extend(serde_json::to_vec(point).map_err(|error| LearnError::io("write", path)(error.into()))?);
            bytes.push(b'\n');
        }
        write_atomic(path, &bytes)?;
        let (store, points) = Store::open(path)?;
        Ok(Curve { store, points })
    }

    fn push(&mut self, point: CurvePoint) -> Result<(), LearnError> {
        self.points.push(point);
        self.store.push(&point)
    }

    /// Whether there was a validation after this step.
    fn validated(&self, step: u64) -> bool {
        self.points.iter().any(|point| point.step == step && point.loss.is_none())
    }

    fn validations(&self) -> impl Iterator<Item = (u64, f64)> {
        self.points.iter().filter_map(|point| Some((point.step, point.validation?)))
    }

    /// The step with the lowest validation loss.
    fn best(&self) -> Option<(u64, f64)> {
        self.validations().min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The validation loss before training.
    fn base(&self) -> Option<f64> {
        self.points.iter().find(|point| point.step == 0).and_then(|point| point.validation)
    }

    /// Whether none of the last `patience` validations was better than all before it by more than
    /// `threshold`.
    fn stagnates(&self, patience: u64, threshold: f64) -> bool {
        let (mut best, mut since) = (f64::INFINITY, 0);
        for (_, loss) in self.validations() {
            since = if loss < best - threshold { 0 } else { since + 1 };
            best = best.min(loss);
        }
        patience > 0 && since >= patience
    }

    fn last_loss(&self) -> Option<f64> {
        self.points.iter().rev().find_map(|point| point.loss)
    }

    /// The median speed of the steps, in tokens per second.
    fn speed(&self) -> f64 {
        let mut speeds: Vec<f64> = self.points.iter().filter_map(|point| point.speed).collect();
        speeds.sort_by(f64::total_cmp);
        speeds.get(speeds.len() / 2).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsaved_points_are_dropped_and_stagnation_is_detected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("curve.jsonl");
        let mut curve = Curve::open(&path, 0).unwrap();
        let step = |step, loss, validation| CurvePoint { step, total: 9, loss, validation, lr: None, speed: None };
        for (at, validation) in [(0, 3.0), (2, 1.0), (4, 0.5), (6, 0.6), (8, 0.7)] {
            curve.push(step(at, None, Some(validation))).unwrap();
            curve.push(step(at + 1, Some(1.0), None)).unwrap();
        }
        assert_eq!((curve.base(), curve.best()), (Some(3.0), Some((4, 0.5))));
        assert!(curve.stagnates(2, 0.0) && !curve.stagnates(3, 0.0) && !curve.stagnates(0, 0.0));
        assert!(curve.stagnates(3, 0.5) && !curve.stagnates(3, 0.4));
        let dir = tempfile::tempdir().unwrap();
        let mut worse = Curve::open(&dir.path().join("curve.jsonl"), 0).unwrap();
        [(0, 0.2), (2, 0.4), (4, 0.3)].into_iter().for_each(|(at, validation)| worse.push(step(at, None, Some(validation))).unwrap());
        assert!(worse.best() == Some((0, 0.2)) && worse.stagnates(2, 0.0), "the base is the best");
        let curve = Curve::open(&path, 6).unwrap();
        assert!(curve.validated(6) && !curve.validated(8) && !curve.stagnates(2, 0.0));
    }

    #[test]
    fn narrow_models_get_a_higher_learning_rate() {
        let settings = Training::default();
        assert_eq!(learning_rate(&settings, 4096), 1e-4);
        assert!((learning_rate(&settings, 256) - 1.6e-3).abs() < 1e-12);
        assert_eq!(learning_rate(&Training { learning_rate: Some(0.5), ..settings }, 256), 0.5);
    }
}

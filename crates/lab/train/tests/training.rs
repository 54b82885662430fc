//! Whole training runs on tiny models.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::ops::ControlFlow;

use autoact_base::random::SplitMix64;
use autoact_train::{
    Cycle, Decay, Document, DocumentSource, Length, Linear, LoraConfig, LoraWeights, ModelConfig, Optimizer, Precision, Report, SaveDtype,
    TrainConfig, TrainError, Trainer, Weights,
};

/// Activated adapters on documents that come again, of different lengths, with one invocation or two.
fn invoked() -> Cycle {
    let document = |seed| {
        let mut rng = SplitMix64::stream(23, seed);
        let tokens: Vec<u32> = (0..8 + rng.below(20)).map(|_| rng.below(12) as u32).collect();
        let end = tokens.len();
        let invocations = (seed % 2 == 1).then_some(2..5).into_iter().chain(std::iter::once(end - 3..end));
        Document { loss: vec![true; end], tokens, invocations: invocations.collect() }
    };
    Cycle::new((0..40).map(document).collect(), 4)
}

/// A copy task: four random tokens, a separator, the same four tokens. Only the copy is a target.
struct Copying {
    at: u64,
}

impl DocumentSource for Copying {
    fn next(&mut self) -> Document {
        let mut rng = SplitMix64::stream(11, self.at);
        self.at += 1;
        let word: Vec<u32> = (0..4).map(|_| 2 + rng.below(8) as u32).collect();
        let tokens: Vec<u32> = word.iter().copied().chain([1]).chain(word.iter().copied()).collect();
        let loss = (0..tokens.len()).map(|i| i > 4).collect();
        Document { tokens, loss, ..Document::default() }
    }
    fn seek(&mut self, index: u64) {
        self.at = index;
    }
}

fn model() -> ModelConfig {
    ModelConfig { hidden_size: 32, head_dim: 8, vocab_size: 12, ..common::tiny(true) }
}

fn settings(steps: u64) -> TrainConfig {
    TrainConfig {
        length: Length::Steps(steps),
        rows: 16,
        micro_rows: 4,
        seq_len: 32,
        lr: 5e-3,
        weight_decay: 0.01,
        decay: Decay::Linear,
        warmup_ratio: 0.1,
        ..TrainConfig::default()
    }
}

fn trainer(config: TrainConfig) -> Trainer {
    let model = model();
    Trainer::new(model.clone(), Weights::init(&model, 3).unwrap(), config).unwrap()
}

fn run(trainer: &mut Trainer) -> Report {
    trainer.run(&mut Copying { at: 0 }, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn held_out() -> Vec<Document> {
    let mut source = Copying { at: 0 };
    source.seek(1_000_000);
    (0..64).map(|_| source.next()).collect()
}

fn bits(data: &[f32]) -> Vec<u32> {
    data.iter().map(|w| w.to_bits()).collect()
}

#[test]
fn learns_to_copy_with_adamw() {
    let mut t = trainer(settings(300));
    let before = t.evaluate(&held_out()).unwrap();
    run(&mut t);
    let after = t.evaluate(&held_out()).unwrap();
    assert!(before > 2.0 && after < 0.3, "{before} to {after}");
}

#[test]
fn learns_to_copy_with_muon() {
    let mut t = trainer(TrainConfig { optimizer: Optimizer::Muon, ..settings(200) });
    run(&mut t);
    let after = t.evaluate(&held_out()).unwrap();
    assert!(after < 0.3, "{after}");
}

#[test]
fn learns_to_copy_with_bf16_products() {
    for (optimizer, steps) in [(Optimizer::AdamW, 300), (Optimizer::Muon, 200)] {
        let mut t = trainer(TrainConfig { precision: Precision::Bf16, optimizer, ..settings(steps) });
        run(&mut t);
        let after = t.evaluate(&held_out()).unwrap();
        assert!(after < 0.3, "{optimizer:?}: {after}");
    }
}

/// The same training in both formats ends at the same loss: of all weights, and of adapters.
#[test]
fn products_in_bf16_reach_the_loss_of_f32() {
    /// Largest difference, in parts of the loss in f32.
    const NOISE: f64 = 0.05;
    for (lora, steps) in [(None, 120), (Some(lora(0.05)), 120)] {
        let ends = [Precision::F32, Precision::Bf16].map(|precision| {
            let mut t = trainer(TrainConfig { precision, lora: lora.clone(), lr: 1e-2, ..settings(steps) });
            run(&mut t);
            t.evaluate(&held_out()).unwrap()
        });
        let [f32, bf16] = ends;
        println!("adapters {}: f32 {f32:.4}, bf16 {bf16:.4}", lora.is_some());
        assert!((bf16 - f32).abs() < NOISE * f32, "{f32} in f32, {bf16} in bf16");
    }
}

fn lora(dropout: f64) -> LoraConfig {
    let base_model = Some("tiny".to_owned());
    LoraConfig { r: 4, alpha: 8.0, dropout, target_modules: Linear::ALL.to_vec(), base_model, alora_invocation_tokens: None }
}

#[test]
fn adapters_lower_the_loss_and_leave_the_base_alone() {
    let mut t = trainer(TrainConfig { lora: Some(lora(0.05)), lr: 1e-2, ..settings(60) });
    let (before, base) = (t.evaluate(&held_out()).unwrap(), bits(t.weights().data()));
    run(&mut t);
    let after = t.evaluate(&held_out()).unwrap();
    assert!(after < before - 0.2, "{before} to {after}");
    assert_eq!(bits(t.weights().data()), base);
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    for (optimizer, precision) in [(Optimizer::AdamW, Precision::F32), (Optimizer::Muon, Precision::Bf16)] {
        let result = |threads| {
            let mut t = trainer(TrainConfig { threads, optimizer, precision, ..settings(12) });
            run(&mut t);
            bits(t.weights().data())
        };
        let one = result(1);
        assert_eq!(one, result(2));
        assert_eq!(one, result(3));
    }
    let mut t = trainer(settings(12));
    run(&mut t);
    assert_ne!(bits(t.weights().data()), bits(Weights::init(&model(), 3).unwrap().data()));
}

/// Stops a run in the middle, resumes it in a new trainer, and compares the bits.
#[test]
fn histories_that_are_read_once_change_no_bit() {
    for precision in [Precision::F32, Precision::Bf16] {
        let finished = |history_bytes, stop| {
            let mut t = trainer(TrainConfig { precision, lora: Some(lora(0.05)), history_bytes, rows: 6, micro_rows: 2, ..settings(12) });
            let mut losses = Vec::new();
            for _ in 0..2 {
                // the second pass goes on where the first one stopped, in the middle of an epoch
                let report = t.run(&mut invoked(), &mut |progress| {
                    losses.push(progress.loss.to_bits());
                    if progress.step == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                assert!(report.unwrap().steps >= stop);
            }
            let documents: Vec<Document> = std::iter::repeat_with({
                let mut source = invoked();
                move || source.next()
            })
            .take(30)
            .collect();
            let validation = t.evaluate(&documents).unwrap().to_bits();
            (bits(t.adapters().unwrap().data()), losses, validation)
        };
        let anew = finished(0, 5);
        // room for all histories, and for some
        assert_eq!(finished(1 << 20, 5), anew);
        assert_eq!(finished(20_000, 7), anew);
    }
}

fn check_resume(config: TrainConfig) {
    let dir = tempfile::tempdir().unwrap();
    let config = TrainConfig { checkpoint_every: 4, checkpoint_dir: Some(dir.path().join("whole")), ..config };
    let mut whole = trainer(config.clone());
    run(&mut whole);
    let config = TrainConfig { checkpoint_dir: Some(dir.path().join("parts")), ..config };
    let mut first = trainer(config.clone());
    let report = first
        .run(&mut Copying { at: 0 }, &mut |p| {
            if p.step == 9 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert!(report.stopped && report.steps == 9);
    let mut second = trainer(config.clone());
    assert_eq!(second.resume_latest().unwrap(), Some(9));
    let report = run(&mut second);
    assert_eq!((report.steps, report.stopped), (20, false));
    let trained = |t: &Trainer| bits(t.adapters().map_or(t.weights().data(), |a| a.data()));
    assert_eq!(trained(&second), trained(&whole));
    // and from an older, regular checkpoint
    let mut third = trainer(config.clone());
    let older = config.checkpoint_dir.unwrap().join("checkpoint-00000016.safetensors");
    third.resume(&older).unwrap();
    run(&mut third);
    assert_eq!(trained(&third), trained(&whole));
}

#[test]
fn resumed_training_equals_uninterrupted_training() {
    check_resume(settings(20));
    check_resume(TrainConfig { optimizer: Optimizer::Muon, ..settings(20) });
    check_resume(TrainConfig { lora: Some(lora(0.1)), accumulation: 2, ..settings(20) });
    check_resume(TrainConfig { lora: Some(lora(0.1)), precision: Precision::Bf16, ..settings(20) });
}

#[test]
fn checkpoints_of_another_training_and_damaged_ones_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let config = TrainConfig { checkpoint_dir: Some(dir.path().to_owned()), ..settings(2) };
    let mut t = trainer(config.clone());
    run(&mut t);
    let path = dir.path().join("checkpoint-00000002.safetensors");
    let mut other = trainer(TrainConfig { seed: 1, ..config.clone() });
    assert!(matches!(other.resume(&path), Err(TrainError::Format { .. })));
    if Precision::Bf16.in_use() == Precision::Bf16 {
        let mut other = trainer(TrainConfig { precision: Precision::Bf16, ..config.clone() });
        assert!(matches!(other.resume(&path), Err(TrainError::Format { .. })));
    }
    let mut other = trainer(TrainConfig { lora: Some(lora(0.0)), ..config });
    assert!(other.resume(&path).is_err());
    let bytes = std::fs::read(&path).unwrap();
    for keep in [0, 7, 100, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..keep]).unwrap();
        assert!(matches!(t.resume(&path), Err(TrainError::Format { .. })), "{keep} bytes");
    }
}

#[test]
fn weights_survive_the_hugging_face_format() {
    let dir = tempfile::tempdir().unwrap();
    for tied in [true, false] {
        let model = common::tiny(tied);
        let weights = Weights::init(&model, 1).unwrap();
        weights.save(dir.path(), &model, SaveDtype::F32).unwrap();
        assert_eq!(ModelConfig::load(dir.path()).unwrap(), model);
        let back = Weights::load(dir.path(), &model).unwrap();
        assert_eq!(bits(back.data()), bits(weights.data()));
        weights.save(dir.path(), &model, SaveDtype::Bf16).unwrap();
        let back = Weights::load(dir.path(), &model).unwrap();
        let close = |(a, b): (&f32, &f32)| (a - b).abs() <= a.abs() / 128.0;
        assert!(back.data().iter().zip(weights.data()).all(close));
    }
}

#[test]
fn unfit_weight_files_are_errors() {
    let dir = tempfile::tempdir().unwrap();
    let model = common::tiny(true);
    let load = |m: &ModelConfig| Weights::load(dir.path(), m);
    assert!(matches!(load(&model), Err(TrainError::Io { .. })));
    Weights::init(&model, 1).unwrap().save(dir.path(), &model, SaveDtype::F32).unwrap();
    let wider = ModelConfig { intermediate_size: 41, ..model };
    assert!(matches!(load(&wider), Err(TrainError::Shape { .. })));
    let untied = common::tiny(false);
    assert!(matches!(load(&untied), Err(TrainError::MissingTensor { name, .. }) if name == "lm_head.weight"));
    let path = dir.path().join("model.safetensors");
    let bytes = std::fs::read(&path).unwrap();
    for keep in [0, 5, 64, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&path, &bytes[..keep]).unwrap();
        assert!(matches!(load(&model), Err(TrainError::Format { .. })), "{keep} bytes");
    }
}

#[test]
fn adapters_survive_the_peft_format() {
    let dir = tempfile::tempdir().unwrap();
    let mut t = trainer(TrainConfig { lora: Some(lora(0.05)), ..settings(3) });
    run(&mut t);
    let adapters = t.adapters().unwrap();
    adapters.save(dir.path(), SaveDtype::F32).unwrap();
    let back = LoraWeights::load(dir.path(), &model()).unwrap();
    assert_eq!(back.config(), adapters.config());
    assert_eq!(bits(back.data()), bits(adapters.data()));
    let names: Vec<&str> = back.tensors().iter().map(|t| t.name.as_str()).collect();
    assert!(names.contains(&"base_model.model.model.layers.1.self_attn.q_proj.lora_A.weight"));
    assert!(names.contains(&"base_model.model.model.layers.0.mlp.down_proj.lora_B.weight"));
    let json = std::fs::read_to_string(dir.path().join("adapter_config.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["peft_type"], "LORA");
    assert_eq!(json["lora_alpha"], 8);
    assert_eq!(json["target_modules"][6], "down_proj");
}

#[test]
fn an_adapter_names_its_base_in_the_same_bytes_each_time() {
    let dir = tempfile::tempdir().unwrap();
    let adapters = LoraWeights::init(&model(), &lora(0.0), 1).unwrap();
    let digest = "a".repeat(64);
    let path = dir.path().join("adapter_model.safetensors");
    let mut saved = Vec::new();
    for _ in 0..8 {
        adapters.save_for_base(dir.path(), SaveDtype::F32, &digest).unwrap();
        saved.push(std::fs::read(&path).unwrap());
    }
    assert!(saved.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(saved[0].windows(5).filter(|w| *w == b"\"pt\"}").count(), 1);
    let header = String::from_utf8_lossy(&saved[0][8..200]).into_owned();
    assert!(header.starts_with(&format!("{{\"__metadata__\":{{\"autoact.base_sha256\":\"{digest}\",\"format\":\"pt\"}},")), "{header}");
    let back = LoraWeights::load(dir.path(), &model()).unwrap();
    assert_eq!(bits(back.data()), bits(adapters.data()));
}

#[test]
fn bad_settings_are_listed_together() {
    let config = TrainConfig { rows: 0, lr: f64::NAN, checkpoint_every: 5, ..TrainConfig::default() };
    let Err(TrainError::Config(text)) = config.validate() else { panic!("accepted") };
    for part in ["`rows`", "`lr`", "`checkpoint_every`"] {
        assert!(text.contains(part), "{text}");
    }
}

/// A source without targets.
struct Hopeless;

impl DocumentSource for Hopeless {
    fn next(&mut self) -> Document {
        Document { tokens: vec![1, 2], loss: vec![false; 2], ..Document::default() }
    }
    fn seek(&mut self, _: u64) {}
}

#[test]
fn a_source_without_targets_is_an_error_not_a_hang() {
    let mut t = trainer(settings(2));
    let result = t.run(&mut Hopeless, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(result, Err(TrainError::Document { .. })));
}

#[test]
fn a_deeper_model_begins_with_the_same_function() {
    let shallow = ModelConfig { num_hidden_layers: 3, ..model() };
    let deep = ModelConfig { num_hidden_layers: 5, ..model() };
    let weights = Weights::init(&shallow, 5).unwrap();
    let deepened = weights.clone().deepened(&shallow, &deep).unwrap();
    let loss = |model: &ModelConfig, weights: Weights| {
        Trainer::new(model.clone(), weights, settings(20)).unwrap().evaluate(&held_out()).unwrap().to_bits()
    };
    assert_eq!(loss(&deep, deepened.clone()), loss(&shallow, weights.clone()));
    // it can be trained
    let mut trainer = Trainer::new(deep.clone(), deepened, settings(20)).unwrap();
    let before = trainer.evaluate(&held_out()).unwrap();
    run(&mut trainer);
    assert!(trainer.evaluate(&held_out()).unwrap() < before);
    // nothing but layers can be added
    let wide = ModelConfig { hidden_size: 64, ..deep };
    assert!(matches!(weights.clone().deepened(&shallow, &wide), Err(TrainError::Config(_))));
    assert!(matches!(weights.deepened(&deep, &shallow), Err(TrainError::Config(_))));
}

//! Adapters that this project trained, in transformers + PEFT and here: `tests/golden/README.md`
//! says what PEFT computed.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use autoact_lora::Adapter;
use autoact_model::{
    Backend, Engine, EngineOptions, Format, GenerateRequest, Generated, Item, Logits, ModelDir, Scratch, Team, Transformer,
};
use autoact_train::{Document, LoraWeights, ModelConfig, TrainConfig, Trainer, Weights};
use serde::Deserialize;

/// Largest difference of a log-probability. Both sides compute in f32, in another order.
const TOLERANCE: f64 = 2e-4;

#[derive(Deserialize)]
struct Golden {
    base_sha256: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    adapter: Option<String>,
    /// The token from which on the adapter acts.
    adapter_from: usize,
    prompt: String,
    prompt_tokens: Vec<u32>,
    text: String,
    tokens: Vec<u32>,
    logprobs: Vec<f64>,
}

impl Case {
    fn all_tokens(&self) -> Vec<u32> {
        self.prompt_tokens.iter().chain(&self.tokens).copied().collect()
    }

    /// Compares the log-probability that `found` gives the token at a place of
    /// [`all_tokens`](Self::all_tokens).
    fn check(&self, mut found: impl FnMut(usize) -> f64) {
        for (index, expected) in self.logprobs.iter().enumerate() {
            let found = found(self.prompt_tokens.len() + index);
            let gap = (found - expected).abs();
            assert!(gap <= TOLERANCE, "{:?}, token {index}: {found} here, {expected} in PEFT", self.adapter);
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn stem() -> PathBuf {
    root().join("models/stem")
}

/// The bundled adapters are activated ones; those beside the figures always act.
fn adapter(name: &str) -> PathBuf {
    match name.strip_prefix("activated/") {
        Some(bundled) => stem().join("adapters").join(bundled),
        None => root().join("tests/golden/stem/adapters").join(name),
    }
}

fn golden() -> Golden {
    let text = std::fs::read_to_string(root().join("tests/golden/stem/golden.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn engine(cases: &[Case]) -> Engine {
    // the reference computed in f32; the files are bf16
    let options = EngineOptions { threads: 1, weights: Some(Format::F32), ..EngineOptions::default() };
    let engine = Engine::start(&ModelDir::open(stem()).unwrap(), options).unwrap();
    for name in cases.iter().filter_map(|case| case.adapter.as_deref()) {
        engine.load_adapter(name, adapter(name)).unwrap();
    }
    engine
}

async fn continued(engine: &Engine, case: &Case) -> Generated {
    let request =
        GenerateRequest { adapter: case.adapter.clone(), max_tokens: case.tokens.len(), ..GenerateRequest::new(case.prompt.clone()) };
    engine.generate(request).unwrap().finish().await.unwrap()
}

#[tokio::test]
async fn the_engine_continues_as_peft_does() {
    let Golden { base_sha256, cases } = golden();
    let engine = engine(&cases);
    assert_eq!(engine.info().digest, base_sha256, "models/stem has changed: run tests/golden/stem.py");
    for case in &cases {
        let found = continued(&engine, case).await;
        let name = case.adapter.as_deref().unwrap_or("the base");
        assert_eq!(engine.tokenizer().encode(&case.prompt, None).unwrap(), case.prompt_tokens, "{name}");
        assert_eq!(found.text, case.text, "{name}");
    }
}

/// Requests of several adapters at once must not mix: the same texts as alone.
#[tokio::test]
async fn all_at_once_the_engine_continues_as_peft_does() {
    let cases = golden().cases;
    let engine = engine(&cases);
    let found = futures::future::join_all(cases.iter().map(|case| continued(&engine, case))).await;
    for (case, found) in cases.iter().zip(found) {
        assert_eq!(found.text, case.text, "{:?}", case.adapter);
    }
}

#[test]
fn the_model_gives_every_token_the_probability_that_peft_gives_it() {
    let dir = ModelDir::open(stem()).unwrap();
    let model = Transformer::load(&dir, Some(Format::F32)).unwrap();
    let team = Team::new(1).unwrap();
    for case in golden().cases {
        let bound = case.adapter.as_deref().map(|name| model.bind(&Adapter::load(adapter(name)).unwrap(), None).unwrap());
        let tokens = case.all_tokens();
        let mut cache = model.new_cache();
        let item =
            Item { tokens: &tokens, cache: &mut cache, adapter: bound.as_ref(), adapter_from: case.adapter_from, logits: Logits::All };
        let mut scratch = Scratch::default();
        let rows = model.forward(&team, &mut [item], &mut scratch);
        case.check(|at| log_probability(rows, &tokens, at));
    }
}

/// Of the token at `at`, by the logits of all tokens.
fn log_probability(rows: &[f32], tokens: &[u32], at: usize) -> f64 {
    let vocabulary = rows.len() / tokens.len();
    let row = &rows[(at - 1) * vocabulary..at * vocabulary];
    let sum: f64 = row.iter().map(|logit| f64::from(*logit).exp()).sum();
    f64::from(row[tokens[at] as usize]) - sum.ln()
}

/// Activated LoRA: what is trained with an adapter from a token on is what is served with it from
/// there on.
#[test]
fn trainer_and_model_agree_on_an_adapter_that_acts_from_a_token_on() {
    let model = Transformer::load(&ModelDir::open(stem()).unwrap(), Some(Format::F32)).unwrap();
    let case = golden().cases.into_iter().find(|case| case.adapter.as_deref() == Some("plan")).unwrap();
    let name = case.adapter.as_deref().unwrap();
    let bound = model.bind(&Adapter::load(adapter(name)).unwrap(), None).unwrap();
    let mut trainer = trainer(Some(name));
    let tokens = case.all_tokens();
    let (first, end) = (case.prompt_tokens.len(), tokens.len());
    let mut served = Vec::new();
    for adapter_from in [0, first - 12, first - 1] {
        let mut cache = model.new_cache();
        let item = Item { tokens: &tokens, cache: &mut cache, adapter: Some(&bound), adapter_from, logits: Logits::All };
        let mut scratch = Scratch::default();
        let rows = model.forward(&Team::new(1).unwrap(), &mut [item], &mut scratch);
        let found: Vec<f64> = (first..end).map(|at| log_probability(rows, &tokens, at)).collect();
        for (at, found) in (first..end).zip(&found) {
            let loss = (0..end).map(|token| token == at).collect();
            let invocations = if adapter_from == 0 { Vec::new() } else { std::iter::once(adapter_from..end).collect() };
            let trained = -trainer.evaluate(&[Document { tokens: tokens.clone(), loss, invocations }]).unwrap();
            assert!((found - trained).abs() <= TOLERANCE, "from {adapter_from}, token {at}: {found} served, {trained} trained");
        }
        served.push(found.iter().sum::<f64>());
    }
    let gap = |a: usize, b: usize| (served[a] - served[b]).abs();
    assert!(gap(0, 1) > 0.01 && gap(1, 2) > 0.01, "where the adapter begins makes no difference: {served:?}");
}

#[test]
fn the_trainer_gives_every_token_the_probability_that_peft_gives_it() {
    let mut trainers: BTreeMap<Option<String>, Trainer> = BTreeMap::new();
    for case in golden().cases {
        let trainer = trainers.entry(case.adapter.clone()).or_insert_with(|| trainer(case.adapter.as_deref()));
        let tokens = case.all_tokens();
        case.check(|at| {
            // One target only, so the mean loss is minus its log-probability.
            let loss = (0..tokens.len()).map(|token| token == at).collect();
            let invocations = if case.adapter_from == 0 { Vec::new() } else { std::iter::once(case.adapter_from..tokens.len()).collect() };
            -trainer.evaluate(&[Document { tokens: tokens.clone(), loss, invocations }]).unwrap()
        });
    }
}

fn trainer(name: Option<&str>) -> Trainer {
    let model = ModelConfig::load(&stem()).unwrap();
    let weights = Weights::load(&stem(), &model).unwrap();
    let config = TrainConfig { rows: 1, micro_rows: 1, shards: 1, seq_len: 512, threads: 1, ..TrainConfig::default() };
    match name {
        Some(name) => {
            let adapters = LoraWeights::load(&adapter(name), &model).unwrap();
            Trainer::with_adapters(model, weights, adapters, config).unwrap()
        }
        None => Trainer::new(model, weights, config).unwrap(),
    }
}

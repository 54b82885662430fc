//! Compares the hand-written forward and backward pass with candle's autograd in f64.
#![allow(clippy::single_range_in_vec_init, clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::collections::HashMap;
use std::ops::Range;

use autoact_base::random::SplitMix64;
use autoact_train::{Document, Linear, LoraConfig, LoraWeights, ModelConfig, Precision, TrainConfig, Trainer, Weights};
use candle_core::{D, DType, Device, Result, Tensor, Var};

/// Maximum difference of a gradient element, relative to the tensor's largest element.
const GRADIENT_TOLERANCE: f64 = 2e-4;
/// Maximum relative difference of the loss.
const LOSS_TOLERANCE: f64 = 2e-6;

/// A Llama in candle, as its definition reads: one document at a time, no packing.
struct Reference {
    config: ModelConfig,
    vars: HashMap<String, Var>,
    lora_scale: f64,
}

impl Reference {
    fn new(config: &ModelConfig, weights: &Weights) -> Self {
        let mut out = Self { config: config.clone(), vars: HashMap::new(), lora_scale: 0.0 };
        for t in weights.layout().tensors() {
            out.add(&t.name, t.shape(), &weights.data()[t.range()]);
        }
        out
    }

    fn add(&mut self, name: &str, shape: Vec<usize>, data: &[f32]) {
        let data: Vec<f64> = data.iter().map(|v| f64::from(*v)).collect();
        let tensor = Tensor::from_vec(data, shape, &Device::Cpu).unwrap();
        self.vars.insert(name.to_owned(), Var::from_tensor(&tensor).unwrap());
    }

    fn adapters(&mut self, lora: &LoraWeights) {
        self.lora_scale = lora.config().alpha / lora.config().r as f64;
        for t in lora.tensors() {
            self.add(&t.name, t.shape(), &lora.data()[t.range()]);
        }
    }

    /// `active` `[T, 1]` is 1 for tokens on which adapters act, else 0.
    fn linear(&self, x: &Tensor, name: &str, active: &Tensor) -> Result<Tensor> {
        let y = x.matmul(&self.vars[&format!("{name}.weight")].t()?)?;
        let Some(a) = self.vars.get(&format!("base_model.model.{name}.lora_A.weight")) else {
            return Ok(y);
        };
        let b = &self.vars[&format!("base_model.model.{name}.lora_B.weight")];
        y + (x.matmul(&a.t()?)?.matmul(&b.t()?)?.broadcast_mul(active)? * self.lora_scale)?
    }

    fn norm(&self, x: &Tensor, name: &str) -> Result<Tensor> {
        let mean = x.sqr()?.mean_keepdim(D::Minus1)?;
        let scale = (mean + self.config.rms_norm_eps)?.sqrt()?.recip()?;
        x.broadcast_mul(&scale)?.broadcast_mul(&self.vars[&format!("{name}.weight")])
    }

    fn rope(&self, x: &Tensor) -> Result<Tensor> {
        let (len, dim) = x.dims2()?;
        let half = dim / 2;
        let angle = |i: usize| {
            let (p, j) = (i / half, i % half);
            p as f64 * self.config.rope_theta.powf(-2.0 * j as f64 / dim as f64)
        };
        let cos: Vec<f64> = (0..len * half).map(|i| angle(i).cos()).collect();
        let sin: Vec<f64> = (0..len * half).map(|i| angle(i).sin()).collect();
        let cos = Tensor::from_vec(cos, (len, half), x.device())?;
        let sin = Tensor::from_vec(sin, (len, half), x.device())?;
        let (a, b) = (x.narrow(1, 0, half)?, x.narrow(1, half, half)?);
        let first = ((&a * &cos)? - (&b * &sin)?)?;
        let second = ((&b * &cos)? + (&a * &sin)?)?;
        Tensor::cat(&[first, second], 1)
    }

    fn log_softmax(x: &Tensor) -> Result<Tensor> {
        let x = x.broadcast_sub(&x.max_keepdim(D::Minus1)?.detach())?;
        x.broadcast_sub(&x.exp()?.sum_keepdim(D::Minus1)?.log()?)
    }

    /// Sum of the losses of one document. Each invocation is computed alone, over its whole
    /// history.
    fn loss(&self, doc: &Document) -> Result<(Tensor, usize)> {
        if doc.invocations.is_empty() {
            return self.loss_from(doc, 0);
        }
        let mut sum = (Tensor::zeros((), DType::F64, &Device::Cpu)?, 0);
        for range in doc.invocations.iter().filter(|range| range.len() > 1) {
            let mut loss = doc.loss[..range.end].to_vec();
            loss[..=range.start].fill(false);
            let alone = Document { tokens: doc.tokens[..range.end].to_vec(), loss, ..Document::default() };
            let (loss, count) = self.loss_from(&alone, range.start)?;
            sum = ((sum.0 + loss)?, sum.1 + count);
        }
        Ok(sum)
    }

    /// Sum of the losses of one document with an adapter that acts from a token on.
    fn loss_from(&self, doc: &Document, adapter_from: usize) -> Result<(Tensor, usize)> {
        let c = &self.config;
        let dev = &Device::Cpu;
        let len = doc.tokens.len() - 1;
        let ids = Tensor::new(&doc.tokens[..len], dev)?;
        let embed = self.vars["model.embed_tokens.weight"].as_tensor();
        let mut x = embed.index_select(&ids, 0)?;
        let mask: Vec<f64> = (0..len * len).map(|i| if i % len > i / len { -1e30 } else { 0.0 }).collect();
        let mask = Tensor::from_vec(mask, (len, len), dev)?;
        let active: Vec<f64> = (0..len).map(|i| f64::from(u8::from(i >= adapter_from))).collect();
        let active = Tensor::from_vec(active, (len, 1), dev)?;
        for layer in 0..c.num_hidden_layers {
            let p = format!("model.layers.{layer}");
            let h = self.norm(&x, &format!("{p}.input_layernorm"))?;
            let q = self.linear(&h, &format!("{p}.self_attn.q_proj"), &active)?;
            let k = self.linear(&h, &format!("{p}.self_attn.k_proj"), &active)?;
            let v = self.linear(&h, &format!("{p}.self_attn.v_proj"), &active)?;
            let mut heads = Vec::new();
            for head in 0..c.num_attention_heads {
                let kv = head / (c.num_attention_heads / c.num_key_value_heads) * c.head_dim;
                let q = self.rope(&q.narrow(1, head * c.head_dim, c.head_dim)?)?;
                let k = self.rope(&k.narrow(1, kv, c.head_dim)?)?;
                let v = v.narrow(1, kv, c.head_dim)?.contiguous()?;
                let scores = (q.matmul(&k.t()?)? / (c.head_dim as f64).sqrt())?;
                let p = Self::log_softmax(&(scores + &mask)?)?.exp()?;
                heads.push(p.matmul(&v)?);
            }
            let att = Tensor::cat(&heads, 1)?;
            x = (x + self.linear(&att, &format!("{p}.self_attn.o_proj"), &active)?)?;
            let h = self.norm(&x, &format!("{p}.post_attention_layernorm"))?;
            let gate = self.linear(&h, &format!("{p}.mlp.gate_proj"), &active)?;
            let up = self.linear(&h, &format!("{p}.mlp.up_proj"), &active)?;
            let silu = (&gate / (gate.neg()?.exp()? + 1.0)?)?;
            x = (x + self.linear(&(silu * up)?, &format!("{p}.mlp.down_proj"), &active)?)?;
        }
        let x = self.norm(&x, "model.norm")?;
        let head = self.vars.get("lm_head.weight").map_or(embed, |h| h.as_tensor());
        let logp = Self::log_softmax(&x.matmul(&head.t()?)?)?;
        let mut pick = vec![0.0f64; len * c.vocab_size];
        let mut count = 0;
        for i in (0..len).filter(|i| doc.loss[i + 1]) {
            pick[i * c.vocab_size + doc.tokens[i + 1] as usize] = -1.0;
            count += 1;
        }
        let pick = Tensor::from_vec(pick, (len, c.vocab_size), dev)?;
        Ok(((logp * pick)?.sum_all()?, count))
    }

    /// Mean loss over all targets, and its gradients.
    fn gradients(&self, docs: &[Document]) -> Result<(f64, HashMap<String, Vec<f64>>)> {
        let mut sum = Tensor::zeros((), DType::F64, &Device::Cpu)?;
        let mut count = 0;
        for doc in docs {
            let (loss, n) = self.loss(doc)?;
            sum = (sum + loss)?;
            count += n;
        }
        let mean = (sum / count as f64)?;
        let store = mean.backward()?;
        let mut out = HashMap::new();
        for (name, var) in &self.vars {
            if let Some(grad) = store.get(var) {
                out.insert(name.clone(), grad.flatten_all()?.to_vec1::<f64>()?);
            }
        }
        Ok((mean.to_scalar::<f64>()?, out))
    }
}

fn compare((loss, grads): (f64, Vec<(String, Vec<f32>)>), (want_loss, want): (f64, HashMap<String, Vec<f64>>)) {
    assert!((loss - want_loss).abs() < LOSS_TOLERANCE * want_loss, "loss {loss}, want {want_loss}");
    for (name, grad) in &grads {
        let want = want.get(name).unwrap_or_else(|| panic!("{name} is unknown to the reference"));
        assert_eq!(grad.len(), want.len(), "{name}");
        let largest = want.iter().fold(0.0f64, |a, b| a.max(b.abs()));
        assert!(largest > 1e-6, "{name}: the reference gradient is zero, which tests nothing");
        for (i, (g, w)) in grad.iter().zip(want).enumerate() {
            let error = (f64::from(*g) - w).abs() / largest;
            assert!(error < GRADIENT_TOLERANCE, "{name}[{i}]: {g} instead of {w} ({error:.1e})");
        }
    }
}

/// Weights large enough that every part of the model influences the loss.
fn loud(config: &ModelConfig, seed: u64) -> Weights {
    let mut weights = Weights::init(config, seed).unwrap();
    let mut rng = SplitMix64::stream(seed, 99);
    for w in weights.data_mut() {
        *w += (rng.normal() * 0.15) as f32;
    }
    weights
}

fn settings(seq_len: usize, shards: usize, lora: Option<LoraConfig>) -> TrainConfig {
    TrainConfig { rows: 4, micro_rows: 2, seq_len, shards, lora, ..TrainConfig::default() }
}

/// Several documents per micro-batch; the longest has more than one tile of queries.
const LENS: [usize; 5] = [150, 9, 33, 70, 2];

#[test]
fn full_model_with_tied_head() {
    let config = common::tiny(true);
    let weights = loud(&config, 1);
    let docs = common::documents(&LENS, config.vocab_size, 2);
    let want = Reference::new(&config, &weights).gradients(&docs).unwrap();
    for shards in [1, 2] {
        let mut trainer = Trainer::new(config.clone(), weights.clone(), settings(150, shards, None)).unwrap();
        compare(trainer.gradients(&docs).unwrap(), want.clone());
        let loss = trainer.evaluate(&docs).unwrap();
        assert!((loss - want.0).abs() < LOSS_TOLERANCE * want.0);
    }
}

#[test]
fn full_model_with_its_own_head() {
    let config = ModelConfig {
        num_attention_heads: 3,
        num_key_value_heads: 3,
        head_dim: 16,
        hidden_size: 32,
        intermediate_size: 48,
        ..common::tiny(false)
    };
    let weights = loud(&config, 3);
    let docs = common::documents(&LENS, config.vocab_size, 4);
    let want = Reference::new(&config, &weights).gradients(&docs).unwrap();
    let mut trainer = Trainer::new(config, weights, settings(150, 2, None)).unwrap();
    compare(trainer.gradients(&docs).unwrap(), want);
}

/// The base model's head width, 32, for which there are faster attention kernels.
#[test]
fn full_model_with_heads_of_32() {
    let config = ModelConfig {
        num_attention_heads: 2,
        num_key_value_heads: 1,
        head_dim: 32,
        hidden_size: 64,
        intermediate_size: 96,
        ..common::tiny(true)
    };
    let weights = loud(&config, 13);
    let docs = common::documents(&[150, 64, 65, 17, 2], config.vocab_size, 14);
    let want = Reference::new(&config, &weights).gradients(&docs).unwrap();
    let mut trainer = Trainer::new(config, weights, settings(150, 2, None)).unwrap();
    compare(trainer.gradients(&docs).unwrap(), want);
}

/// bf16 factors change each gradient a little: the loss, and the direction of every tensor's
/// gradient, must be the reference's.
fn close((loss, grads): (f64, Vec<(String, Vec<f32>)>), (want_loss, want): &(f64, HashMap<String, Vec<f64>>)) {
    const COSINE: f64 = 0.998;
    assert!((loss - want_loss).abs() < 5e-3 * want_loss, "{loss} {want_loss}");
    for (name, grad) in grads {
        let want = &want[&name];
        let dot = |f: &dyn Fn(f64, f64) -> f64| -> f64 { grad.iter().zip(want).map(|(g, w)| f(f64::from(*g), *w)).sum() };
        let cosine = dot(&|g, w| g * w) / (dot(&|g, _| g * g) * dot(&|_, w| w * w)).sqrt();
        assert!(cosine > COSINE, "{name}: {cosine}");
    }
}

#[test]
fn bf16_products_keep_the_direction_of_the_gradients() {
    let config = common::tiny(true);
    let weights = loud(&config, 1);
    let docs = common::documents(&LENS, config.vocab_size, 2);
    let want = Reference::new(&config, &weights).gradients(&docs).unwrap();
    let settings = TrainConfig { precision: Precision::Bf16, ..settings(150, 2, None) };
    let mut trainer = Trainer::new(config, weights, settings).unwrap();
    close(trainer.gradients(&docs).unwrap(), &want);
}

fn check_lora(targets: &[Linear], invocations: impl Fn(usize) -> Vec<Range<usize>>) {
    let config = common::tiny(true);
    let weights = loud(&config, 5);
    let lora = LoraConfig {
        r: 3,
        alpha: 6.0,
        dropout: 0.1, // `gradients` computes without dropout
        target_modules: targets.to_vec(),
        base_model: None,
        alora_invocation_tokens: None,
    };
    let mut adapters = LoraWeights::init(&config, &lora, 6).unwrap();
    let mut rng = SplitMix64::stream(7, 0);
    adapters.data_mut().iter_mut().for_each(|w| *w += (rng.normal() * 0.2) as f32);
    let mut docs = common::documents(&LENS, config.vocab_size, 8);
    docs.iter_mut().for_each(|doc| doc.invocations = invocations(doc.tokens.len()));
    let mut reference = Reference::new(&config, &weights);
    reference.adapters(&adapters);
    let want = reference.gradients(&docs).unwrap();
    let settings = settings(150, 2, Some(lora));
    let trainer = |settings| Trainer::with_adapters(config.clone(), weights.clone(), adapters.clone(), settings).unwrap();
    close(trainer(TrainConfig { precision: Precision::Bf16, ..settings.clone() }).gradients(&docs).unwrap(), &want);
    compare(trainer(settings).gradients(&docs).unwrap(), want);
}

#[test]
fn lora_on_every_linear_layer() {
    check_lora(&Linear::ALL, |_| Vec::new());
}

#[test]
fn lora_on_some_linear_layers() {
    check_lora(&[Linear::Q, Linear::V, Linear::Down], |_| Vec::new());
    check_lora(&[Linear::K, Linear::O, Linear::Up], |_| Vec::new());
}

#[test]
fn activated_lora_acts_from_a_token_on() {
    check_lora(&Linear::ALL, |len| vec![len / 2..len]);
    check_lora(&[Linear::Q, Linear::V], |len| vec![len - 2..len]);
}

/// Invocations of one document read the same history, as the base reads it.
#[test]
fn activated_lora_is_invoked_several_times() {
    check_lora(&Linear::ALL, |len| vec![0..len / 4, len / 4..len / 3, len / 2..len]);
    check_lora(&[Linear::K, Linear::V], |len| if len > 100 { vec![1..4, 66..len - 1] } else { Vec::new() });
}

//! Measures tokens per second on synthetic documents, and the time of each phase.
//!
//! `cargo run -p autoact-train --example train_throughput -- [key=value ...]`, keys as in `main`.

use std::collections::HashMap;
use std::ops::ControlFlow;

use autoact_base::random::SplitMix64;
use autoact_train::{
    Document, DocumentSource, Length, Linear, LoraConfig, ModelConfig, Optimizer, Phase, Precision, TrainConfig, Trainer, Weights,
};

/// Random tokens, 150 to 320 per document, half of them targets.
struct Synthetic {
    at: u64,
    vocab: usize,
    low: usize,
    high: usize,
}

impl DocumentSource for Synthetic {
    fn next(&mut self) -> Document {
        let mut rng = SplitMix64::stream(5, self.at);
        self.at += 1;
        let n = self.low + rng.below(self.high - self.low + 1);
        let tokens = (0..n).map(|_| rng.below(self.vocab) as u32).collect();
        Document { tokens, loss: vec![true; n], ..Document::default() }
    }
    fn seek(&mut self, index: u64) {
        self.at = index;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: HashMap<String, String> =
        std::env::args().skip(1).filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()))).collect();
    let get = |key: &str, default: usize| args.get(key).map_or(Ok(default), |v| v.parse::<usize>()).map_err(|e| format!("{key}: {e}"));
    let heads = get("heads", 6)?;
    let model = ModelConfig {
        hidden_size: get("hidden", 192)?,
        intermediate_size: get("inter", 512)?,
        num_hidden_layers: get("layers", 4)?,
        num_attention_heads: heads,
        num_key_value_heads: get("kv", heads)?,
        head_dim: get("dim", get("hidden", 192)? / heads)?,
        vocab_size: get("vocab", 1536)?,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        max_position_embeddings: 1024,
        tie_word_embeddings: true,
        bos_token_id: Some(0),
        eos_token_id: Some(1),
    };
    let lora = get("lora", 0)?;
    let config = TrainConfig {
        length: Length::Steps(get("steps", 20)? as u64),
        rows: get("rows", 16)?,
        seq_len: get("seq", 320)?,
        micro_rows: get("micro", 2)?,
        shards: get("shards", 2)?,
        threads: get("threads", 0)?,
        optimizer: if get("muon", 0)? == 1 { Optimizer::Muon } else { Optimizer::AdamW },
        precision: if get("bf16", 0)? == 1 { Precision::Bf16 } else { Precision::F32 },
        lora: (lora > 0).then(|| LoraConfig {
            r: lora,
            alpha: 16.0,
            dropout: 0.05,
            target_modules: Linear::ALL.to_vec(),
            base_model: None,
            alora_invocation_tokens: None,
        }),
        ..TrainConfig::default()
    };
    let mut source = Synthetic { at: 0, vocab: model.vocab_size, low: get("low", 150)?, high: get("high", 321)? };
    let weights = Weights::init(&model, 1)?;
    let parameters = weights.data().len();
    let mut trainer = Trainer::new(model, weights, config)?;
    println!("{parameters} parameters, {} trained", trainer.trained_parameters());
    let mut last = std::time::Instant::now();
    let mut tokens = 0;
    let mut best: f64 = 0.0;
    let report = trainer.run(&mut source, &mut |p| {
        let now = std::time::Instant::now();
        let speed = (p.tokens - tokens) as f64 / (now - last).as_secs_f64();
        (last, tokens) = (now, p.tokens);
        best = best.max(speed);
        println!("step {:3}  loss {:.4}  |g| {:.3}  {speed:7.0} tokens/s", p.step, p.loss, p.grad_norm);
        ControlFlow::Continue(())
    })?;
    println!(
        "mean {:.0} tokens/s, best step {best:.0} tokens/s, {:.1}% filled",
        report.tokens as f64 / report.seconds,
        100.0 * report.data.positions as f64 / report.data.capacity as f64
    );
    let timings = trainer.timings();
    for phase in Phase::ALL {
        let time = timings.get(phase).as_secs_f64();
        let per_step = 1e3 * time / report.steps as f64;
        println!("{:18} {per_step:8.2} ms/step", format!("{phase:?}"));
    }
    Ok(())
}

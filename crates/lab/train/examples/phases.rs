//! Where the time of a training step goes:
//! `cargo run --release -p autoact-train --example phases -- [SHAPE] [STEPS] [SEQ] [RANK] [THREADS]`.
//!
//! It trains adapters of `RANK` (0: all weights) on random documents of a third to all of `SEQ`
//! tokens, whose last quarter is the target, in f32 and in bf16. `SHAPE` is `stem` (the bundled
//! model's) or `smollm` (SmolLM-135M's, with 6 of its 30 layers). The shares are of the workers'
//! time.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::ops::ControlFlow;

use autoact_base::random::SplitMix64;
use autoact_train::{Cycle, Document, Length, Linear, LoraConfig, ModelConfig, Phase, Precision, TrainConfig, Trainer, Weights};

/// Threads if none are named, and rows of a step.
const THREADS: usize = 2;
const ROWS: usize = 8;
/// Different documents.
const DOCUMENTS: usize = 256;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let name = arguments.first().map_or("stem", String::as_str);
    let model = shape(name).ok_or("the shape is `stem` or `smollm`")?;
    let (steps, seq_len, rank, threads) = (number(1, 12)?, number(2, 320)?, number(3, 16)?, number(4, THREADS)?);
    println!("{}, {threads} threads", autoact_train::instruction_set());
    for precision in [Precision::F32, Precision::Bf16] {
        measure(name, &model, precision, steps as u64, (seq_len, rank, threads))?;
    }
    Ok(())
}

fn shape(name: &str) -> Option<ModelConfig> {
    let stem = ModelConfig {
        hidden_size: 256,
        intermediate_size: 704,
        num_hidden_layers: 7,
        num_attention_heads: 8,
        num_key_value_heads: 8,
        head_dim: 32,
        vocab_size: 1536,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        max_position_embeddings: 2048,
        tie_word_embeddings: true,
        bos_token_id: None,
        eos_token_id: Some(0),
    };
    if name == "stem" {
        return Some(stem);
    }
    let smollm = ModelConfig {
        hidden_size: 576,
        intermediate_size: 1536,
        num_hidden_layers: 6,
        num_attention_heads: 9,
        num_key_value_heads: 3,
        head_dim: 64,
        vocab_size: 49_152,
        ..stem
    };
    (name == "smollm").then_some(smollm)
}

fn documents(vocab: usize, seq_len: usize) -> Vec<Document> {
    let mut rng = SplitMix64::stream(1, 0);
    let document = |_| {
        let len = seq_len / 3 + rng.below(seq_len - seq_len / 3) + 1;
        let tokens = (0..len).map(|_| rng.below(vocab) as u32).collect();
        Document { tokens, loss: (0..len).map(|at| at >= len - len / 4).collect(), ..Document::default() }
    };
    (0..DOCUMENTS).map(document).collect()
}

fn measure(
    name: &str,
    model: &ModelConfig,
    precision: Precision,
    steps: u64,
    (seq_len, rank, threads): (usize, usize, usize),
) -> Result<(), Box<dyn Error>> {
    let lora = (rank > 0).then(|| LoraConfig {
        r: rank,
        alpha: 2.0 * rank as f64,
        dropout: 0.05,
        target_modules: Linear::ALL.to_vec(),
        base_model: None,
        alora_invocation_tokens: None,
    });
    let config = TrainConfig {
        length: Length::Steps(steps),
        rows: ROWS,
        seq_len,
        micro_rows: 2,
        shards: ROWS / 2,
        threads,
        precision,
        lora,
        ..TrainConfig::default()
    };
    let mut trainer = Trainer::new(model.clone(), Weights::init(model, 1)?, config)?;
    let mut source = Cycle::new(documents(model.vocab_size, seq_len), 2);
    let report = trainer.run(&mut source, &mut |_| ControlFlow::Continue(()))?;
    let timings = trainer.timings();
    let total: f64 = Phase::ALL.iter().map(|phase| timings.get(*phase).as_secs_f64()).sum();
    println!("{name} {precision:?}, rank {rank}: {:.0} tokens/s", report.tokens as f64 / report.seconds);
    for phase in Phase::ALL {
        println!("  {:>5.1}% {phase:?}", 100.0 * timings.get(phase).as_secs_f64() / total);
    }
    Ok(())
}

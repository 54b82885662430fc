//! What a training of activated adapters gains where the base reads each history once:
//! `cargo run --release -p autoact-train --example histories -- [MODEL] [TOKENS] [DOCUMENTS] [EPOCHS]`.
//!
//! It trains on random documents of 320 to 480 tokens with three invocations of `TOKENS` each, the
//! last at the end: with 12 as a Tool-Agent's documents are, with 28 as a Plan-Agent's. Trainings
//! that read histories in every epoch and such that keep them alternate. The adapters are compared.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use autoact_base::random::SplitMix64;
use autoact_train::{Cycle, Document, Length, Linear, LoraConfig, ModelConfig, Precision, TrainConfig, Trainer, Weights};

/// Rows of a step, and tokens of a row.
const ROWS: usize = 8;
const SEQ_LEN: usize = 704;
/// Invocations of a document.
const INVOCATIONS: usize = 3;
/// Trainings of each kind.
const PAIRS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, usual: usize| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let directory = Path::new(arguments.first().map_or("models/stem", String::as_str));
    let (tokens, count, epochs) = (number(1, 28)?, number(2, 64)?, number(3, 5)?);
    let model = ModelConfig::load(directory)?;
    let weights = Weights::load(directory, &model)?;
    let documents: Vec<Document> = (0..count).map(|at| document(at as u64, tokens, model.vocab_size)).collect();
    let positions: usize = documents.iter().map(Document::positions).sum();
    let steps = (epochs * positions).div_ceil(ROWS * SEQ_LEN);
    println!("{}, {count} documents, {epochs} epochs", autoact_train::instruction_set());
    let mut seconds = [0.0; 2];
    let mut adapters = Vec::new();
    for _ in 0..PAIRS {
        for (seconds, history_bytes) in seconds.iter_mut().zip([0, 4 << 30]) {
            let config = TrainConfig { length: Length::Steps(steps as u64), history_bytes, ..settings() };
            let mut trainer = Trainer::new(model.clone(), weights.clone(), config)?;
            let started = Instant::now();
            trainer.run(&mut Cycle::new(documents.clone(), 2), &mut |_| ControlFlow::Continue(()))?;
            *seconds += started.elapsed().as_secs_f64();
            adapters.extend(trainer.adapters().map(|adapters| adapters.data().to_vec()));
        }
    }
    let equal = adapters.windows(2).all(|pair| pair[0].iter().zip(&pair[1]).all(|(a, b)| a.to_bits() == b.to_bits()));
    let [anew, kept] = seconds.map(|all| all / PAIRS as f64);
    println!("read in every epoch {anew:.1} s, read once {kept:.1} s, ratio {:.2}; adapters equal: {equal}", anew / kept);
    Ok(())
}

fn settings() -> TrainConfig {
    let lora = LoraConfig {
        r: 16,
        alpha: 32.0,
        dropout: 0.05,
        target_modules: Linear::ALL.to_vec(),
        base_model: None,
        alora_invocation_tokens: None,
    };
    TrainConfig {
        rows: ROWS,
        seq_len: SEQ_LEN,
        micro_rows: 2,
        shards: ROWS / 2,
        precision: Precision::Bf16,
        lora: Some(lora),
        ..TrainConfig::default()
    }
}

fn document(seed: u64, tokens: usize, vocab: usize) -> Document {
    let mut rng = SplitMix64::stream(1, seed);
    let len = 320 + rng.below(161);
    let end = |at: usize| len * at / INVOCATIONS;
    Document {
        tokens: (0..len).map(|_| rng.below(vocab) as u32).collect(),
        loss: vec![true; len],
        invocations: (1..=INVOCATIONS).map(|at| end(at).saturating_sub(tokens).max(end(at - 1))..end(at)).collect(),
    }
}

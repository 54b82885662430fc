//! LoRA training on given documents, as `autoact learn` does it.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use autoact_train::{Document, DocumentSource, Length, Linear, LoraConfig, ModelConfig, Precision, TrainConfig, Trainer, Weights};
use serde::Deserialize;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A Hugging Face model directory.
    #[arg(long)]
    model: PathBuf,
    /// A JSON list of documents: `tokens`, and `loss_from`, the first token that is a target.
    #[arg(long)]
    documents: PathBuf,
    /// The adapters' rank; alpha is twice that.
    #[arg(long)]
    rank: usize,
    /// The layers that get one, by their names in `adapter_config.json`.
    #[arg(long, value_delimiter = ',')]
    modules: Vec<String>,
    /// Rows in a batch.
    #[arg(long)]
    rows: usize,
    /// Tokens in a row.
    #[arg(long)]
    seq: usize,
    /// Optimiser steps.
    #[arg(long)]
    steps: u64,
    /// Factors of the matrix products in bfloat16 instead of f32.
    #[arg(long)]
    bf16: bool,
    /// Worker threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
}

#[derive(Deserialize)]
struct Given {
    tokens: Vec<u32>,
    loss_from: usize,
}

/// The documents as they were given, again and again.
struct InOrder {
    documents: Vec<Document>,
    at: u64,
}

impl DocumentSource for InOrder {
    fn next(&mut self) -> Document {
        let count = self.documents.len().max(1) as u64;
        let document = self.documents.get((self.at % count) as usize).cloned();
        self.at += 1;
        document.unwrap_or_default()
    }

    fn seek(&mut self, index: u64) {
        self.at = index;
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&args.documents).with_context(|| format!("read `{}`", args.documents.display()))?;
    let given: Vec<Given> = serde_json::from_str(&text)?;
    let document =
        |d: Given| Document { loss: (0..d.tokens.len()).map(|at| at >= d.loss_from).collect(), tokens: d.tokens, ..Document::default() };
    let mut source = InOrder { documents: given.into_iter().map(document).collect(), at: 0 };
    let model = ModelConfig::load(&args.model)?;
    let weights = Weights::load(&args.model, &model)?;
    let mut trainer = Trainer::new(model, weights, config(args)?)?;
    let trained = trainer.trained_parameters();
    let (mut last, mut tokens) = (Instant::now(), 0);
    let mut out = std::io::stdout().lock();
    trainer.run(&mut source, &mut |step| {
        let now = Instant::now();
        let line = serde_json::json!({
            "seconds": (now - last).as_secs_f64(), "tokens": step.tokens - tokens, "loss": step.loss, "trained": trained,
        });
        (last, tokens) = (now, step.tokens);
        match writeln!(out, "{line}") {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()), // nobody reads any more
        }
    })?;
    Ok(())
}

fn config(args: &Args) -> anyhow::Result<TrainConfig> {
    let module = |name: &String| {
        Linear::ALL.into_iter().find(|linear| linear.name() == name).with_context(|| format!("no linear layer is called `{name}`"))
    };
    let lora = LoraConfig {
        r: args.rank,
        alpha: 2.0 * args.rank as f64,
        dropout: 0.0,
        target_modules: args.modules.iter().map(module).collect::<anyhow::Result<_>>()?,
        base_model: None,
        alora_invocation_tokens: None,
    };
    let micro_rows = args.rows.min(2);
    Ok(TrainConfig {
        length: Length::Steps(args.steps),
        rows: args.rows,
        seq_len: args.seq,
        micro_rows,
        shards: args.rows.div_ceil(micro_rows),
        threads: args.threads,
        lr: 1e-3,
        betas: (0.9, 0.999),
        weight_decay: 0.01,
        precision: if args.bf16 { Precision::Bf16 } else { Precision::F32 },
        lora: Some(lora),
        ..TrainConfig::default()
    })
}

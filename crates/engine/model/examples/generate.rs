//! Completes a prompt and prints the speed.
//!
//! ```sh
//! cargo run --release -p autoact-model --example generate -- --model models/stem --prompt "Question: " --repeat 3
//! ```

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use autoact_model::{Backend, Engine, EngineOptions, GenerateEvent, GenerateRequest, Generated, Grammar, ModelDir, Sampling};
use clap::Parser;

#[derive(Parser)]
#[command(about)]
struct Args {
    /// A Hugging Face model directory.
    #[arg(long)]
    model: PathBuf,
    /// A PEFT adapter.
    #[arg(long, value_name = "NAME=DIR")]
    adapter: Option<String>,
    /// The prompt.
    #[arg(long)]
    prompt: String,
    /// A regular expression that the completion must match.
    #[arg(long)]
    regex: Option<String>,
    /// Maximum number of generated tokens.
    #[arg(long, default_value_t = 128)]
    max_tokens: usize,
    /// Sampling temperature; 0: greedy.
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Number of compute threads; default: all cores.
    #[arg(long)]
    threads: Option<usize>,
    /// Number of runs of the same prompt. With several, the prefix cache is off, so that each
    /// computes the whole prompt.
    #[arg(long, default_value_t = 1)]
    repeat: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut options = EngineOptions::default();
    options.threads = args.threads.unwrap_or(options.threads);
    if args.repeat > 1 {
        options.cache_bytes = 0;
    }
    let engine = Engine::start(&ModelDir::open(&args.model)?, options)?;
    let adapter = args.adapter.as_deref().map(|spec| spec.split_once('=').context("--adapter wants NAME=DIR")).transpose()?;
    if let Some((name, dir)) = adapter {
        engine.load_adapter(name, dir)?;
    }
    for run in 0..args.repeat {
        let mut stream = engine.generate(GenerateRequest {
            adapter: adapter.map(|(name, _)| name.to_owned()),
            sampling: Sampling::with_temperature(args.temperature, args.seed),
            max_tokens: args.max_tokens,
            grammar: args.regex.clone().map(Grammar::Regex),
            ..GenerateRequest::new(&args.prompt)
        })?;
        while let Some(event) = stream.blocking_next() {
            match event? {
                GenerateEvent::Token { text } if run == 0 => {
                    print!("{text}");
                    std::io::stdout().flush()?;
                }
                GenerateEvent::Token { .. } => {}
                GenerateEvent::Done(done) => report(&done),
            }
        }
    }
    Ok(())
}

fn report(done: &Generated) {
    let (prompt, decoded) = (done.prompt_tokens - done.cached_prompt_tokens, done.completion_tokens.saturating_sub(1));
    let rate = |tokens: usize, time: std::time::Duration| tokens as f64 / time.as_secs_f64().max(1e-9);
    eprintln!("\nprefill: {prompt} tokens in {:?}, {:.0} tokens/s", done.prefill, rate(prompt, done.prefill));
    eprintln!("decode:  {decoded} tokens in {:?}, {:.0} tokens/s ({:?})", done.decode, rate(decoded, done.decode), done.finish);
}

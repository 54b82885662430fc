//! Completes a prompt and prints the speed.
//!
//! ```sh
//! cargo run --release -p autoact-model --example generate -- --model models/stem --prompt "Question: " --repeat 3
//! ```

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use autoact_model::{
    Backend, Engine, EngineOptions, GenerateEvent, GenerateRequest, Generated, Grammar, KvFormat, ModelDir, Sampling, Scores,
};
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
    /// Number format of keys and values; default: `f32` for weights in `f32`, else `bf16`.
    #[arg(long)]
    kv: Option<KvFormat>,
    /// Number of runs of the same prompt. With several, the prefix cache is off, so that each
    /// computes the whole prompt.
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Scores every token, and prints what that costs: each run is followed by one with scores, and
    /// without drafts both make as many passes.
    #[arg(long)]
    scores: bool,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let mut options = EngineOptions { kv: args.kv, ..EngineOptions::default() };
    options.threads = args.threads.unwrap_or(options.threads);
    if args.repeat > 1 {
        options.cache_bytes = 0;
    }
    if args.scores {
        options.draft = 0;
    }
    let engine = Engine::start(&ModelDir::open(&args.model)?, options)?;
    eprintln!("weights: {}, keys and values: {}, {} bytes a token", engine.weights(), engine.kv(), engine.token_bytes());
    let adapter = args.adapter.as_deref().map(|spec| spec.split_once('=').context("--adapter wants NAME=DIR")).transpose()?;
    if let Some((name, dir)) = adapter {
        engine.load_adapter(name, dir)?;
    }
    let mut times = [Vec::new(), Vec::new()];
    for run in 0..args.repeat {
        for scored in [false, true].into_iter().take(1 + usize::from(args.scores)) {
            let mut stream = engine.generate(GenerateRequest {
                adapter: adapter.map(|(name, _)| name.to_owned()),
                sampling: Sampling::with_temperature(args.temperature, args.seed),
                max_tokens: args.max_tokens,
                grammar: args.regex.clone().map(Grammar::Regex),
                scores: scored.then(Scores::default),
                ..GenerateRequest::new(&args.prompt)
            })?;
            while let Some(event) = stream.blocking_next() {
                match event? {
                    GenerateEvent::Token { text } if run == 0 && !scored => {
                        print!("{text}");
                        std::io::stdout().flush()?;
                    }
                    GenerateEvent::Token { .. } => {}
                    GenerateEvent::Done(done) => {
                        report(&done);
                        times[usize::from(scored)].push(done.decode.as_secs_f64());
                    }
                }
            }
        }
    }
    if args.scores {
        let [plain, scored] = times.map(median);
        let cost = 100.0 * (scored / plain - 1.0);
        eprintln!("median decode: {:.3} ms, with scores {:.3} ms ({cost:+.2} %)", 1e3 * plain, 1e3 * scored);
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn report(done: &Generated) {
    let (prompt, decoded) = (done.prompt_tokens - done.cached_prompt_tokens, done.completion_tokens.saturating_sub(1));
    let rate = |tokens: usize, time: std::time::Duration| tokens as f64 / time.as_secs_f64().max(1e-9);
    eprintln!("\nprefill: {prompt} tokens in {:?}, {:.0} tokens/s", done.prefill, rate(prompt, done.prefill));
    eprintln!("decode:  {decoded} tokens in {:?}, {:.0} tokens/s ({:?})", done.decode, rate(decoded, done.decode), done.finish);
    if let Some(scores) = &done.scores {
        let (sum, tokens) = (scores.log_prob(), scores.tokens.len());
        eprintln!("scores:  {tokens} tokens, log-probability {sum:.3}, mean {:.3}", sum / tokens.max(1) as f64);
    }
}

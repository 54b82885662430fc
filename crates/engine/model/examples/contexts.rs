//! Speed by length of the context, with keys and values in f32 and in bf16:
//!
//! ```sh
//! cargo run --release -p autoact-model --example contexts -- --model DIR --contexts 512,2048
//! ```
//!
//! Prefill reads the whole context in passes of 128 tokens, decoding one token at its end. The two
//! formats alternate; the figures are medians.

use std::path::PathBuf;
use std::time::Instant;

use autoact_model::{Format, Item, KvCache, KvFormat, Logits, ModelDir, Scratch, Team, Transformer};
use clap::Parser;

#[derive(Parser)]
#[command(about)]
struct Args {
    /// A Hugging Face model directory.
    #[arg(long)]
    model: PathBuf,
    /// Number format of the weights; default: as in the files.
    #[arg(long)]
    weights: Option<Format>,
    /// Number of compute threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Numbers of tokens.
    #[arg(long, value_delimiter = ',', default_value = "512,2048")]
    contexts: Vec<usize>,
    /// Number of rounds.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// Tokens of a pass, as in the engine.
const CHUNK: usize = 128;
/// Decoded tokens in a round.
const DECODED: usize = 16;
const FORMATS: [KvFormat; 2] = [KvFormat::F32, KvFormat::Bf16];

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let dir = ModelDir::open(&args.model)?;
    let load = |kv| Transformer::load(&dir, args.weights).map(|model| model.with_kv(kv));
    let models = [load(KvFormat::F32)?, load(KvFormat::Bf16)?];
    let team = Team::new(args.threads)?;
    let vocabulary = models[0].config().vocab_size as u32;
    println!("weights: {}, threads: {}", models[0].format(), args.threads);
    println!("| context | keys and values | bytes a token | prefill, tokens/s | decode, ms a token |\n| ---: | --- | ---: | ---: | ---: |");
    for context in args.contexts {
        let prompt: Vec<u32> = (0..context as u32).map(|i| (7 * i * i + 13 * i + 1) % vocabulary).collect();
        let mut times = [(); 2].map(|()| (Vec::new(), Vec::new()));
        let mut bytes = [0; 2];
        for _ in 0..args.rounds {
            for (at, model) in models.iter().enumerate() {
                let mut scratch = Scratch::default();
                let mut cache = model.new_cache();
                let mut pass = |tokens: &[u32], cache: &mut KvCache| {
                    let item = Item { tokens, cache, adapter: None, adapter_from: 0, logits: Logits::Last };
                    model.forward(&team, &mut [item], &mut scratch);
                };
                let start = Instant::now();
                prompt.chunks(CHUNK).for_each(|tokens| pass(tokens, &mut cache));
                times[at].0.push(start.elapsed().as_secs_f64() / context as f64);
                bytes[at] = cache.bytes() / context;
                let start = Instant::now();
                (0..DECODED).for_each(|_| pass(&prompt[..1], &mut cache));
                times[at].1.push(start.elapsed().as_secs_f64() / DECODED as f64);
            }
        }
        let [wide, narrow] = times.map(|(prefill, decode)| (median(prefill), median(decode)));
        for ((format, bytes), (prefill, decode)) in FORMATS.iter().zip(bytes).zip([wide, narrow]) {
            println!("| {context} | {format} | {bytes} | {:.0} | {:.2} |", 1.0 / prefill, 1e3 * decode);
        }
        println!("| {context} | ratio | {:.2} | {:.2} | {:.2} |", bytes[0] as f64 / bytes[1] as f64, wide.0 / narrow.0, wide.1 / narrow.1);
    }
    Ok(())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}

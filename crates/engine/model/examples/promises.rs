//! Measures the engine's speed as ratios. The two sides of each ratio alternate within one run.
//!
//! `cargo run --release -p autoact-model --example promises -- MODEL_DIR [--adapter PEFT_DIR] [--threads N] [--repeats N] [--plot FILE.html]`

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use autoact_model::{Backend, Engine, EngineOptions, GenerateEvent, GenerateRequest, Generated, Grammar, ModelDir};
use autoact_plot::{Axis, Page, Plot, Series};
use clap::Parser;

#[derive(Parser)]
#[command(about)]
struct Args {
    /// A Hugging Face directory.
    model: PathBuf,
    /// A PEFT adapter for the model.
    #[arg(long)]
    adapter: Option<PathBuf>,
    /// Number of compute threads.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Number of repetitions; medians are printed.
    #[arg(long, default_value_t = 5)]
    repeats: usize,
    /// Measure only the speed of this number of streams, for a profiler.
    #[arg(long)]
    only: Option<usize>,
    /// Plot the cost of a step into this HTML file.
    #[arg(long)]
    plot: Option<PathBuf>,
    /// Tokens of a measured completion.
    #[arg(long, default_value_t = 64)]
    tokens: usize,
}

fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let dir = ModelDir::open(&args.model)?;
    // Random weights repeat themselves without end, so every draft would be accepted.
    let options = EngineOptions { threads: args.threads, draft: 0, ..EngineOptions::default() };
    let bench = Bench { engine: Engine::start(&dir, options)?, tokens: args.tokens, salt: std::cell::Cell::new(0) };
    println!("{} in {}, {} threads", bench.engine.info().name, bench.engine.weights(), args.threads);
    if let Some(adapter) = &args.adapter {
        bench.engine.load_adapter("adapter", adapter)?;
    }
    if let Some(streams) = args.only {
        for _ in 0..args.repeats {
            println!("{:.0} tokens/s", bench.decode(streams, None, None)?);
        }
        return Ok(());
    }
    bench.decode(1, None, None)?;
    bench.crowds(args.repeats)?;
    if args.adapter.is_some() {
        bench.adapter(args.repeats)?;
    }
    bench.grammar(args.repeats)?;
    bench.gaps(args.repeats)?;
    bench.growth(args.plot.as_deref())
}

struct Bench {
    engine: Engine,
    tokens: usize,
    salt: std::cell::Cell<u64>,
}

impl Bench {
    /// A prompt of at least about `words` tokens that shares no prefix with an earlier one.
    fn prompt(&self, words: usize) -> String {
        let salt = self.salt.get() + 1;
        self.salt.set(salt);
        let word = |i: usize| ["river", "capital", "of", "the", "country", "flows", "into", "a", "sea"][(i + salt as usize) % 9];
        (0..words).fold(format!("{salt}"), |text, i| text + " " + word(i))
    }

    /// A completion of exactly `self.tokens` tokens, as far as random weights allow.
    fn request(&self, adapter: Option<&str>, grammar: Option<Grammar>) -> GenerateRequest {
        GenerateRequest { adapter: adapter.map(str::to_owned), grammar, max_tokens: self.tokens, ..GenerateRequest::new(self.prompt(2)) }
    }

    /// Tokens per second of `streams` concurrent completions, from the end of the first prefill on.
    fn decode(&self, streams: usize, adapter: Option<&str>, grammar: Option<&Grammar>) -> anyhow::Result<f64> {
        let begun = Instant::now();
        let open = (0..streams).map(|_| self.engine.generate(self.request(adapter, grammar.cloned()))).collect::<Result<Vec<_>, _>>()?;
        let done = open.into_iter().map(|s| s.blocking_finish()).collect::<Result<Vec<Generated>, _>>()?;
        let tokens: usize = done.iter().map(|d| d.completion_tokens).sum();
        let first = done.iter().map(|d| d.queue + d.prefill).min().unwrap_or_default();
        Ok((tokens - streams) as f64 / (begun.elapsed() - first).as_secs_f64())
    }

    fn crowds(&self, repeats: usize) -> anyhow::Result<()> {
        let mut speeds = [vec![], vec![], vec![]];
        for _ in 0..repeats {
            for (streams, speeds) in [1, 3, 8].into_iter().zip(&mut speeds) {
                speeds.push(self.decode(streams, None, None)?);
            }
        }
        let [one, three, eight] = speeds.map(median);
        println!(
            "decode, tokens/s: 1 stream {one:.0}, 3 streams {three:.0} ({:.2}x), 8 streams {eight:.0} ({:.2}x)",
            three / one,
            eight / one
        );
        Ok(())
    }

    fn adapter(&self, repeats: usize) -> anyhow::Result<()> {
        let (mut with, mut without) = (vec![], vec![]);
        for _ in 0..repeats {
            without.push(self.decode(1, None, None)?);
            with.push(self.decode(1, Some("adapter"), None)?);
        }
        let (with, without) = (median(with), median(without));
        println!("adapter: {with:.0} tokens/s with, {without:.0} without: {:.1}%", 100.0 * with / without);
        Ok(())
    }

    fn grammar(&self, repeats: usize) -> anyhow::Result<()> {
        let lines = Grammar::Regex(r"(?s:.*)".to_owned());
        let json = Grammar::JsonSchema(serde_json::json!({
            "type": "object", "required": ["thought", "tool", "input"], "additionalProperties": false,
            "properties": { "thought": { "type": "string", "maxLength": 200 }, "tool": { "enum": ["Search", "Retrieve", "Finish"] }, "input": { "type": "string", "maxLength": 60 } },
        }));
        let (mut free, mut held, mut shaped) = (vec![], vec![], vec![]);
        for _ in 0..repeats {
            free.push(self.decode(1, None, None)?);
            held.push(self.decode(1, None, Some(&lines))?);
            shaped.push(self.decode(1, None, Some(&json))?);
        }
        let (free, held, shaped) = (median(free), median(held), median(shaped));
        let part = |v: f64| 100.0 * v / free;
        println!("constrained: free {free:.0} tokens/s, a regular expression {:.1}%, a JSON schema {:.1}%", part(held), part(shaped));
        Ok(())
    }

    /// Gaps between a stream's pieces of text during the prefill of a long prompt.
    fn gaps(&self, repeats: usize) -> anyhow::Result<()> {
        let (mut alone, mut beside) = (vec![], vec![]);
        let most = 2_048.min(self.engine.info().context_length - 64);
        let tokens = self.engine.tokenizer().encode(&self.prompt(2_048), None)?;
        let text = self.engine.tokenizer().decode(&tokens[..tokens.len().min(most)]);
        let long = GenerateRequest { max_tokens: 1, ..GenerateRequest::new(text) };
        let mut prompt_tokens = 0;
        for _ in 0..repeats {
            let endless = GenerateRequest { max_tokens: 1_500, ..self.request(None, Some(Grammar::Regex("[a-z ]{9000}".to_owned()))) };
            let mut stream = self.engine.generate(endless)?;
            let mut last = None;
            let mut reading = None;
            for i in 0.. {
                let event = stream.blocking_next().context("the stream ended")??;
                if !matches!(event, GenerateEvent::Token { .. }) {
                    break;
                }
                let now = Instant::now();
                if let Some(last) = last.replace(now) {
                    let gaps = if reading.is_some() { &mut beside } else { &mut alone };
                    gaps.push((now - last).as_secs_f64());
                }
                if i == 60 {
                    let prompt = format!("{} {}", self.prompt(1), long.prompt).into();
                    let request = GenerateRequest { prompt, ..long.clone() };
                    let mut other = self.engine.generate(request)?;
                    reading = Some(std::thread::spawn(move || {
                        while let Some(event) = other.blocking_next() {
                            if let Ok(GenerateEvent::Done(done)) = event {
                                return done.prompt_tokens;
                            }
                        }
                        0
                    }));
                }
                if reading.as_ref().is_some_and(std::thread::JoinHandle::is_finished) {
                    break;
                }
            }
            prompt_tokens = reading.and_then(|r| r.join().ok()).unwrap_or(0);
        }
        let p99 = |gaps: &[f64]| quantile(gaps.to_vec(), 0.99);
        let (a, b) = (median(alone.clone()), median(beside.clone()));
        println!(
            "gaps of a stream, ms: alone median {:.2} p99 {:.2}; while {prompt_tokens} tokens are read median {:.2} p99 {:.2}: {:.2}x the median alone, {:.2}x its own",
            a * 1e3,
            p99(&alone) * 1e3,
            b * 1e3,
            p99(&beside) * 1e3,
            p99(&beside) / a,
            p99(&beside) / b
        );
        Ok(())
    }

    /// Cost of steps of a trajectory that grows by 80 words per step: tokens and time, with and
    /// without the prefix cache.
    fn growth(&self, plot: Option<&Path>) -> anyhow::Result<()> {
        let mut text = self.prompt(64);
        let (mut kept, mut anew) = (vec![], vec![]);
        println!("step  prompt  new tokens  prefill ms  µs per new token  read anew, ms");
        for step in 1..=16 {
            let request = GenerateRequest { max_tokens: 8, ..GenerateRequest::new(text.clone()) };
            let done = self.engine.generate(request.clone())?.blocking_finish()?;
            self.engine.clear_cache()?;
            let whole = self.engine.generate(request)?.blocking_finish()?;
            anyhow::ensure!(whole.text == done.text && whole.cached_prompt_tokens == 0, "the cache changed a reply");
            let new = done.prompt_tokens - done.cached_prompt_tokens;
            let (time, all) = (ms(done.prefill), ms(whole.prefill));
            println!("{step:4}  {:6}  {new:10}  {time:10.2}  {:16.1}  {all:13.1}", done.prompt_tokens, 1e3 * time / new as f64);
            kept.push((done.prompt_tokens as f64, time));
            anew.push((done.prompt_tokens as f64, all));
            if done.prompt_tokens + 2 * new > self.engine.info().context_length {
                break;
            }
            text = text + &done.text + &self.prompt(80);
        }
        if let Some(path) = plot {
            let mut page = Page::new(&format!("{}: what reading a step's prompt costs", self.engine.info().name));
            let title = "milliseconds of prefill against the prompt's length";
            let lines = [Series::new("prefix kept", kept).bold(), Series::new("read anew", anew)];
            let lines = lines.into_iter().fold(Plot::new(title, Axis::linear("tokens"), Axis::linear("ms")), Plot::with);
            page.push(&lines.svg());
            std::fs::write(path, page.finish()).with_context(|| format!("write `{}`", path.display()))?;
        }
        Ok(())
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(values: Vec<f64>) -> f64 {
    quantile(values, 0.5)
}

fn quantile(mut values: Vec<f64>, q: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = ((values.len() as f64 - 1.0) * q).round() as usize;
    values.get(at).copied().unwrap_or(f64::NAN)
}

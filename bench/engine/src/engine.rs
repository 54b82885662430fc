//! Prompts through [`Engine`], as a service sends them.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use autoact_model::{Backend, Engine, EngineOptions, Format, GenerateRequest, Generated, KvFormat, ModelDir};
use futures::future::try_join_all;
use serde::{Deserialize, Serialize};

/// The name that jobs call the adapter by.
const ADAPTER: &str = "adapter";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A Hugging Face model directory.
    #[arg(long)]
    model: PathBuf,
    /// A PEFT adapter, for the jobs that ask for one.
    #[arg(long)]
    adapter: Option<PathBuf>,
    /// The format that weights are computed in.
    #[arg(long, default_value = "f32")]
    weights: Format,
    /// The format of keys and values; default: `f32` for weights in `f32`, else `bf16`.
    #[arg(long)]
    kv: Option<KvFormat>,
    /// Threads that compute.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Bytes for keys and values of earlier prompts; 0 keeps none.
    #[arg(long)]
    cache_bytes: Option<usize>,
    /// Most tokens of a draft; 0 makes none.
    #[arg(long)]
    draft: Option<usize>,
}

/// Some completions, one after the other or all at once.
#[derive(Deserialize)]
struct Job {
    requests: Vec<Request>,
    #[serde(default)]
    together: bool,
}

#[derive(Deserialize)]
struct Request {
    prompt: String,
    max_tokens: usize,
    #[serde(default)]
    adapter: bool,
}

#[derive(Serialize)]
struct Ready {
    ready: bool,
    load_seconds: f64,
}

/// All times in seconds.
#[derive(Serialize)]
struct Answer {
    wall: f64,
    requests: Vec<Timing>,
}

#[derive(Serialize)]
struct Timing {
    prompt_tokens: usize,
    cached_tokens: usize,
    tokens: usize,
    drafted_tokens: usize,
    accepted_tokens: usize,
    queue: f64,
    prefill: f64,
    decode: f64,
    text: String,
}

impl From<Generated> for Timing {
    fn from(done: Generated) -> Self {
        Self {
            prompt_tokens: done.prompt_tokens,
            cached_tokens: done.cached_prompt_tokens,
            tokens: done.completion_tokens,
            drafted_tokens: done.drafted_tokens,
            accepted_tokens: done.accepted_tokens,
            queue: done.queue.as_secs_f64(),
            prefill: done.prefill.as_secs_f64(),
            decode: done.decode.as_secs_f64(),
            text: done.text,
        }
    }
}

#[tokio::main(flavor = "current_thread")]
pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let start = Instant::now();
    let engine = Engine::start(&ModelDir::open(&args.model)?, options(&args))?;
    if let Some(path) = &args.adapter {
        engine.load_adapter(ADAPTER, path)?;
    }
    tell(&Ready { ready: true, load_seconds: start.elapsed().as_secs_f64() })?;
    for line in std::io::stdin().lock().lines() {
        let job = serde_json::from_str(&line?).context("read a job")?;
        tell(&answer(&engine, job).await?)?;
    }
    Ok(())
}

fn options(args: &Args) -> EngineOptions {
    let default = EngineOptions::default();
    EngineOptions {
        threads: args.threads,
        weights: Some(args.weights),
        kv: args.kv,
        cache_bytes: args.cache_bytes.unwrap_or(default.cache_bytes),
        draft: args.draft.unwrap_or(default.draft),
        ..default
    }
}

async fn answer(engine: &Engine, job: Job) -> anyhow::Result<Answer> {
    let start = Instant::now();
    let done = if job.together {
        try_join_all(job.requests.into_iter().map(|request| complete(engine, request))).await?
    } else {
        let mut done = Vec::new();
        for request in job.requests {
            done.push(complete(engine, request).await?);
        }
        done
    };
    let wall = start.elapsed().as_secs_f64();
    Ok(Answer { wall, requests: done.into_iter().map(Timing::from).collect() })
}

async fn complete(engine: &Engine, request: Request) -> anyhow::Result<Generated> {
    let adapter = request.adapter.then(|| ADAPTER.to_owned());
    let request = GenerateRequest { adapter, max_tokens: request.max_tokens, ..GenerateRequest::new(request.prompt) };
    Ok(engine.generate(request)?.finish().await?)
}

fn tell(line: &impl Serialize) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, line)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

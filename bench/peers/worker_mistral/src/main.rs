//! mistral.rs as a worker: one JSON job per line. Prompts go to its engine as tokens, so that
//! nothing of a chat's frame is in the figures; the phases are those that it reports itself, in
//! milliseconds.

use std::io::{BufRead, Write};
use std::time::Instant;

use anyhow::{Context, bail};
use clap::Parser;
use mistralrs::core::{Constraint, NormalRequest};
use mistralrs::{IsqType, Model, ModelDType, Request, RequestMessage, Response, SamplingParams, TextModelBuilder};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{Receiver, channel};

#[derive(Parser)]
struct Args {
    /// A Hugging Face model directory.
    #[arg(long)]
    model: String,
    /// f32, bf16 or q8_0.
    #[arg(long)]
    precision: String,
}

#[derive(Deserialize)]
struct Job {
    requests: Vec<Asked>,
    #[serde(default)]
    together: bool,
}

#[derive(Deserialize)]
struct Asked {
    tokens: Vec<u32>,
    max_tokens: usize,
}

/// All times in seconds.
#[derive(Serialize)]
struct Done {
    prompt_tokens: usize,
    tokens: usize,
    prefill: f64,
    decode: f64,
    text: String,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let start = Instant::now();
    let builder = TextModelBuilder::new(&args.model).with_force_cpu().with_max_num_seqs(8);
    let builder = match args.precision.as_str() {
        "f32" => builder.with_dtype(ModelDType::F32),
        "bf16" => builder.with_dtype(ModelDType::BF16),
        "q8_0" => builder.with_dtype(ModelDType::F32).with_isq(IsqType::Q8_0),
        other => bail!("no precision `{other}`"),
    };
    let model = builder.build().await?;
    tell(&serde_json::json!({ "ready": true, "load_seconds": start.elapsed().as_secs_f64() }))?;
    for line in std::io::stdin().lock().lines() {
        let job: Job = serde_json::from_str(&line?)?;
        let start = Instant::now();
        let mut done = Vec::new();
        if job.together {
            let mut open = Vec::new();
            for (id, asked) in job.requests.iter().enumerate() {
                open.push(send(&model, id, asked).await?);
            }
            for one in open {
                done.push(receive(one).await?);
            }
        } else {
            for (id, asked) in job.requests.iter().enumerate() {
                done.push(receive(send(&model, id, asked).await?).await?);
            }
        }
        tell(&serde_json::json!({ "wall": start.elapsed().as_secs_f64(), "requests": done }))?;
    }
    Ok(())
}

/// A request under way, and since when.
type Open = (Instant, Receiver<Response>);

async fn send(model: &Model, id: usize, asked: &Asked) -> anyhow::Result<Open> {
    let sent = Instant::now();
    let (sender, receiver) = channel(1);
    let sampling = SamplingParams { max_len: Some(asked.max_tokens), ..SamplingParams::deterministic() };
    let message = RequestMessage::CompletionTokens(asked.tokens.clone());
    let request = NormalRequest { constraint: Constraint::None, ..NormalRequest::new_simple(message, sampling, sender, id, None, None) };
    model.inner().get_sender(None)?.send(Request::Normal(Box::new(request))).await?;
    Ok((sent, receiver))
}

async fn receive((sent, mut receiver): Open) -> anyhow::Result<Done> {
    match receiver.recv().await.context("no answer")? {
        Response::CompletionDone(done) => Ok(Done {
            prompt_tokens: done.usage.prompt_tokens,
            tokens: done.usage.completion_tokens,
            // It reports no phases of a completion of one token, which has but one.
            prefill: if done.usage.completion_tokens == 1 { sent.elapsed().as_secs_f64() } else { done.usage.total_prompt_time_sec.into() },
            decode: f64::from(done.usage.total_completion_time_sec),
            text: done.choices.into_iter().map(|choice| choice.text).collect(),
        }),
        Response::CompletionModelError(error, _) => bail!("{error}"),
        Response::InternalError(error) | Response::ValidationError(error) => bail!("{error}"),
        _ => bail!("an answer to something else"),
    }
}

fn tell(line: &serde_json::Value) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

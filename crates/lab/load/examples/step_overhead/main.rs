//! Measures the overhead of a planning step, without model and tools. It runs the real gateway, the
//! real agents' services and a real nats-server as processes, with scripted models that take no
//! time.
//!
//! ```text
//! cargo run --release -p autoact-load --example step_overhead
//! cargo run --release -p autoact-load --example step_overhead -- --rounds 5 --before OTHER/step_overhead --json
//! ```
//!
//! Prints the duration of a step for one task at a time, its parts, and the steps per second with
//! several tasks in flight. With `--before`, a program built from other sources runs its own
//! gateway and agents in alternation with these.
//!
//! With `--receipts`, what receipts cost: tools of each effect with and without them, with the files
//! of JetStream on the disk and in memory, in alternation. Times and
//! ratios are medians of the rounds.
//!
//! With `--security`, what mutual TLS and a token cost: the group with both and with neither, in
//! alternation.

mod group;
mod measure;
mod receipts;
mod roles;
mod security;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
// what the services have
use autoact_allocator as _;
use clap::Parser;

use group::{Group, Variant};
use measure::{Measured, Saturated};

/// Measures the overhead of a planning step, without model and tools.
#[derive(Debug, Clone, Parser)]
#[command(name = "step_overhead")]
struct Options {
    /// Steps with a tool in one task; one more step ends it
    #[arg(long, value_name = "N", default_value_t = 8)]
    steps: u32,
    /// Tasks of one round, run one after the other
    #[arg(long, value_name = "N", default_value_t = 100)]
    tasks: usize,
    /// Tasks before the first one that counts
    #[arg(long, value_name = "N", default_value_t = 20)]
    warmup: usize,
    /// Rounds, each with new processes
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    /// Numbers of tasks in flight for measuring steps per second
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [8, 32, 64])]
    at_once: Vec<usize>,
    /// Duration of each of these measurements
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
    seconds: f64,
    /// Another build of this program, for alternation
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["receipts", "security"])]
    before: Option<PathBuf>,
    /// Compare tools of each effect with and without receipts
    #[arg(long, conflicts_with = "security")]
    receipts: bool,
    /// Compare groups with and without TLS and tokens
    #[arg(long)]
    security: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let run = || -> anyhow::Result<()> {
        if args.peek().is_some_and(|arg| arg == "role") {
            // the same runtime as in the services
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            return runtime.block_on(roles::run(args.skip(1).collect()));
        }
        let options = Options::parse();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        runtime.block_on(async {
            match (options.receipts, options.security) {
                (true, _) => receipts::compare(&options).await,
                (_, true) => security::compare(&options).await,
                _ => compare(&options).await,
            }
        })
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", autoact_base::error::chain(error.as_ref()));
            ExitCode::FAILURE
        }
    }
}

/// Runs all rounds, alternating between the builds.
async fn compare(options: &Options) -> anyhow::Result<()> {
    let ours = std::env::current_exe().context("this program has a path")?;
    let mut builds: Vec<(&str, PathBuf)> = options.before.clone().map(|before| ("before", before)).into_iter().collect();
    builds.push((if builds.is_empty() { "this build" } else { "after" }, ours));
    let mut all: Vec<(Measured, Vec<Saturated>)> = builds.iter().map(|_| (Measured::default(), Vec::new())).collect();
    for round in 0..options.rounds {
        for ((name, build), (measured, saturated)) in builds.iter().zip(&mut all) {
            eprintln!("round {} of {}: {name}", round + 1, options.rounds);
            let group =
                Group::start(build, options.steps, &Variant::default()).await.with_context(|| format!("{name}: `{}`", build.display()))?;
            measure::one_by_one(&group, options, measured).await?;
            for at_once in &options.at_once {
                saturated.push(measure::at_once(&group, *at_once, options.seconds).await?);
            }
            group.stop().await;
        }
    }
    let names = builds.iter().map(|(name, _)| *name);
    if options.json {
        let rows = names.zip(&all).map(|(name, (measured, saturated))| measure::json(name, measured, saturated));
        println!("{}", serde_json::to_string_pretty(&rows.collect::<Vec<_>>())?);
    } else {
        names.zip(&all).for_each(|(name, (measured, saturated))| print!("{}", measure::table(name, measured, saturated)));
    }
    Ok(())
}

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

use group::{Group, Variant};
use measure::{Measured, Saturated};

/// The settings of the measurement.
#[derive(Debug, Clone)]
struct Options {
    /// Steps with a tool in one task; one more step ends it.
    steps: u32,
    /// Tasks of one round, run one after the other.
    tasks: usize,
    /// Tasks before the first one that counts.
    warmup: usize,
    /// Number of rounds, each with new processes.
    rounds: usize,
    /// Numbers of tasks in flight for measuring steps per second.
    at_once: Vec<usize>,
    /// Duration of each of these measurements in seconds.
    seconds: f64,
    /// Another build of this program, for alternation.
    before: Option<PathBuf>,
    /// Compare tools of each effect with and without receipts.
    receipts: bool,
    /// Compare groups with and without TLS and tokens.
    security: bool,
    /// Print JSON.
    json: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            steps: 8,
            tasks: 100,
            warmup: 20,
            rounds: 3,
            at_once: vec![8, 32, 64],
            seconds: 5.0,
            before: None,
            receipts: false,
            security: false,
            json: false,
        }
    }
}

fn options(mut args: impl Iterator<Item = String>) -> anyhow::Result<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--json" => options.json = true,
            "--receipts" => options.receipts = true,
            "--security" => options.security = true,
            _ => {}
        }
        if matches!(arg.as_str(), "--json" | "--receipts" | "--security") {
            continue;
        }
        let value = args.next().with_context(|| format!("`{arg}` needs a value"))?;
        let wrong = || format!("`{arg} {value}`: expected a number");
        match arg.as_str() {
            "--steps" => options.steps = value.parse().with_context(wrong)?,
            "--tasks" => options.tasks = value.parse().with_context(wrong)?,
            "--warmup" => options.warmup = value.parse().with_context(wrong)?,
            "--rounds" => options.rounds = value.parse().with_context(wrong)?,
            "--seconds" => options.seconds = value.parse().with_context(wrong)?,
            "--at-once" => options.at_once = value.split(',').map(str::parse).collect::<Result<_, _>>().with_context(wrong)?,
            "--before" => options.before = Some(value.into()),
            _ => {
                anyhow::bail!(
                    "`{arg}` is not known; the options are --steps --tasks --warmup --rounds --seconds --at-once --before --receipts --security --json"
                )
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let run = || -> anyhow::Result<()> {
        if args.peek().is_some_and(|arg| arg == "role") {
            // the same runtime as in the services
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            return runtime.block_on(roles::run(args.skip(1).collect()));
        }
        let options = options(args)?;
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

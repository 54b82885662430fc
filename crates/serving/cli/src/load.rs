//! `autoact load`: tasks at a set rate, and where their time goes.

mod live;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use autoact_load::{Arrivals, Asked, Comparison, Gateway, GatewayOptions, Load, LoadError, Pace, Question, Report, Stop};
use clap::{Args, Subcommand};

use crate::client::{self, Service};
use crate::exit;
use crate::identity;
use crate::out;
use live::Live;

/// `autoact load`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LoadOptions {
    #[command(subcommand)]
    command: Option<LoadCommand>,
    /// Tasks that arrive per second, whatever the group does; latency counts from the intended
    /// arrival.
    #[arg(long, default_value_t = 1.0)]
    rate: f64,
    /// How arrivals are spread: `poisson` (as independent people come) or `constant`.
    #[arg(long, default_value_t = Arrivals::Poisson)]
    arrivals: Arrivals,
    /// Keep this many tasks in flight instead; a slow group is then asked less, and the waiting of
    /// those who would have come is left out (coordinated omission).
    #[arg(long, value_name = "N", conflicts_with_all = ["rate", "arrivals"], value_parser = clap::value_parser!(u32).range(1..=10_000))]
    closed: Option<u32>,
    /// How long tasks arrive, the warm-up not counted: `30s`, `5m`.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    duration: Duration,
    /// How long tasks arrive before they are counted.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    warmup: Duration,
    /// Ask the questions of this file: a question a line, as text or as JSON with `question` and
    /// perhaps `answer` and `options`.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    questions: Option<PathBuf>,
    /// Ask this set of the atlas: `dev` or `held-out`.
    #[arg(long, default_value = "dev", value_parser = ["dev", "held-out"])]
    set: String,
    /// Tasks in flight at most; arrivals beyond wait here, and their waiting counts.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency_limit: u32,
    /// How long one task is waited for; then it is cancelled and counts as failed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// After every task, recall something like its question from the memory service here, and time
    /// that too.
    #[arg(long, value_name = "URL")]
    memory: Option<String>,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Seed of the arrivals, of the questions' order and of the sampling.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where `report.json` and `report.html` go.
    #[arg(long, value_name = "DIR", default_value = ".quickstart/load")]
    out: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum LoadCommand {
    /// Compare two reports: ratios per percentile, what changed, and whether that is more than
    /// chance.
    Compare {
        /// The first report: a `report.json`, or the directory it is in.
        a: PathBuf,
        /// The second.
        b: PathBuf,
        /// Fail when a percentile of the second is, by more than chance, longer than this factor
        /// allows, or more tasks fail.
        #[arg(long, value_name = "FACTOR")]
        fail_above: Option<f64>,
        /// A JSON object for programs.
        #[arg(long)]
        json: bool,
    },
}

fn duration(text: &str) -> Result<Duration, String> {
    autoact_base::duration::parse(text)
        .ok()
        .filter(|duration| *duration <= Duration::from_secs(24 * 60 * 60))
        .ok_or_else(|| "expected a time such as `500ms`, `30s` or `5m`, at most `24h`".to_owned())
}

pub(crate) async fn run(gateway: &str, options: LoadOptions) -> anyhow::Result<u8> {
    match &options.command {
        Some(LoadCommand::Compare { a, b, fail_above, json }) => {
            compare(&Comparison::new(&Report::read(a)?, &Report::read(b)?), *fail_above, *json)
        }
        None => load(gateway, &options).await,
    }
}

fn compare(comparison: &Comparison, fail_above: Option<f64>, json: bool) -> anyhow::Result<u8> {
    if json {
        out::line(serde_json::to_string_pretty(comparison)?)?;
    } else {
        out::text(comparison.table())?;
    }
    let failures = fail_above.map(|most| comparison.failures(most)).unwrap_or_default();
    failures.iter().for_each(|failure| out::note(format_args!("worse: {failure}")));
    Ok(if failures.is_empty() { exit::OK } else { exit::FAILED })
}

async fn load(gateway: &str, options: &LoadOptions) -> anyhow::Result<u8> {
    anyhow::ensure!(!options.duration.is_zero(), "`--duration` is nothing; expected a time such as `60s`");
    anyhow::ensure!(!options.timeout.is_zero(), "`--timeout` is nothing; expected a time such as `60s`");
    let path = options.questions.clone().unwrap_or_else(|| crate::eval::set::path_of(&options.set));
    let questions = autoact_load::shuffled(autoact_load::questions(&path)?, options.seed);
    let load = options.load()?;
    let target = connect(gateway, options, load.limit).await?;
    let stop = Stop::default();
    let interrupt = tokio::spawn(interrupts(stop.clone()));
    let started = SystemTime::now();
    let mut live = Live::new();
    let asked = options.asked(gateway, path, questions.len());
    let questions: Arc<[Question]> = questions.into();
    let collected = autoact_load::run(Arc::new(target), &load, questions, &stop, |progress| live.show(progress)).await;
    live.end();
    interrupt.abort();
    let report = Report::new(asked, started, &collected);
    report.write(&options.out)?;
    if options.json {
        out::text(report.json())?;
    } else {
        out::text(report.summary())?;
        out::line(format_args!("report: {}", options.out.join("report.html").display()))?;
    }
    Ok(match (report.interrupted || report.tasks.dropped > 0, report.tasks.finished) {
        (true, _) => exit::INTERRUPTED,
        (false, 0) => exit::FAILED,
        (false, _) => exit::OK,
    })
}

async fn connect(gateway: &str, options: &LoadOptions, in_flight: usize) -> anyhow::Result<Gateway> {
    let route = client::route(gateway, Service::Gateway)?;
    let memory = options.memory.as_ref().map(|memory| client::route(memory, Service::Memory)).transpose()?;
    // one connector has the certificate for both
    let connector = memory.as_ref().filter(|memory| memory.connector.has_tls()).map_or(route.connector, |memory| memory.connector.clone());
    let connect = GatewayOptions {
        address: route.address,
        connector,
        memory: memory.map(|memory| memory.address),
        bearer: identity::bearer()?,
        in_flight,
        timeout: options.timeout,
        temperature: options.temperature,
        seed: options.seed,
    };
    // an address that is none is said to be one before it is used
    client::gateway(gateway)?;
    if let Some(memory) = &options.memory {
        client::memory(memory)?;
    }
    match Gateway::connect(connect).await {
        Ok(gateway) => Ok(gateway),
        Err(LoadError::Gateway { address, status }) => Err(client::explain(*status, Service::Gateway, &address).await),
        Err(error) => Err(error.into()),
    }
}

impl LoadOptions {
    fn load(&self) -> Result<Load, LoadError> {
        let limit = usize::try_from(self.concurrency_limit).unwrap_or(usize::MAX);
        let pace = match self.closed {
            Some(in_flight) => Pace::Closed(usize::try_from(in_flight).unwrap_or(usize::MAX)),
            None => Pace::Open(autoact_load::schedule(self.arrivals, self.rate, self.warmup + self.duration, self.seed)?),
        };
        let limit = match pace {
            Pace::Open(_) => limit,
            Pace::Closed(in_flight) => in_flight,
        };
        Ok(Load { pace, warmup: self.warmup, duration: self.duration, limit })
    }

    fn asked(&self, gateway: &str, questions: PathBuf, distinct_questions: usize) -> Asked {
        Asked {
            gateway: gateway.to_owned(),
            questions: questions.display().to_string(),
            distinct_questions,
            arrivals: if self.closed.is_some() { "closed".to_owned() } else { self.arrivals.to_string() },
            rate: self.closed.is_none().then_some(self.rate),
            in_flight: self.closed.and_then(|in_flight| in_flight.try_into().ok()),
            limit: usize::try_from(self.concurrency_limit).unwrap_or(usize::MAX),
            warmup_seconds: self.warmup.as_secs_f64(),
            duration_seconds: self.duration.as_secs_f64(),
            timeout_seconds: self.timeout.as_secs_f64(),
            seed: self.seed,
            temperature: self.temperature,
        }
    }
}

/// The first Ctrl-C ends arrivals, the second drops what is in flight. Either way there is a
/// report.
async fn interrupts(stop: Stop) {
    for (token, said) in [(stop.arrivals, "no more arrivals; what runs is waited for, Ctrl-C again drops it"), (stop.tasks, "dropped")] {
        if tokio::signal::ctrl_c().await.is_err() {
            return;
        }
        out::note(format_args!("\n{said}"));
        token.cancel();
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Args, Command};

    fn parse(args: &[&str]) -> Result<super::LoadOptions, clap::Error> {
        match Args::try_parse_from(["autoact", "load"].iter().chain(args))?.command {
            Command::Load(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_words_of_a_load() {
        let load = parse(&["--rate", "5", "--duration", "1m", "--arrivals", "constant", "--warmup", "0s"]).unwrap().load().unwrap();
        assert!(matches!(&load.pace, autoact_load::Pace::Open(times) if times.len() == 300));
        let closed = parse(&["--closed", "8"]).unwrap().load().unwrap();
        assert_eq!((closed.pace, closed.limit), (autoact_load::Pace::Closed(8), 8));
        assert!(parse(&["compare", "a", "b", "--fail-above", "1.2"]).unwrap().command.is_some());
        for wrong in [
            &["--closed", "8", "--rate", "5"][..],
            &["--duration", "long"],
            &["--arrivals", "uniform"],
            &["--set", "train"],
            &["--questions", "x", "--set", "dev"],
            &["--rate", "5", "compare", "a", "b"],
            &["compare", "a"],
            &["--closed", "0"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--rate", "0"]).unwrap().load().is_err());
    }
}

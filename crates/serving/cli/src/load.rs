//! `autoact load`: tasks at a set rate, and where their time goes.

mod compare;
mod live;
mod side;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use autoact_kernels::Machine;
use autoact_load::{Arrivals, Asked, Gateway, GatewayOptions, Load, LoadError, Pace, Question, Report, Stop};
use clap::{Args, Subcommand};

use crate::client::{self, Service};
use crate::exit;
use crate::identity;
use crate::out;
use compare::CompareOptions;
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
    /// Tasks in flight at most; arrivals beyond wait here, and their waiting counts.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency_limit: u32,
    /// After every task, recall something like its question from the memory service here, and time
    /// that too.
    #[arg(long, value_name = "URL")]
    memory: Option<String>,
    #[command(flatten)]
    asking: Asking,
    /// Where `report.json` and `report.html` go.
    #[arg(long, value_name = "DIR", default_value = ".quickstart/load")]
    out: PathBuf,
    /// Print the report as JSON.
    #[arg(long)]
    json: bool,
}

/// What is asked, and how.
#[derive(Debug, Args)]
struct Asking {
    /// Ask the questions of this file: a question a line, as text or as JSON with `question` and
    /// perhaps `answer` and `options`.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    questions: Option<PathBuf>,
    /// Ask this set of the atlas: `dev` or `held-out`.
    #[arg(long, default_value = "dev", value_parser = ["dev", "held-out"])]
    set: String,
    /// How long one task is waited for; then it is cancelled and counts as failed.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    timeout: Duration,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.0)]
    temperature: f32,
    /// Seed of the arrivals, of the questions' order and of the sampling.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl Asking {
    /// The questions in the order of the seed, and where they are from.
    fn questions(&self) -> anyhow::Result<(Vec<Question>, String)> {
        anyhow::ensure!(!self.timeout.is_zero(), "`--timeout` is nothing; expected a time such as `60s`");
        let path = self.questions.clone().unwrap_or_else(|| crate::eval::set::path_of(&self.set));
        Ok((autoact_load::shuffled(autoact_load::questions(&path)?, self.seed), path.display().to_string()))
    }
}

#[derive(Debug, Subcommand)]
enum LoadCommand {
    /// Compare two builds: start the group of each, alternate the same tasks between them in short
    /// phases, and print ratios with 95% intervals. Or compare two reports.
    Compare(Box<CompareOptions>),
}

fn duration(text: &str) -> Result<Duration, String> {
    autoact_base::duration::parse(text)
        .ok()
        .filter(|duration| *duration <= Duration::from_secs(24 * 60 * 60))
        .ok_or_else(|| "expected a time such as `500ms`, `30s` or `5m`, at most `24h`".to_owned())
}

pub(crate) async fn run(gateway: &str, options: LoadOptions) -> anyhow::Result<u8> {
    match &options.command {
        Some(LoadCommand::Compare(options)) => compare::run(options).await,
        None => load(gateway, &options).await,
    }
}

async fn load(gateway: &str, options: &LoadOptions) -> anyhow::Result<u8> {
    anyhow::ensure!(!options.duration.is_zero(), "`--duration` is nothing; expected a time such as `60s`");
    let (questions, source) = options.asking.questions()?;
    let load = options.load()?;
    let target = connect(gateway, Service::Gateway, &options.asking, options.memory.as_deref(), load.limit).await?;
    let machine = tokio::task::spawn_blocking(Machine::measure).await?;
    let stop = Stop::default();
    let interrupt = tokio::spawn(interrupts(stop.clone()));
    let started = SystemTime::now();
    let mut live = Live::new();
    let asked = options.asked(gateway, source, questions.len());
    let questions: Arc<[Question]> = questions.into();
    let collected = autoact_load::run(Arc::new(target), &load, questions, &stop, |progress| live.show(progress)).await;
    live.end();
    interrupt.abort();
    let report = Report { machine: Some(machine), ..Report::new(asked, started, &collected) };
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

/// Connects to a gateway. `named` says what to do about an address that is of no use.
async fn connect(
    gateway: &str,
    named: Service,
    asking: &Asking,
    memory_address: Option<&str>,
    in_flight: usize,
) -> anyhow::Result<Gateway> {
    let route = client::route(gateway, named)?;
    let memory = memory_address.map(|memory| client::route(memory, Service::Memory)).transpose()?;
    // one connector has the certificate for both
    let connector = memory.as_ref().filter(|memory| memory.connector.has_tls()).map_or(route.connector, |memory| memory.connector.clone());
    let connect = GatewayOptions {
        address: route.address,
        connector,
        memory: memory.map(|memory| memory.address),
        bearer: identity::bearer()?,
        in_flight,
        timeout: asking.timeout,
        temperature: asking.temperature,
        seed: asking.seed,
    };
    // an address that is none is said to be one before it is used
    client::gateway(gateway)?;
    if let Some(memory) = memory_address {
        client::memory(memory)?;
    }
    match Gateway::connect(connect).await {
        Ok(gateway) => Ok(gateway),
        Err(LoadError::Gateway { address, status }) => Err(client::explain(*status, named, &address).await),
        Err(error) => Err(error.into()),
    }
}

impl LoadOptions {
    fn load(&self) -> Result<Load, LoadError> {
        let limit = usize::try_from(self.concurrency_limit).unwrap_or(usize::MAX);
        let pace = match self.closed {
            Some(in_flight) => Pace::Closed(usize::try_from(in_flight).unwrap_or(usize::MAX)),
            None => Pace::Open(autoact_load::schedule(self.arrivals, self.rate, self.warmup + self.duration, self.asking.seed)?),
        };
        let limit = match pace {
            Pace::Open(_) => limit,
            Pace::Closed(in_flight) | Pace::Count { at_once: in_flight, .. } => in_flight,
        };
        Ok(Load { pace, warmup: self.warmup, duration: self.duration, limit })
    }

    fn asked(&self, gateway: &str, questions: String, distinct_questions: usize) -> Asked {
        Asked {
            gateway: gateway.to_owned(),
            questions,
            distinct_questions,
            arrivals: if self.closed.is_some() { "closed".to_owned() } else { self.arrivals.to_string() },
            rate: self.closed.is_none().then_some(self.rate),
            in_flight: self.closed.and_then(|in_flight| in_flight.try_into().ok()),
            limit: usize::try_from(self.concurrency_limit).unwrap_or(usize::MAX),
            warmup_seconds: self.warmup.as_secs_f64(),
            duration_seconds: self.duration.as_secs_f64(),
            timeout_seconds: self.asking.timeout.as_secs_f64(),
            seed: self.asking.seed,
            temperature: self.asking.temperature,
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
        let builds = ["compare", "a", "http://127.0.0.1:7400", "--pairs", "3", "--env-b", "X=1", "--up", "--replicas 2", "--seed", "7"];
        assert!(parse(&builds).unwrap().command.is_some());
        for wrong in [
            &["--closed", "8", "--rate", "5"][..],
            &["--duration", "long"],
            &["--arrivals", "uniform"],
            &["--set", "train"],
            &["--questions", "x", "--set", "dev"],
            &["--rate", "5", "compare", "a", "b"],
            &["compare", "a"],
            &["compare", "a", "b", "--env-a", "X"],
            &["compare", "a", "b", "--up", "--model 'my dir"],
            &["compare", "a", "b", "--pairs", "0"],
            &["--closed", "0"],
        ] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse(&["--rate", "0"]).unwrap().load().is_err());
    }
}

//! `autoact load compare`: two reports, or two builds under the same load in alternating phases.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use autoact_kernels::Machine;
use autoact_load::{Comparison, Gateway, Load, Pace, Pair, Paired, PairedAsked, Question, Stop, Trial};
use clap::Args;
use tokio::time::Instant;

use super::side::{Side, Start, Words, variable, words};
use super::{Asking, Live, connect, duration};
use crate::client::Service;
use crate::exit::{self, BadArguments};
use crate::out;
use crate::supervise::{self, Process};

/// The names of the two sides.
const NAMES: [&str; 2] = ["a", "b"];
/// How often a group that starts is looked at.
const LOOK_PERIOD: Duration = Duration::from_millis(200);

/// `autoact load compare`
#[derive(Debug, Args)]
pub(super) struct CompareOptions {
    /// The first: a report of `autoact load` (a `report.json`, or the directory it is in); or a build
    /// (an `autoact` program, or the directory or target directory it is in), whose group is
    /// started; or the address of a gateway that runs.
    a: String,
    /// The second, of the same kind. Builds and addresses can be compared with each other.
    b: String,
    /// Fail when the second is, by more than chance, worse than this factor allows, or more tasks
    /// fail.
    #[arg(long, value_name = "FACTOR")]
    fail_above: Option<f64>,
    /// A JSON object for programs.
    #[arg(long)]
    json: bool,
    /// Builds: pairs of phases. A pair is the same tasks for each, first one at a time, then
    /// many at once.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pairs: u32,
    /// Builds: tasks of a phase with one task at a time.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    tasks: u32,
    /// Builds: tasks of a phase with many at once, which tells the tasks a second.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    saturated_tasks: u32,
    /// Builds: tasks at once in such a phase.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    at_once: u32,
    /// Builds: tasks that each does before anything is counted.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    warmup_tasks: u32,
    /// Builds: the first port of the first group; the second one's is 200 or more further up.
    #[arg(long, default_value_t = 8400, value_parser = clap::value_parser!(u16).range(1024..=65231))]
    base_port: u16,
    /// Builds: how long a group may take to start.
    #[arg(long, value_name = "TIME", default_value = "120s", value_parser = duration)]
    start_timeout: Duration,
    /// Builds: further arguments of `autoact up` for both, such as `--model DIR`; both have to
    /// understand them.
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true, value_parser = words)]
    up: Words,
    /// Builds: a variable that only the first is started with; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env_a: Vec<String>,
    /// Builds: a variable that only the second is started with; may be given again.
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env_b: Vec<String>,
    /// Builds: the directory in which the first finds its model, corpus and tools.
    #[arg(long, value_name = "DIR")]
    dir_a: Option<PathBuf>,
    /// Builds: the directory in which the second does.
    #[arg(long, value_name = "DIR")]
    dir_b: Option<PathBuf>,
    #[command(flatten)]
    asking: Asking,
}

pub(super) async fn run(options: &CompareOptions) -> anyhow::Result<u8> {
    let sides = [Side::find(&options.a)?, Side::find(&options.b)?];
    // read before they are told apart: what is no report is said to be none, whatever the other is
    match [sides[0].report()?, sides[1].report()?] {
        [Some(a), Some(b)] => reports(&Comparison::new(&a, &b), options),
        [None, None] => builds(&sides, options).await,
        [a, _] => {
            let [report, other] = if a.is_some() { [&options.a, &options.b] } else { [&options.b, &options.a] };
            let why = format!("`{report}` is a report and `{other}` is none; fix: name two reports, or two builds");
            Err(BadArguments(why).into())
        }
    }
}

fn reports(comparison: &Comparison, options: &CompareOptions) -> anyhow::Result<u8> {
    if options.json {
        out::line(serde_json::to_string_pretty(comparison)?)?;
    } else {
        out::text(comparison.table())?;
    }
    Ok(verdict(&options.fail_above.map(|most| comparison.failures(most)).unwrap_or_default()))
}

fn verdict(failures: &[String]) -> u8 {
    failures.iter().for_each(|failure| out::note(format_args!("worse: {failure}")));
    if failures.is_empty() { exit::OK } else { exit::FAILED }
}

/// Starts what has to be started, measures, and stops it whatever happens.
async fn builds(sides: &[Side; 2], options: &CompareOptions) -> anyhow::Result<u8> {
    let stop = Stop::default();
    // the first Ctrl-C ends the measurement, the second one does not wait for groups that drain
    let interrupt = tokio::spawn({
        let stop = stop.clone();
        async move {
            for token in [stop.tasks, stop.arrivals] {
                crate::up::stop_signal().await;
                token.cancel();
            }
        }
    });
    let scratch = tempfile::tempdir().context("cannot make a temporary directory")?;
    let mut processes = Vec::new();
    let measured = tokio::select! {
        measured = measure(sides, options, scratch.path(), &mut processes, &stop) => measured,
        () = starting(&stop) => Ok(None),
    };
    if !processes.is_empty() {
        out::note("stopping the groups …");
    }
    tokio::select! {
        () = supervise::stop_all(&mut processes) => {}
        () = stop.arrivals.cancelled() => {
            for process in &mut processes {
                process.kill().await;
            }
        }
    }
    interrupt.abort();
    let Some(paired) = measured? else { return Ok(exit::INTERRUPTED) };
    if options.json {
        out::line(serde_json::to_string_pretty(&paired)?)?;
    } else {
        out::text(paired.table())?;
    }
    if stop.tasks.is_cancelled() {
        return Ok(exit::INTERRUPTED);
    }
    Ok(verdict(&options.fail_above.map(|most| paired.failures(most)).unwrap_or_default()))
}

/// Ends soon after the interrupt: while phases run they end by themselves, with the figures of
/// those before.
async fn starting(stop: &Stop) {
    stop.tasks.cancelled().await;
    tokio::time::sleep(Duration::from_secs(10)).await;
}

/// `None`: it was stopped before a pair was whole.
async fn measure(
    sides: &[Side; 2],
    options: &CompareOptions,
    scratch: &Path,
    processes: &mut Vec<Process>,
    stop: &Stop,
) -> anyhow::Result<Option<Paired>> {
    let (questions, source) = options.asking.questions()?;
    let builds = [sides[0].build(&options.env_a).await?, sides[1].build(&options.env_b).await?];
    out::note("measuring the machine …");
    let machine = tokio::task::spawn_blocking(Machine::measure).await?;
    let Some(gateways) = start(sides, options, scratch, processes, stop).await? else { return Ok(None) };
    let mut phases = Phases { questions, next: 0, gateways, live: Live::new(), stop, processes };
    let [tasks, saturated, warmup, at_once] =
        [options.tasks, options.saturated_tasks, options.warmup_tasks, options.at_once].map(|n| n as usize);
    if phases.both("warm-up", false, warmup, at_once.min(warmup)).await?.is_none() {
        return Ok(None);
    }
    let mut pairs = Vec::new();
    for at in 0..options.pairs {
        let title = format!("pair {} of {}", at + 1, options.pairs);
        // A B B A in the first pair, B A A B in the next
        let Some(alone) = phases.both(&format!("{title}, alone"), at % 2 == 1, tasks, 1).await? else { break };
        let Some(saturated) = phases.both(&format!("{title}, {at_once} at once"), at % 2 == 0, saturated, at_once).await? else { break };
        pairs.push(Pair { alone, saturated });
    }
    phases.live.end();
    if pairs.is_empty() {
        return Ok(None);
    }
    let asked = PairedAsked {
        questions: source,
        tasks,
        saturated_tasks: saturated,
        at_once,
        seed: options.asking.seed,
        temperature: options.asking.temperature,
    };
    let mut paired = Paired::new(machine, builds, asked, &pairs);
    if pairs.len() < options.pairs as usize {
        paired.cautions.push("it was stopped before its end".to_owned());
    }
    Ok(Some(paired))
}

/// Starts the builds at once and waits for both gateways. `None`: interrupted.
async fn start(
    sides: &[Side; 2],
    options: &CompareOptions,
    scratch: &Path,
    processes: &mut Vec<Process>,
    stop: &Stop,
) -> anyhow::Result<Option<[Arc<Gateway>; 2]>> {
    let mut port = options.base_port;
    let mut addresses = Vec::new();
    let own = [(&options.env_a, &options.dir_a), (&options.env_b, &options.dir_b)];
    for ((side, name), (env, dir)) in sides.iter().zip(NAMES).zip(own) {
        match side {
            Side::Program(program) => {
                let base_port = crate::up::free_base(port, 1)?;
                port = base_port.saturating_add(200);
                let start = Start { name, program, base_port, up: &options.up.0, env, dir: dir.as_deref() };
                out::note(format_args!("starting {}: {}", name.to_uppercase(), program.display()));
                processes.push(start.start(scratch)?);
                addresses.push(format!("http://127.0.0.1:{base_port}"));
            }
            Side::Gateway(address) => addresses.push(address.clone()),
            Side::Report(path) => anyhow::bail!("`{}` is a report", path.display()),
        }
    }
    let deadline = Instant::now() + options.start_timeout;
    let mut gateways = Vec::new();
    for (side, address) in sides.iter().zip(&addresses) {
        loop {
            let limit = options.at_once as usize;
            let error = match connect(address, Service::Compared, &options.asking, None, limit).await {
                Ok(gateway) => {
                    gateways.push(Arc::new(gateway));
                    break;
                }
                Err(error) => error,
            };
            for process in processes.iter_mut() {
                if let Some(status) = process.ended() {
                    anyhow::bail!("{} ended while starting ({status}):\n{}", process.name, process.tail());
                }
            }
            let waits = !processes.is_empty() && Instant::now() < deadline;
            match side {
                _ if waits => {}
                Side::Program(program) => anyhow::bail!(
                    "the group of `{}` is not ready after {:?}; fix: allow more with `--start-timeout`",
                    program.display(),
                    options.start_timeout
                ),
                _ => return Err(error.context(format!("the group at {address} is not there"))),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_PERIOD) => {}
                () = stop.tasks.cancelled() => return Ok(None),
            }
        }
    }
    Ok(<[Arc<Gateway>; 2]>::try_from(gateways).ok())
}

/// What the phases share.
struct Phases<'a> {
    questions: Vec<Question>,
    /// Index of the next phase's first question.
    next: usize,
    gateways: [Arc<Gateway>; 2],
    live: Live,
    stop: &'a Stop,
    processes: &'a mut Vec<Process>,
}

impl Phases<'_> {
    /// One phase of each build with the next questions. `None`: interrupted.
    async fn both(&mut self, title: &str, second_first: bool, tasks: usize, at_once: usize) -> anyhow::Result<Option<[Trial; 2]>> {
        let questions: Arc<[Question]> = self.questions.iter().cycle().skip(self.next).take(tasks).cloned().collect();
        self.next = (self.next + tasks) % self.questions.len().max(1);
        let mut trials = [Trial::default(), Trial::default()];
        let order = if second_first { [1, 0] } else { [0, 1] };
        for side in order {
            let load = Load { pace: Pace::Count { tasks, at_once }, warmup: Duration::ZERO, duration: Duration::ZERO, limit: at_once };
            let show = |progress: &autoact_load::Progress| {
                let ended = progress.finished + progress.failed;
                let line = format!(
                    "{title}: {}  {ended} of {tasks} tasks  p50 {}",
                    NAMES[side].to_uppercase(),
                    autoact_load::ms(progress.p50.as_secs_f64() * 1e3)
                );
                self.live.say(&line);
            };
            let gateway = Arc::clone(&self.gateways[side]);
            let collected = autoact_load::run(gateway, &load, Arc::clone(&questions), self.stop, show).await;
            if self.stop.tasks.is_cancelled() {
                return Ok(None);
            }
            for process in self.processes.iter_mut() {
                if let Some(status) = process.ended() {
                    anyhow::bail!("{} ended ({status}):\n{}", process.name, process.tail());
                }
            }
            trials[side] = Trial::of(&collected);
            let Trial { finished, failed, .. } = &trials[side];
            if *finished == 0 {
                let said: Vec<String> = collected.messages.iter().map(|(code, said)| format!("{code}: {}", said.join(" · "))).collect();
                anyhow::bail!("none of {failed} tasks of {} finished: {}", NAMES[side].to_uppercase(), said.join("; "));
            }
        }
        Ok(Some(trials))
    }
}

//! More tasks than the group can do: what it accepts ends as it should, the rest is refused with a
//! delay, no process grows, and another tenant has its tasks done. How much longer they take is
//! printed.
//!
//! The group is one of `autoact up`: with TLS between its processes and on the bus, and tokens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use autoact_access::{NewToken, Principal, Role};
use autoact_testkit::group::SERVICES;
use autoact_testkit::{Group, GroupOptions, processes};
use autoact_wire::client::{Authorized, Bearer, connect_lazy};
use autoact_wire::status::{reason, retry_after};
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, FinishReason};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tonic::Code;

use crate::load::questions;
use crate::student::student;
use crate::{lasts, long};

/// Tasks in flight that keep every agent busy.
const AT_ONCE: usize = 8;
/// So many times what the group can do is asked of it.
const FACTOR: f64 = 5.0;
/// Tasks that may be queued or running; a tenant may have half of them.
const MAX_TASKS: u64 = 32;
/// How long ended tasks are kept, on the bus and in memory: what is stored is soon as much as it
/// ever is, so a process that grows after that does not give back what it has removed.
const KEPT: &str = "60s";
/// The time of a task in this queue, on a busy machine.
const TIME: Duration = Duration::from_secs(600);
/// Between two looks at the memory of the processes.
const LOOK: Duration = Duration::from_secs(1);
/// What a process may grow by while tasks come for as long as the test lasts: beyond what is left to
/// chance, a part of what it has, and a little in any case.
const GROWTH: f64 = 0.05;
const LITTLE: f64 = 8.0 * 1024.0 * 1024.0;
/// Shorter tests say nothing about growth: caches fill.
const ENOUGH: Duration = Duration::from_secs(600);
/// So many blocks of time are compared.
const BLOCKS: usize = 20;
/// So many times as long may the slowest in a hundred of another tenant's tasks take: the aim.
const AIM: f64 = 2.0;

type Client = GatewayClient<Authorized>;

/// A group, and a client of each of two tenants.
struct Crowded {
    group: Group,
    flood: Tenant,
    calm: Tenant,
    _tokens: tempfile::TempDir,
}

/// A tenant's client, and what it asks.
#[derive(Clone)]
struct Tenant {
    name: &'static str,
    client: Client,
    questions: Arc<Vec<String>>,
    asked: Arc<AtomicUsize>,
}

/// What became of a task.
#[derive(Debug)]
enum Became {
    /// It ended, after so long.
    Ended(FinishReason, Duration),
    /// It was refused: why, and when to come again.
    Refused(String, Option<Duration>),
    /// It was accepted, and its stream broke, or it failed to come in otherwise.
    Broken(String),
}

impl Crowded {
    async fn start() -> anyhow::Result<Crowded> {
        let tokens = tempfile::tempdir()?;
        let file = tokens.path().join("tokens.toml");
        let (flood, calm) = (token(&file, "flood")?, token(&file, "calm")?);
        let env = [
            ("GATEWAY__ACCESS__TOKENS", file.display().to_string()),
            ("GATEWAY__MAX_TASKS", MAX_TASKS.to_string()),
            ("GATEWAY__BUS__MAX_AGE", KEPT.to_owned()),
            ("MEMORY__TASK_TTL", KEPT.to_owned()),
        ];
        let env = env.map(|(name, value)| (format!("AUTOACT_{name}"), value)).to_vec();
        let group = Group::start_with(GroupOptions { env, ..GroupOptions::default() }).await?;
        let questions = Arc::new(questions()?);
        let tenant = |name, token: &str| {
            let client = GatewayClient::with_interceptor(connect_lazy(&group.gateway())?, Bearer::new(token)?);
            let client = autoact_wire::limited!(client);
            anyhow::Ok(Tenant { name, client, questions: Arc::clone(&questions), asked: Arc::default() })
        };
        let (flood, calm) = (tenant("flood", &flood)?, tenant("calm", &calm)?);
        Ok(Crowded { group, flood, calm, _tokens: tokens })
    }
}

/// A token of this tenant, which the file has from now on.
fn token(file: &Path, tenant: &str) -> anyhow::Result<String> {
    let principal = Principal { name: tenant.to_owned(), tenant: tenant.parse()?, roles: [Role::Ask].into() };
    let NewToken { token, entry } = NewToken::make(&principal, None).map_err(anyhow::Error::msg)?;
    let before = if file.exists() { std::fs::read_to_string(file)? } else { String::new() };
    std::fs::write(file, before + &entry)?;
    Ok(token)
}

impl Tenant {
    /// Asks the next question, once.
    async fn ask(&self) -> anyhow::Result<Became> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let task = v1::SubmitTaskRequest {
            task_id: format!("{}-{number}", self.name),
            question: self.questions[(number * 7) % self.questions.len()].clone(),
            limits: Some(v1::Limits { max_time: Some(TIME.try_into()?), ..v1::Limits::default() }),
            ..v1::SubmitTaskRequest::default()
        };
        let began = Instant::now();
        let mut stream = match self.client.clone().ask(v1::AskRequest { task: Some(task), ..v1::AskRequest::default() }).await {
            Ok(stream) => stream.into_inner(),
            Err(status) if status.code() == Code::ResourceExhausted => {
                return Ok(Became::Refused(reason(&status).unwrap_or_default(), retry_after(&status)));
            }
            Err(status) => return Ok(Became::Broken(status.to_string())),
        };
        let mut last = None;
        loop {
            match stream.message().await {
                Ok(Some(message)) => last = message.event.or(last),
                Ok(None) => break,
                Err(status) => return Ok(Became::Broken(status.to_string())),
            }
        }
        Ok(match last.and_then(|event| event.body) {
            Some(Body::Finished(finished)) => Became::Ended(finished.reason(), began.elapsed()),
            other => Became::Broken(format!("its stream ended with {other:?}")),
        })
    }

    /// Keeps so many tasks in flight for a while; how long each took.
    async fn in_flight(&self, at_once: usize, lasts: Duration) -> anyhow::Result<Vec<Duration>> {
        let until = Instant::now() + lasts;
        let one_after_another = async || {
            let mut took = Vec::new();
            while Instant::now() < until {
                match self.ask().await? {
                    Became::Ended(_, time) => took.push(time),
                    other => anyhow::bail!("a task of `{}`: {other:?}", self.name),
                }
            }
            anyhow::Ok(took)
        };
        let all = futures::future::try_join_all((0..at_once).map(|_| one_after_another())).await?;
        Ok(all.into_iter().flatten().collect())
    }

    /// Tasks at a rate, whatever becomes of them, until told to stop; what became of each.
    fn flood(&self, rate: f64, ended: &Arc<AtomicBool>) -> JoinHandle<anyhow::Result<Vec<Became>>> {
        let (tenant, ended) = (self.clone(), Arc::clone(ended));
        tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
            let (mut asked, mut became) = (FuturesUnordered::new(), Vec::new());
            while !ended.load(Ordering::Relaxed) {
                tokio::select! {
                    _ = ticks.tick() => {
                        let tenant = tenant.clone();
                        asked.push(tokio::spawn(async move { tenant.ask().await }));
                    }
                    Some(one) = asked.next() => became.push(one??),
                }
            }
            while let Some(one) = asked.next().await {
                became.push(one??);
            }
            Ok(became)
        })
    }
}

/// What became of a flood: nothing that was accepted was harmed, and who was refused knows when to
/// come again. The line that says so.
fn unharmed(became: &[Became]) -> anyhow::Result<String> {
    let (mut ends, mut refused, mut wrong): (BTreeMap<&str, usize>, BTreeMap<&str, usize>, Vec<_>) = Default::default();
    for one in became {
        match one {
            Became::Ended(reason @ (FinishReason::MaxTime | FinishReason::Cancelled | FinishReason::Failed), _) => {
                wrong.push(format!("a task ended as {reason:?}"));
            }
            Became::Ended(reason, _) => *ends.entry(reason.as_str_name()).or_default() += 1,
            Became::Refused(reason, Some(_)) => *refused.entry(reason.as_str()).or_default() += 1,
            Became::Refused(reason, None) => wrong.push(format!("refused without a delay: {reason}")),
            Became::Broken(why) => wrong.push(why.clone()),
        }
    }
    anyhow::ensure!(wrong.is_empty(), "{} of {}: {}", wrong.len(), became.len(), wrong.join("\n"));
    anyhow::ensure!(!refused.is_empty() && !ends.is_empty(), "nothing was tried: {ends:?}, {refused:?}");
    Ok(format!("accepted and ended {ends:?}, refused with a delay {refused:?}, harmed 0"))
}

/// A process's resident memory over time, in seconds and bytes.
#[derive(Default)]
struct Memory {
    samples: Vec<(f64, f64)>,
}

/// Bytes a second, and the half of its interval of 95%.
struct Slope {
    rate: f64,
    half: f64,
}

impl Memory {
    /// A line through the means of blocks of time, the first third left out: caches fill. Means,
    /// because samples that follow one another are alike.
    fn slope(&self) -> Option<Slope> {
        let late = &self.samples[self.samples.len() / 3..];
        let size = late.len() / BLOCKS;
        if size == 0 {
            return None;
        }
        let mean = |values: &mut dyn Iterator<Item = f64>, count: f64| values.sum::<f64>() / count;
        let block = |block: &[(f64, f64)]| {
            let count = block.len() as f64;
            (mean(&mut block.iter().map(|sample| sample.0), count), mean(&mut block.iter().map(|sample| sample.1), count))
        };
        let means: Vec<(f64, f64)> = late.chunks_exact(size).take(BLOCKS).map(block).collect();
        let count = means.len() as f64;
        let (at, bytes) = block(&means);
        let spread: f64 = means.iter().map(|(x, _)| (x - at).powi(2)).sum();
        let rate = means.iter().map(|(x, y)| (x - at) * (y - bytes)).sum::<f64>() / spread;
        let rest: f64 = means.iter().map(|(x, y)| (y - bytes - rate * (x - at)).powi(2)).sum();
        Some(Slope { rate, half: student(means.len() - 2) * (rest / (count - 2.0) / spread).sqrt() })
    }
}

/// Looks at the memory of a group's processes until told to stop; by name and process.
fn watch_memory(group: &Group, ended: &Arc<AtomicBool>) -> JoinHandle<BTreeMap<(String, i32), Memory>> {
    let (mut marked, ended) = (group.processes(), Arc::clone(ended));
    // not those that a start runs for a moment
    marked.retain(|process| SERVICES.contains(&process.name.as_str()) || ["autoact", "nats-server"].contains(&process.name.as_str()));
    tokio::spawn(async move {
        let (began, mut ticks) = (Instant::now(), tokio::time::interval(LOOK));
        let mut memory: BTreeMap<(String, i32), Memory> = BTreeMap::new();
        while !ended.load(Ordering::Relaxed) {
            ticks.tick().await;
            for process in &marked {
                if let Some(bytes) = processes::resident(process.pid) {
                    let of = memory.entry((process.name.clone(), process.pid)).or_default();
                    of.samples.push((began.elapsed().as_secs_f64(), bytes as f64));
                }
            }
        }
        memory
    })
}

/// Prints the memory of the processes, and says which of them grew.
fn grown(memory: &BTreeMap<(String, i32), Memory>, lasts: Duration) -> Vec<String> {
    let mut grown = Vec::new();
    let mib = |bytes: f64| bytes / 1024.0 / 1024.0;
    println!("| process | MiB after a third | at the end | highest | KiB a minute, 95% | bytes a minute in 1,000 |");
    println!("| --- | ---: | ---: | ---: | --- | ---: |");
    for ((name, _), memory) in memory {
        let Some(slope) = memory.slope() else { continue };
        let late = &memory.samples[memory.samples.len() / 3..];
        let (first, last) = (late[0].1, late[late.len() - 1].1);
        let highest = memory.samples.iter().map(|sample| sample.1).fold(0.0, f64::max);
        let minute = |rate: f64| rate * 60.0 / 1024.0;
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} | {:+.1} ± {:.1} | {:+.2} |",
            mib(first),
            mib(last),
            mib(highest),
            minute(slope.rate),
            minute(slope.half),
            slope.rate * 60.0 / first * 1000.0
        );
        let surely = (slope.rate - slope.half) * lasts.as_secs_f64();
        if lasts >= ENOUGH && surely > first * GROWTH + LITTLE {
            grown.push(format!("`{name}` grows by at least {:.1} MiB in {lasts:?}", mib(surely)));
        }
    }
    grown
}

/// The time that this part of them took no longer than.
fn quantile(times: &[Duration], part: f64) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    let at = ((times.len() as f64 * part).ceil() as usize).clamp(1, times.len().max(1)) - 1;
    times.get(at).copied().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_times_too_many_tasks_harm_none_that_was_accepted_and_no_process_grows() -> anyhow::Result<()> {
    let lasts = lasts(12, 1800);
    let crowded = Crowded::start().await?;
    let alone = lasts / 6;
    let rate = crowded.flood.in_flight(AT_ONCE, alone).await?.len() as f64 / alone.as_secs_f64();
    anyhow::ensure!(rate > 0.0, "no task ended in {alone:?}");

    let ended = Arc::new(AtomicBool::new(false));
    let memory = watch_memory(&crowded.group, &ended);
    let flood = crowded.flood.flood(FACTOR * rate, &ended);
    tokio::time::sleep(lasts).await;
    ended.store(true, Ordering::Relaxed);
    let memory = memory.await?;
    let became = flood.await??;
    let line = unharmed(&became).with_context(|| crowded.group.log("gateway"))?;
    println!("{rate:.2} tasks a second at most with {AT_ONCE} in flight; {:.2} asked for {lasts:?}: {line}", FACTOR * rate);
    assert!(memory.len() >= 7, "of every process: {:?}", memory.keys());
    let grown = grown(&memory, lasts);
    assert!(grown.is_empty(), "{}", grown.join("; "));
    assert!(crowded.group.panics().is_empty(), "{:?}", crowded.group.panics());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_floods_the_group_harms_no_task_of_another_one() -> anyhow::Result<()> {
    let (lasts, rounds) = (lasts(12, 240), if long() { 4 } else { 1 });
    let crowded = Crowded::start().await?;
    // agents and caches are warm before the first time counts
    let rate = crowded.flood.in_flight(AT_ONCE, lasts / 12).await?.len() as f64 / (lasts / 12).as_secs_f64();
    let (mut alone, mut beside, mut became) = (Vec::new(), Vec::new(), Vec::new());
    // in turn, so that what else the machine does meets both
    for _ in 0..rounds {
        alone.extend(crowded.calm.in_flight(1, lasts / 12).await?);
        let ended = Arc::new(AtomicBool::new(false));
        let flood = crowded.flood.flood(FACTOR * rate.max(1.0), &ended);
        beside.extend(crowded.calm.in_flight(1, lasts / 6).await?);
        ended.store(true, Ordering::Relaxed);
        became.extend(flood.await??);
    }
    let line = unharmed(&became)?;
    let [ratio, middle] = [0.99, 0.5].map(|part| quantile(&beside, part).as_secs_f64() / quantile(&alone, part).as_secs_f64());
    println!(
        "p99 of a tenant that asks one task at a time: {:?} alone ({} tasks), {:?} beside one that asks {:.1} a second ({} tasks): \
         {ratio:.2} times, aim {AIM:.1}; p50 {:?} and {:?}: {middle:.2} times; of the other's: {line}",
        quantile(&alone, 0.99),
        alone.len(),
        quantile(&beside, 0.99),
        FACTOR * rate.max(1.0),
        beside.len(),
        quantile(&alone, 0.5),
        quantile(&beside, 0.5),
    );
    Ok(())
}

#[test]
fn a_process_that_grows_is_told_from_one_that_does_not() {
    let line = |rate: f64| {
        let samples = (0..1200).map(f64::from).map(|at: f64| (at, 1e8 + rate * at + 1e6 * (at * 0.7).sin())).collect();
        [(("process".to_owned(), 1), Memory { samples })].into()
    };
    assert!(grown(&line(0.0), Duration::from_secs(1200)).is_empty());
    assert!(grown(&line(-20_000.0), Duration::from_secs(1200)).is_empty());
    assert_eq!(grown(&line(20_000.0), Duration::from_secs(1200)).len(), 1);
    assert!(grown(&line(20_000.0), Duration::from_secs(60)).is_empty(), "too short to tell");
}

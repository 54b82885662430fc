//! Tasks while gateways, agents and the bus are killed and stopped at random.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use autoact_base::random::Rng;
use autoact_bus::{Bus, BusConfig};
use autoact_testkit::effects;
use autoact_trajectory::{Event, TaskKey, Tenant};
use autoact_wire::client::connect_lazy;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use nix::sys::signal::Signal;
use tokio::sync::Semaphore;

use crate::checker::{Counted, History, check};
use crate::cluster::{Cluster, LEASE, Member, REPLICAS};
use crate::long;

/// What a task has: faults must not end it for its time.
const TIME: Duration = Duration::from_secs(240);
/// Tasks that are asked at once.
const AT_ONCE: usize = 8;
/// Between two faults.
const PAUSE: Duration = Duration::from_millis(700);
/// Chooses the faults; another one by the environment.
const SEED: u64 = 20_261_123;
const SEED_VARIABLE: &str = "TESTKIT_SEED";

/// What happens to a process.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// SIGKILL, and a new start.
    Kill(Member),
    /// SIGSTOP for longer than a lease, then SIGCONT.
    Stop(Member),
    /// SIGKILL of nats-server, and a new start.
    Bus,
}

fn draw(random: &mut Rng) -> Fault {
    let members: Vec<Member> = Cluster::members().collect();
    let mut below = |bound: usize| usize::try_from(random.next_u64() % bound as u64).unwrap_or_default();
    let member = members[below(members.len())];
    match below(10) {
        0 => Fault::Bus,
        1..=3 => Fault::Stop(member),
        _ => Fault::Kill(member),
    }
}

fn questions() -> anyhow::Result<Vec<String>> {
    let path = autoact_testkit::files::root().join("corpora/atlas/questions/dev.jsonl");
    let text = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line)?;
        Ok(row["text"].as_str().context("a question has a text")?.to_owned())
    };
    std::fs::read_to_string(&path)?.lines().map(text).collect()
}

/// Asks a question, again and again at one gateway after the other, until it has its end.
async fn ask(gateways: Vec<String>, request: v1::SubmitTaskRequest) -> anyhow::Result<Vec<TrajectoryEvent>> {
    let mut seen: Vec<TrajectoryEvent> = Vec::new();
    let mut ticks = tokio::time::interval(Duration::from_millis(100));
    for address in gateways.iter().cycle() {
        ticks.tick().await;
        let mut client = autoact_wire::limited!(GatewayClient::new(connect_lazy(address)?));
        // one that is stopped gives no answer
        if !matches!(tokio::time::timeout(LEASE, client.submit_task(request.clone())).await, Ok(Ok(_))) {
            continue;
        }
        let after_sequence = seen.last().map_or(0, |event| event.sequence);
        let watch = v1::WatchTaskRequest { task_id: request.task_id.clone(), after_sequence, ..v1::WatchTaskRequest::default() };
        let Ok(Ok(stream)) = tokio::time::timeout(LEASE, client.watch_task(watch)).await else { continue };
        let mut stream = stream.into_inner();
        while let Ok(Ok(Some(message))) = tokio::time::timeout(2 * LEASE, stream.message()).await {
            seen.extend(message.event);
        }
        if matches!(seen.last().and_then(|event| event.body.as_ref()), Some(Body::Finished(_))) {
            return Ok(seen);
        }
    }
    anyhow::bail!("there are no gateways")
}

/// Makes faults until told to stop; how many of each kind.
async fn faults(cluster: &mut Cluster, seed: u64, ended: &AtomicBool) -> anyhow::Result<BTreeMap<&'static str, usize>> {
    let mut random = Rng::new(seed);
    let mut made = BTreeMap::new();
    let mut stopped: Vec<(tokio::time::Instant, Member)> = Vec::new();
    let mut ticks = tokio::time::interval(PAUSE);
    while !ended.load(Ordering::Relaxed) {
        ticks.tick().await;
        let now = tokio::time::Instant::now();
        for (_, member) in stopped.extract_if(.., |(until, _)| *until <= now) {
            cluster.signal(member, Signal::SIGCONT);
        }
        let fault = draw(&mut random);
        let name = match fault {
            Fault::Kill(member) => {
                stopped.retain(|(_, other)| *other != member);
                cluster.kill(member).await?;
                "kills"
            }
            // one that can answer is left
            Fault::Stop((service, _)) if stopped.iter().any(|(_, (other, _))| *other == service) => continue,
            Fault::Stop(member) => {
                cluster.signal(member, Signal::SIGSTOP);
                stopped.push((now + LEASE + Duration::from_secs(1), member));
                "stops"
            }
            Fault::Bus => {
                cluster.nats.kill();
                cluster.nats.resume().await?;
                "kills of the bus"
            }
        };
        *made.entry(name).or_default() += 1;
    }
    for (_, member) in stopped {
        cluster.signal(member, Signal::SIGCONT);
    }
    Ok(made)
}

#[tokio::test(flavor = "multi_thread")]
async fn under_faults_of_all_kinds_nothing_is_lost_and_nothing_happens_twice() -> anyhow::Result<()> {
    let tasks = if long() { 1000 } else { 24 };
    let seed = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    println!("{SEED_VARIABLE}={seed}");
    let mut cluster = Cluster::start().await?;
    let gateways: Vec<String> = (0..REPLICAS).map(|replica| cluster.address(("gateway", replica))).collect();
    let questions = questions()?;
    let ended = Arc::new(AtomicBool::new(false));
    let asked = tokio::spawn({
        let ended = Arc::clone(&ended);
        async move {
            let slots = Arc::new(Semaphore::new(AT_ONCE));
            let mut asked = FuturesUnordered::new();
            for number in 0..tasks {
                let request = v1::SubmitTaskRequest {
                    task_id: format!("chaos-{number}"),
                    question: questions[(number * 7) % questions.len()].clone(),
                    limits: Some(v1::Limits { max_time: Some(TIME.try_into()?), ..v1::Limits::default() }),
                    ..v1::SubmitTaskRequest::default()
                };
                let (mut gateways, slots) = (gateways.clone(), Arc::clone(&slots));
                gateways.rotate_left(number % usize::from(REPLICAS));
                asked.push(tokio::spawn(async move {
                    let _slot = slots.acquire_owned().await?;
                    let id = request.task_id.clone();
                    let events = tokio::time::timeout(TIME, ask(gateways, request)).await;
                    anyhow::Ok((id.clone(), events.with_context(|| format!("`{id}` has not ended after {TIME:?}"))??))
                }));
            }
            let mut answers = BTreeMap::new();
            while let Some(asked) = asked.next().await {
                let (id, events) = asked??;
                answers.insert(id, events);
            }
            ended.store(true, Ordering::Relaxed);
            anyhow::Ok(answers)
        }
    });
    let watching = Arc::clone(&ended);
    // a client that fails ends the faults too
    let asked = tokio::spawn(async move {
        let answers = asked.await;
        watching.store(true, Ordering::Relaxed);
        answers
    });
    let made = faults(&mut cluster, seed, &ended).await?;
    let answers = asked.await???;

    // what they left behind
    let bus = Bus::connect(BusConfig::new(cluster.nats.url())).await?;
    let book = bus.receipts().await?;
    let runs = effects::runs(cluster.dir())?;
    let (mut wrong, mut counted) = (Vec::new(), Counted::default());
    for (id, told) in &answers {
        let key = TaskKey::new(Tenant::default(), id.parse()?);
        let history = History { events: bus.load(&key).await?, receipts: book.read(&key).await? };
        wrong.extend(check(&history, &runs, &mut counted).into_iter().map(|what| format!("`{id}`: {what}")));
        if !same(told, &history.events) {
            wrong.push(format!("`{id}`: the client was told another history than the bus has"));
        }
    }
    assert!(wrong.is_empty(), "seed {seed}, {made:?}:\n{}", wrong.join("\n"));
    assert_eq!(answers.len(), tasks);
    let Counted { effects, unknown, take_overs } = counted;
    assert!(effects > 0 && take_overs > 0, "nothing was tried: {effects} effects, {take_overs} take-overs");
    println!("{tasks} tasks, {made:?}: {take_overs} take-overs, {effects} effects, {unknown} unknown outcomes, nothing lost or doubled");
    Ok(())
}

/// Whether a client was told every event once, as it is stored.
fn same(told: &[TrajectoryEvent], stored: &[Event]) -> bool {
    let told: Vec<(u64, u64)> = told.iter().map(|event| (event.index, event.sequence)).collect();
    let stored: Vec<(u64, u64)> = stored.iter().map(|event| (event.index, event.sequence)).collect();
    told == stored
}

//! Tasks that clients ask, and what they left behind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use autoact_bus::{Bus, BusConfig};
use autoact_testkit::{Cluster, effects};
use autoact_trajectory::{Event, TaskKey, Tenant};
use autoact_wire::client::connect_lazy;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::sync::Semaphore;

use crate::checker::{Counted, History, check};

/// A lease that is not kept alive passes on after this long.
pub(crate) const LEASE: Duration = Duration::from_secs(2);
/// What a task has: faults must not end it for its time.
pub(crate) const TIME: Duration = Duration::from_secs(240);
/// Chooses the faults; another one by the environment.
const SEED: u64 = 20_261_123;
const SEED_VARIABLE: &str = "TESTKIT_SEED";

/// What the clients were told, by the tasks' ids.
pub(crate) type Told = BTreeMap<String, Vec<TrajectoryEvent>>;

/// What chooses the faults of this run; printed, so that a run can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var(SEED_VARIABLE).ok().and_then(|seed| seed.parse().ok()).unwrap_or(SEED);
    println!("{SEED_VARIABLE}={seed}");
    seed
}

/// The questions that tasks ask.
pub(crate) fn questions() -> anyhow::Result<Vec<String>> {
    let path = autoact_testkit::files::root().join("corpora/atlas/questions/dev.jsonl");
    let text = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line)?;
        Ok(row["text"].as_str().context("a question has a text")?.to_owned())
    };
    std::fs::read_to_string(&path)?.lines().map(text).collect()
}

/// The task of this number.
pub(crate) fn task(questions: &[String], number: usize) -> anyhow::Result<v1::SubmitTaskRequest> {
    Ok(v1::SubmitTaskRequest {
        task_id: format!("chaos-{number}"),
        question: questions[(number * 7) % questions.len()].clone(),
        limits: Some(v1::Limits { max_time: Some(TIME.try_into()?), ..v1::Limits::default() }),
        ..v1::SubmitTaskRequest::default()
    })
}

/// Asks a question, again and again at one gateway after the other, until it has its end.
pub(crate) async fn ask(gateways: Vec<String>, request: v1::SubmitTaskRequest) -> anyhow::Result<Vec<TrajectoryEvent>> {
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

/// Asks the tasks of these numbers, so many at once.
pub(crate) async fn ask_all(gateways: Vec<String>, tasks: std::ops::Range<usize>, at_once: usize) -> anyhow::Result<Told> {
    let (questions, slots) = (questions()?, Arc::new(Semaphore::new(at_once)));
    let mut asked = FuturesUnordered::new();
    for number in tasks {
        let request = task(&questions, number)?;
        let (mut gateways, slots) = (gateways.clone(), Arc::clone(&slots));
        let first = number % gateways.len().max(1);
        gateways.rotate_left(first);
        asked.push(tokio::spawn(async move {
            let _slot = slots.acquire_owned().await?;
            let id = request.task_id.clone();
            let events = tokio::time::timeout(TIME, ask(gateways, request)).await;
            anyhow::Ok((id.clone(), events.map_err(|_| Unended { id })??))
        }));
    }
    let mut answers = BTreeMap::new();
    while let Some(asked) = asked.next().await {
        let (id, events) = asked??;
        answers.insert(id, events);
    }
    Ok(answers)
}

/// A task whose client waited in vain.
#[derive(Debug, thiserror::Error)]
#[error("`{id}` has not ended after {TIME:?}")]
pub(crate) struct Unended {
    id: String,
}

/// What became of the clients. Of one that waited in vain, what is stored of its task and what the
/// services wrote about it.
pub(crate) async fn told(cluster: &Cluster, asked: anyhow::Result<Told>) -> anyhow::Result<Told> {
    let error = match asked {
        Ok(told) => return Ok(told),
        Err(error) => error,
    };
    let Some(Unended { id }) = error.downcast_ref() else { return Err(error) };
    let key = TaskKey::new(Tenant::default(), id.parse()?);
    let bus = Bus::connect(BusConfig::new(cluster.bus())).await?;
    let stored = bus.load(&key).await?;
    let line =
        |event: &Event| format!("{} {} by {} in epoch {} at {:?}", event.index, event.body.name(), event.writer, event.epoch, event.time);
    let lines: Vec<String> = stored.iter().map(line).chain(cluster.lines_about(id)?).collect();
    Err(error.context(lines.join("\n")))
}

/// Checks what tasks left behind against the model of a run; `what` was done to them.
pub(crate) async fn examine(cluster: &Cluster, told: &Told, what: &str) -> anyhow::Result<Counted> {
    let bus = Bus::connect(BusConfig::new(cluster.bus())).await?;
    let book = bus.receipts().await?;
    let runs = effects::runs(cluster.dir())?;
    let (mut wrong, mut counted) = (Vec::new(), Counted::default());
    for (id, told) in told {
        let key = TaskKey::new(Tenant::default(), id.parse()?);
        let history = History { events: bus.load(&key).await?, receipts: book.read(&key).await?.receipts, told: told.clone() };
        wrong.extend(check(&history, &runs, &mut counted).into_iter().map(|what| format!("`{id}`: {what}")));
    }
    anyhow::ensure!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
    Ok(counted)
}

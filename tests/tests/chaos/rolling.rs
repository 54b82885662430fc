//! Everything is restarted one after the other, as an upgrade does, while tasks come; and a gateway
//! is killed, and another takes its tasks over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use autoact_client::{Following, Update};
use autoact_testkit::{Cluster, ClusterOptions, NatsServer, Proxy, effects};
use autoact_wire::client::{Authorized, Bearer, connect_lazy};
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::checker::Counted;
use crate::load::{LEASE, Told, ask_all, examine, questions, task, told};
use crate::{lasts, long, tasks};

/// How long a process may take to drain: its grace period, and a busy machine.
const DRAIN: Duration = Duration::from_secs(60);
/// How long a client looks for a gateway, as `autoact` does.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a task should wait for another gateway at most.
const AIM: Duration = Duration::from_secs(LEASE.as_secs() + 2);

/// What became of a client's request: the events, and how often its stream was resumed.
type Followed = anyhow::Result<(String, Vec<TrajectoryEvent>, u32)>;

/// Asks a question as `autoact ask` does.
async fn follow(client: GatewayClient<Authorized>, address: String, request: v1::SubmitTaskRequest) -> Followed {
    let mut following = Following::ask(client, &address, request, PATIENCE);
    let (id, mut events) = (following.task_id().to_owned(), Vec::new());
    while let Some(update) = following.next().await {
        if let Update::Event { event, .. } = update.with_context(|| format!("`{id}` failed"))? {
            events.push(*event);
        }
    }
    Ok((id, events, following.reconnects()))
}

/// Tasks at a rate until told to stop: each is a client of its own, on one of two connections.
fn clients(address: String, pause: Duration, ended: Arc<AtomicBool>) -> JoinHandle<anyhow::Result<Vec<Followed>>> {
    tokio::spawn(async move {
        let questions = questions()?;
        let bearer = Bearer::default();
        let channel = || anyhow::Ok(autoact_wire::limited!(GatewayClient::with_interceptor(connect_lazy(&address)?, bearer.clone())));
        let connections = [channel()?, channel()?];
        let mut ticks = tokio::time::interval(pause);
        let mut asked = FuturesUnordered::new();
        let mut number = 0;
        while !ended.load(Ordering::Relaxed) {
            ticks.tick().await;
            let client = connections[number % connections.len()].clone();
            asked.push(tokio::spawn(follow(client, address.clone(), task(&questions, number)?)));
            number += 1;
        }
        let mut followed = Vec::new();
        while let Some(one) = asked.next().await {
            followed.push(one?);
        }
        Ok(followed)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_of_everything_fails_no_request() -> anyhow::Result<()> {
    let (pause, lasts) = (if long() { Duration::from_millis(200) } else { Duration::from_secs(1) }, lasts(0, 180));
    let options = ClusterOptions { replicas: 2, lease: LEASE, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(vec![NatsServer::start().await?], options, effects::library).await?;
    // the Service of Kubernetes before the gateways
    let gateways = cluster.members().into_iter().filter(|member| member.service == "gateway");
    let door = Proxy::start(gateways.map(|member| cluster.socket(member)).collect::<Vec<_>>()).await?;
    let ended = Arc::new(AtomicBool::new(false));
    let asked = clients(format!("http://{}", door.addr()), pause, Arc::clone(&ended));

    let (mut slowest, mut restarts, began) = (Duration::ZERO, 0, Instant::now());
    while restarts == 0 || began.elapsed() < lasts {
        for member in cluster.members() {
            let began = Instant::now();
            let output = cluster.stop(member, DRAIN).await?;
            anyhow::ensure!(output.code == Some(0), "{member:?} did not end as it should: {output:?}");
            slowest = slowest.max(began.elapsed());
            cluster.restart(member).await?;
            restarts += 1;
        }
    }
    let took = began.elapsed().as_secs();
    ended.store(true, Ordering::Relaxed);

    let (mut told, mut failed, mut resumed): (Told, _, _) = (BTreeMap::new(), Vec::new(), 0);
    for followed in asked.await?? {
        match followed {
            Ok((id, events, reconnects)) => {
                resumed += reconnects;
                told.insert(id, events);
            }
            Err(error) => failed.push(format!("{error:#}")),
        }
    }
    assert!(failed.is_empty(), "{} of {} requests failed:\n{}", failed.len(), failed.len() + told.len(), failed.join("\n"));
    let Counted { effects, unknown, take_overs } = examine(&cluster, &told, "a rolling restart").await?;
    assert!(effects > 0, "nothing was tried");
    assert_eq!(unknown, 0, "outcomes are unknown although every process drained");
    println!(
        "{} tasks in {took} s, one every {pause:?}, while {} processes were restarted {restarts} times (the slowest drained in {slowest:?}): \
         0 failed, 0 unknown of {effects} effects, {take_overs} take-overs, {resumed} streams resumed",
        told.len(),
        cluster.members().len()
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tasks_of_a_killed_gateway_are_taken_over() -> anyhow::Result<()> {
    let (rounds, at_once) = (tasks(1, 20), 6);
    let options = ClusterOptions { replicas: 2, lease: LEASE, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(vec![NatsServer::start().await?], options, effects::library).await?;
    let (gateways, killed) = (cluster.addresses("gateway"), cluster.members()[0]);
    let mut waited = Vec::new();
    for round in 0..rounds {
        let numbers = round * at_once..(round + 1) * at_once;
        let asked = tokio::spawn(ask_all(gateways.clone(), numbers, at_once));
        // in the middle of its tasks
        tokio::time::sleep(Duration::from_millis(700)).await;
        let at = SystemTime::now();
        cluster.kill(killed).await?;
        let told = told(&cluster, asked.await?).await?;
        cluster.restart(killed).await?;
        examine(&cluster, &told, "a killed gateway").await?;
        for event in told.values().flatten() {
            if let (Some(Body::Started(started)), Some(time)) = (&event.body, event.time)
                && started.attempt > 1
            {
                waited.extend(SystemTime::try_from(time)?.duration_since(at));
            }
        }
    }
    waited.sort();
    if let (Some(longest), median) = (waited.last(), waited.get(waited.len() / 2)) {
        println!("{} tasks taken over: median {median:?}, longest {longest:?}, aim {AIM:?} (lease + 2 s)", waited.len());
    }
    Ok(())
}

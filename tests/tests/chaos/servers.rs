//! Three nats-servers that hold three copies of everything: one is killed at a time, under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use autoact_base::random::Rng;
use autoact_testkit::{Cluster, ClusterOptions, NatsServer, effects};

use crate::checker::Counted;
use crate::load::{LEASE, ask_all, examine, seed, told};
use crate::tasks;

/// Tasks that are asked at once.
const AT_ONCE: usize = 6;
/// How long a server is away, and how long it is back before the next one goes, which does not go
/// before the last has caught up: two that lack the same messages at once are a loss that no three
/// copies survive.
const AWAY: Duration = Duration::from_secs(2);
const BACK: Duration = Duration::from_secs(8);

#[tokio::test(flavor = "multi_thread")]
async fn one_of_three_servers_is_killed_under_load_and_nothing_is_lost() -> anyhow::Result<()> {
    let (tasks, seed) = (tasks(16, 200), seed());
    let settings = vec![("gateway", "bus.replicas = 3".to_owned())];
    let options = ClusterOptions { replicas: 2, lease: LEASE, settings, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(NatsServer::cluster(3).await?, options, effects::library).await?;
    let (gateways, ended) = (cluster.addresses("gateway"), Arc::new(AtomicBool::new(false)));
    let asked = tokio::spawn({
        let ended = Arc::clone(&ended);
        async move {
            let told = ask_all(gateways, 0..tasks, AT_ONCE).await;
            ended.store(true, Ordering::Relaxed);
            told
        }
    });
    let (mut random, mut kills) = (Rng::new(seed), 0);
    let mut ticks = tokio::time::interval(AWAY + BACK);
    while !ended.load(Ordering::Relaxed) {
        ticks.tick().await;
        let victim = usize::try_from(random.next_u64() % cluster.nats.len() as u64)?;
        cluster.nats[victim].kill();
        kills += 1;
        tokio::time::sleep(AWAY).await;
        cluster.nats[victim].resume().await?;
        cluster.nats[victim].caught_up().await?;
    }
    let told = told(&cluster, asked.await?).await?;
    let counted = examine(&cluster, &told, &format!("seed {seed}, {kills} kills of one of three servers")).await?;
    assert_eq!(told.len(), tasks);
    let Counted { effects, unknown, take_overs } = counted;
    assert!(effects > 0 && kills > 0, "nothing was tried: {effects} effects, {kills} kills");
    println!(
        "{tasks} tasks, {kills} kills of one of three nats-servers: {take_overs} take-overs, {effects} effects, {unknown} unknown outcomes, nothing lost or doubled"
    );
    Ok(())
}

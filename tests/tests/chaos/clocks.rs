//! The clocks of the services are set while tasks run, hours ahead and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use autoact_base::random::Rng;
use autoact_testkit::{Cluster, ClusterOptions, Member, NatsServer, effects, files};
use autoact_wire::v1::FinishReason;
use autoact_wire::v1::trajectory_event::Body;

use crate::checker::Counted;
use crate::load::{LEASE, ask_all, examine, seed, told};
use crate::tasks;

/// Tasks that are asked at once.
const AT_ONCE: usize = 6;
/// Between two settings.
const PAUSE: Duration = Duration::from_millis(500);
/// By how much the clock of a gateway is wrong that takes tasks over: more than they have.
const WRONG: i64 = 3_600;
/// What a clock is set to, in seconds before or after the machine's: beyond what a task or a claim
/// has, and beyond what the bus keeps.
const OFFSETS: [i64; 6] = [0, 30, 3_600, -3_600, 40 * 86_400, -40 * 86_400];

#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_are_set_end_no_task_and_lose_nothing() -> anyhow::Result<()> {
    let library = match files::faketime() {
        Ok(library) => library,
        Err(why) => {
            println!("SKIPPED: {why:#}");
            return Ok(());
        }
    };
    let (tasks, seed) = (tasks(16, 200), seed());
    let options = ClusterOptions { replicas: 2, lease: LEASE, clocks: Some(library), ..ClusterOptions::default() };
    let cluster = Cluster::start(vec![NatsServer::start().await?], options, effects::library).await?;
    let ended = Arc::new(AtomicBool::new(false));
    let asked = tokio::spawn({
        let (gateways, ended) = (cluster.addresses("gateway"), Arc::clone(&ended));
        async move {
            let told = ask_all(gateways, 0..tasks, AT_ONCE).await;
            ended.store(true, Ordering::Relaxed);
            told
        }
    });
    let (mut random, mut set) = (Rng::new(seed), 0);
    let mut below = |bound: usize| usize::try_from(random.next_u64() % bound as u64).unwrap_or_default();
    let (members, mut ticks) = (cluster.members(), tokio::time::interval(PAUSE));
    while !ended.load(Ordering::Relaxed) {
        ticks.tick().await;
        cluster.set_clock(members[below(members.len())], OFFSETS[below(OFFSETS.len())])?;
        set += 1;
    }
    let told = told(&cluster, asked.await?).await?;
    let Counted { effects, unknown, .. } = examine(&cluster, &told, &format!("seed {seed}, {set} clocks set")).await?;
    assert_eq!(told.len(), tasks);
    assert!(effects > 0, "nothing was tried");
    assert_eq!(unknown, 0, "outcomes are unknown although nothing was killed");
    for (id, events) in &told {
        let Some(Body::Finished(finished)) = events.last().and_then(|event| event.body.as_ref()) else { continue };
        assert_ne!(finished.reason(), FinishReason::MaxTime, "`{id}` ended for its time: {}", finished.detail);
    }
    println!("{tasks} tasks while clocks were set {set} times: {effects} effects, nothing lost, doubled or ended for its time");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_is_taken_over_by_a_gateway_with_a_wrong_clock_goes_on() -> anyhow::Result<()> {
    let library = match files::faketime() {
        Ok(library) => library,
        Err(why) => {
            println!("SKIPPED: {why:#}");
            return Ok(());
        }
    };
    let options = ClusterOptions { replicas: 2, lease: LEASE, clocks: Some(library), ..ClusterOptions::default() };
    let mut cluster = Cluster::start(vec![NatsServer::start().await?], options, effects::library).await?;
    let [right, wrong] = [0, 1].map(|replica| Member { service: "gateway", replica });
    cluster.set_clock(wrong, WRONG)?;
    // what a process does with its clock shows from its start on
    cluster.kill(wrong).await?;
    let (gateways, count) = (vec![cluster.address(right), cluster.address(wrong)], tasks(2 * AT_ONCE, 60));
    let asked = tokio::spawn(ask_all(gateways, 0..count, count));
    // in the middle of the tasks of the one whose clock is right
    tokio::time::sleep(Duration::from_millis(600)).await;
    cluster.resume(wrong)?;
    cluster.kill(right).await?;
    let told = told(&cluster, asked.await?).await?;
    let Counted { take_overs, .. } = examine(&cluster, &told, "a gateway whose clock is wrong").await?;
    assert!(take_overs > 0, "nothing was taken over");
    for (id, events) in &told {
        let Some(Body::Finished(finished)) = events.last().and_then(|event| event.body.as_ref()) else { continue };
        assert_ne!(finished.reason(), FinishReason::MaxTime, "`{id}` ended for its time: {}", finished.detail);
    }
    println!("{count} tasks, {take_overs} take-overs by a gateway whose clock is {WRONG} s ahead: none ended for its time");
    Ok(())
}

//! Tasks while gateways, agents and the bus are killed, stopped and cut off at random.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use autoact_base::random::Rng;
use autoact_testkit::{Cluster, ClusterOptions, Member, NatsServer, effects};
use nix::sys::signal::Signal;
use tokio::time::Instant;

use crate::checker::Counted;
use crate::load::{LEASE, ask_all, examine, seed, told};
use crate::tasks;

/// Tasks that are asked at once.
const AT_ONCE: usize = 8;
/// Between two faults.
const PAUSE: Duration = Duration::from_millis(700);
/// A process that is stopped, and a network that is cut, is so for longer than a lease.
const LASTS: Duration = Duration::from_secs(LEASE.as_secs() + 1);
/// What a slow network adds to every chunk of bytes.
const LATE: Duration = Duration::from_millis(50);

/// What happens to the network between a process and another.
#[derive(Debug, Clone, Copy)]
enum Network {
    /// Connections break.
    Cut,
    /// Nothing passes, and no connection breaks.
    Stalled,
    /// Everything comes later.
    Slow,
}

/// What happens to a process.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// SIGKILL, and a new start.
    Kill(Member),
    /// SIGSTOP for longer than a lease, then SIGCONT.
    Stop(Member),
    /// One of its connections, the chosen one of those it has.
    Network(Member, usize, Network),
    /// SIGKILL of nats-server, and a new start.
    Bus,
}

fn draw(random: &mut Rng, members: &[Member]) -> Fault {
    let mut below = |bound: usize| usize::try_from(random.next_u64() % bound as u64).unwrap_or_default();
    let member = members[below(members.len())];
    match below(14) {
        0 => Fault::Bus,
        1..=3 => Fault::Stop(member),
        chosen @ 4..=7 => {
            let how = [Network::Cut, Network::Cut, Network::Stalled, Network::Slow][chosen - 4];
            Fault::Network(member, below(16), how)
        }
        _ => Fault::Kill(member),
    }
}

/// Faults that last: what is to be undone, and when.
#[derive(Default)]
struct Lasting {
    stopped: Vec<(Instant, Member)>,
    /// A connection by the member that has it, and its number.
    broken: Vec<(Instant, Member, usize)>,
}

impl Lasting {
    /// Undoes what has lasted until `now`.
    fn undo(&mut self, cluster: &Cluster, now: Instant) {
        for (_, member) in self.stopped.extract_if(.., |(until, _)| *until <= now) {
            cluster.signal(member, Signal::SIGCONT);
        }
        for (_, member, link) in self.broken.extract_if(.., |(until, ..)| *until <= now) {
            cluster.links(member)[link].1.heal();
        }
    }
}

/// Makes faults until told to stop; how many of each kind.
async fn faults(cluster: &mut Cluster, seed: u64, ended: &AtomicBool) -> anyhow::Result<BTreeMap<&'static str, usize>> {
    let mut random = Rng::new(seed);
    let mut made = BTreeMap::new();
    let mut lasting = Lasting::default();
    let mut ticks = tokio::time::interval(PAUSE);
    let members = cluster.members();
    while !ended.load(Ordering::Relaxed) {
        ticks.tick().await;
        let now = Instant::now();
        lasting.undo(cluster, now);
        let name = match draw(&mut random, &members) {
            Fault::Kill(member) => {
                lasting.stopped.retain(|(_, other)| *other != member);
                cluster.kill(member).await?;
                cluster.resume(member)?;
                "kills"
            }
            // one that can answer is left
            Fault::Stop(member) if lasting.stopped.iter().any(|(_, other)| other.service == member.service) => continue,
            Fault::Stop(member) => {
                cluster.signal(member, Signal::SIGSTOP);
                lasting.stopped.push((now + LASTS, member));
                "stops"
            }
            Fault::Network(member, link, how) => {
                let links = cluster.links(member);
                let link = link % links.len();
                lasting.broken.retain(|(_, other, number)| (*other, *number) != (member, link));
                lasting.broken.push((now + LASTS, member, link));
                let proxy = links[link].1;
                match how {
                    Network::Cut => {
                        proxy.cut();
                        "cuts"
                    }
                    Network::Stalled => {
                        proxy.stall();
                        "silences"
                    }
                    Network::Slow => {
                        proxy.delay(LATE);
                        "slow connections"
                    }
                }
            }
            Fault::Bus => {
                for server in &mut cluster.nats {
                    server.kill();
                    server.resume().await?;
                }
                "kills of the bus"
            }
        };
        *made.entry(name).or_default() += 1;
    }
    lasting.undo(cluster, Instant::now() + LASTS);
    Ok(made)
}

#[tokio::test(flavor = "multi_thread")]
async fn under_faults_of_all_kinds_nothing_is_lost_and_nothing_happens_twice() -> anyhow::Result<()> {
    let (tasks, seed) = (tasks(16, 1000), seed());
    let options = ClusterOptions { replicas: 2, lease: LEASE, proxies: true, ..ClusterOptions::default() };
    let mut cluster = Cluster::start(vec![NatsServer::start().await?], options, effects::library).await?;
    let (gateways, ended) = (cluster.addresses("gateway"), Arc::new(AtomicBool::new(false)));
    let began = Instant::now();
    let asked = tokio::spawn({
        let ended = Arc::clone(&ended);
        async move {
            let told = ask_all(gateways, 0..tasks, AT_ONCE).await;
            // a client that fails ends the faults too
            ended.store(true, Ordering::Relaxed);
            told
        }
    });
    let made = faults(&mut cluster, seed, &ended).await?;
    let told = told(&cluster, asked.await?).await?;
    let took = began.elapsed().as_secs();

    let counted = examine(&cluster, &told, &format!("seed {seed}, {made:?}")).await?;
    assert_eq!(told.len(), tasks);
    let Counted { effects, unknown, take_overs } = counted;
    assert!(effects > 0 && take_overs > 0, "nothing was tried: {effects} effects, {take_overs} take-overs");
    println!(
        "{tasks} tasks in {took} s, {made:?}: {take_overs} take-overs, {effects} effects, {unknown} unknown outcomes, nothing lost or doubled"
    );
    Ok(())
}

//! Several replicas of an agent: the calls are shared, and no task fails when one goes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::scripted::{Group, Script};
use crate::common::*;
use autoact_wire::v1;
use autoact_wire::v1::FinishReason;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_stream::StreamExt;

/// A group whose connections can all be cut, like those of a process that is killed.
struct Killable {
    group: Group,
    runtime: Option<Runtime>,
}

impl Killable {
    async fn start(script: Script) -> Killable {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let group = runtime.spawn(Group::start(script)).await.unwrap();
        Killable { group, runtime: Some(runtime) }
    }

    fn kill(&mut self) {
        self.runtime.take().unwrap().shutdown_background();
    }

    fn plans(&self) -> usize {
        self.group.inner.plans.load(Ordering::SeqCst)
    }
}

impl Drop for Killable {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Three plan-agents; the other agents are those of the first group.
async fn three(scripts: [Script; 3]) -> (World, Vec<Killable>) {
    let mut plans = Vec::new();
    for script in scripts {
        plans.push(Killable::start(script).await);
    }
    let addresses: Vec<String> = plans.iter().map(|plan| plan.group.plan_address()).collect();
    let world = world_with(Group::start(Script::default()).await, |config| {
        config.agents.plan = addresses.join(",");
        config.limits.max_time = Duration::from_secs(60);
    })
    .await;
    (world, plans)
}

async fn ask_all(world: &World, tasks: usize) -> usize {
    let mut approved = 0;
    let mut asked = futures::stream::FuturesUnordered::new();
    for number in 0..tasks {
        let mut client = world.client.clone();
        asked.push(async move { end(&ask(&mut client, task(&format!("Loire {number}"))).await).approved });
        if asked.len() >= 24 {
            approved += usize::from(asked.next().await.unwrap());
        }
    }
    while let Some(answer) = asked.next().await {
        approved += usize::from(answer);
    }
    approved
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_shared_and_a_replica_that_dies_harms_no_task() {
    let (world, mut plans) = three(std::array::from_fn(|_| Script::default())).await;
    assert_eq!(ask_all(&world, 300).await, 300);
    let shares: Vec<usize> = plans.iter().map(Killable::plans).collect();
    let all: usize = shares.iter().sum();
    assert_eq!(all, 600, "two calls a task");
    assert!(shares.iter().all(|share| (150..=252).contains(share)), "25 to 42% of 600: {shares:?}");

    plans[0].kill();
    let began = Instant::now();
    assert_eq!(ask_all(&world, 30).await, 30);
    let made: usize = plans.iter().map(Killable::plans).sum::<usize>() - all;
    // what was sent to the dead one did not arrive, and is not counted here
    assert_eq!(made, 60, "in {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_replica_dies_in_mid_reply_is_made_on_another_at_once() {
    let held = Arc::new(Semaphore::new(0));
    let script = || Script { after_words: Some(held.clone()), ..Script::default() };
    let (world, mut plans) = three([script(), script(), script()]).await;
    let mut client = world.client.clone();
    let asked = tokio::spawn(async move { ask(&mut client, task("Loire")).await });
    let home = autoact_testkit::poll::until(LIMIT, async || plans.iter().position(|plan| plan.plans() == 1)).await;
    let home = home.expect("one is asked");
    plans[home].kill();
    let began = Instant::now();
    let others = || plans.iter().enumerate().filter(|(index, _)| *index != home).map(|(_, plan)| plan.plans()).sum::<usize>();
    autoact_testkit::poll::until(LIMIT, async || (others() == 1).then_some(())).await.expect("another is asked");
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    held.add_permits(1000);
    assert!(end(&asked.await.unwrap()).approved);
    // the next step stays where the first one ended
    assert_eq!(others(), 2);
    assert!(plans.iter().any(|plan| plan.plans() == 2), "affinity");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_that_are_all_away_are_waited_for_and_named() {
    let world = world_with(Group::start(Script::default()).await, |config| {
        config.agents.reflect = "http://127.0.0.1:1,http://127.0.0.1:2".into();
        config.agents.patience = Duration::from_millis(300);
    })
    .await;
    let limits = v1::Limits { max_time: Some(prost_types::Duration { seconds: 3, nanos: 0 }), ..Default::default() };
    let request = v1::SubmitTaskRequest { limits: Some(limits), ..task("Loire") };
    let events = ask(&mut world.client.clone(), request).await;
    assert_eq!(end(&events).reason(), FinishReason::MaxTime);
    let waits = events.iter().any(|event| match &event.body {
        Some(v1::trajectory_event::Body::Released(released)) => {
            released.reason() == v1::ReleaseReason::Waiting && released.detail.contains("reflect-agent")
        }
        _ => false,
    });
    assert!(waits, "{events:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_deadline_ends_its_stream_and_not_the_task() {
    let world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(0);
    let mut client = world.client.clone();
    let ask = v1::AskRequest { task: Some(named("t", "Loire")), ..Default::default() };
    let mut request = tonic::Request::new(ask);
    request.set_timeout(Duration::from_millis(800));
    let mut stream = client.ask(request).await.unwrap().into_inner();
    let ended = loop {
        match stream.next().await.expect("an error, not an end") {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    // the client's own clock or the gateway's, whichever is first
    assert!(matches!(ended.code(), tonic::Code::DeadlineExceeded | tonic::Code::Cancelled), "{ended:?}");
    world.group.asked(1).await;
    assert_eq!(get(&mut client, "t").await.state(), v1::TaskState::Running);
    // a watcher's deadline is no other
    let watch_request = v1::WatchTaskRequest { task_id: "t".into(), after_sequence: 0, deltas: false };
    let mut request = tonic::Request::new(watch_request);
    request.set_timeout(Duration::from_millis(300));
    let mut stream = client.watch_task(request).await.unwrap().into_inner();
    while let Some(Ok(_)) = stream.next().await {}
    world.group.go_on();
    assert!(end(&watch(&mut client, "t", 0).await).approved);
    assert_eq!(world.group.inner.plans.load(Ordering::SeqCst), 2, "nothing was asked twice");
}

//! What fails, and what goes on.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::scripted::{Execute, Group, Script, steps};
use crate::common::*;
use autoact_bus::Bus;
use autoact_service::App;
use autoact_trajectory::{Event, EventBody, FINISH, ReleaseReason, Released, Started, Submitted, TaskKey, Tenant, ToolSpec};
use autoact_wire::status::reason;
use autoact_wire::store_v2 as v2;
use autoact_wire::v1;
use autoact_wire::v1::FinishReason;
use gateway::Gateway;
use prost::Message;
use tokio_stream::StreamExt;
use tonic::Code;

/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:1";

#[tokio::test]
async fn nats_that_is_not_there_is_named() {
    let group = Group::start(Script::default()).await;
    let nats = autoact_testkit::NatsServer::start().await.unwrap();
    let mut config = config(&nats, &group);
    config.common.nats.url = "nats://127.0.0.1:1".into();
    config.service.bus.connect = Duration::from_millis(200);
    config.common.start_limit = Duration::from_millis(500);
    let error = App::build::<Gateway>(config).await.err().unwrap().to_string();
    assert!(error.contains("nats://127.0.0.1:1") && error.contains("fix: ") && error.contains("autoact up"), "{error}");
}

#[tokio::test]
async fn a_task_waits_for_an_agent_that_is_down_until_its_own_time_is_up() {
    let group = Group::start(Script::default()).await;
    let mut world = world_with(group, |config| {
        config.agents.reflect = NOWHERE.into();
        config.agents.patience = Duration::from_millis(300);
    })
    .await;
    let limits = v1::Limits { max_time: Some(prost_types::Duration { seconds: 4, nanos: 0 }), ..Default::default() };
    let events = ask(&mut world.client, v1::SubmitTaskRequest { limits: Some(limits), ..task("Loire") }).await;
    let finished = end(&events);
    assert_eq!((finished.reason(), finished.approved, finished.answer.as_str()), (FinishReason::MaxTime, false, "the answer to Loire"));
    let released = events.iter().find_map(|event| match &event.body {
        Some(v1::trajectory_event::Body::Released(released)) => Some(released),
        _ => None,
    });
    let released = released.expect("it waits in the queue");
    assert_eq!(released.reason(), v1::ReleaseReason::Waiting);
    assert!(released.detail.contains("reflect-agent") && released.detail.contains(NOWHERE), "{released:?}");
}

#[tokio::test]
async fn without_the_tool_library_no_task_is_accepted() {
    let group = Group::start(Script::default()).await;
    let mut world = world_with(group, |config| config.agents.tool = NOWHERE.into()).await;
    let status = world.client.submit_task(task("Loire")).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert!(status.message().contains("tool-agent") && status.message().contains(NOWHERE), "{status:?}");
}

#[tokio::test]
async fn a_memory_that_is_down_harms_no_task() {
    let group = Group::start(Script::default()).await;
    let mut world = world_with(group, |config| config.memory = NOWHERE.into()).await;
    assert!(end(&ask(&mut world.client, task("Loire")).await).approved);
    tokio::time::timeout(Duration::from_secs(8), world.gateway.stop()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_reply_against_the_contract_fails_the_task() {
    let script = Script { plan: Box::new(|_| "Teleport".into()), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    let events = ask(&mut world.client, task("Loire")).await;
    assert_eq!(end(&events).reason(), FinishReason::Failed);
    assert!(end(&events).detail.contains("Teleport") && end(&events).detail.contains("plan-agent"), "{events:?}");
}

#[tokio::test]
async fn what_is_too_long_for_an_event_is_cut_or_refused_at_once() {
    let long = |bytes: usize| "x".repeat(bytes);
    let execute: Execute = Box::new(move |_| autoact_wire::agents_v1::ExecuteResponse { observation: long(1 << 20), ..Default::default() });
    let mut world = world(Group::start(Script { execute: Some(execute), ..Script::default() }).await).await;
    let events = ask(&mut world.client, task("Loire")).await;
    assert!(end(&events).approved, "{:?}", end(&events));
    let observation = observations(&events)[0];
    assert!(observation.truncated && observation.text.len() <= autoact_trajectory::MAX_OBSERVATION_BYTES);
    // the agent breaks the contract: the same call would do so again
    let script = Script { params: Box::new(move |_| long(1 << 20)), ..Script::default() };
    let mut world = crate::common::world(Group::start(script).await).await;
    let events = ask(&mut world.client, task("Loire")).await;
    assert_eq!((end(&events).reason(), names(&events).iter().filter(|name| **name == "started").count()), (FinishReason::Failed, 1));
    assert!(end(&events).detail.contains("1048576"), "{:?}", end(&events));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nats_restarts_in_mid_task() {
    for crash in [false, true] {
        let mut world = world(Group::start(Script::default()).await).await;
        world.group.hold_after(1);
        let mut client = world.client.clone();
        let asked = tokio::spawn(async move { ask(&mut client, named("t", "Loire")).await });
        world.group.asked(2).await;
        if crash {
            world.nats.kill();
            world.group.go_on();
            world.nats.resume().await.unwrap();
        } else {
            world.nats.restart().await.unwrap();
            world.group.go_on();
        }
        let events = asked.await.unwrap();
        assert!(end(&events).approved, "{events:?}");
        assert_eq!(watch(&mut world.client, "t", 0).await, events);
        assert!(end(&ask(&mut world.client, task("Rhine")).await).approved, "and takes new tasks");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateways_task_is_finished_by_another() {
    let group = Group::start(Script::default()).await;
    let nats = autoact_testkit::NatsServer::start().await.unwrap();
    let doomed = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (_running, mut client) = doomed.spawn(start(config(&nats, &group))).await.unwrap();
    group.hold_after(1);
    doomed.spawn(async move { client.submit_task(named("t", "Loire")).await }).await.unwrap().unwrap();
    group.asked(2).await;
    // everything in it stops where it is: no last words, no lease given back
    doomed.shutdown_background();
    group.go_on();
    let (second, mut client) = start(config(&nats, &group)).await;
    let events = watch(&mut client, "t", 0).await;
    assert!(end(&events).approved);
    let names = names(&events);
    assert_eq!(names.iter().filter(|name| **name == "started").count(), 2, "{names:?}");
    assert_eq!(names.iter().filter(|name| **name == "thought").count(), 2, "nothing was done twice: {names:?}");
    assert_eq!(group.inner.runs.load(Ordering::SeqCst), 1);
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_that_stops_passes_its_tasks_on() {
    let mut world = world_with(Group::start(Script::default()).await, |config| config.drain = Duration::from_millis(300)).await;
    world.group.hold_after(1);
    let mut stream = world.client.ask(v1::AskRequest { task: Some(named("t", "Loire")), ..Default::default() }).await.unwrap().into_inner();
    world.group.asked(2).await;
    tokio::time::timeout(Duration::from_secs(8), world.gateway.stop()).await.unwrap().unwrap();
    let mut seen = Vec::new();
    let status = loop {
        match stream.next().await.unwrap() {
            Ok(response) => seen.push(response.event.unwrap()),
            Err(status) => break status,
        }
    };
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    world.group.go_on();
    let (second, mut client) = start(config(&world.nats, &world.group)).await;
    let rest = watch(&mut client, "t", seen.last().unwrap().sequence).await;
    assert!(end(&rest).approved);
    second.stop().await.unwrap();
}

#[tokio::test]
async fn a_task_that_is_nearly_done_is_finished_before_the_gateway_stops() {
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(1);
    let mut client = world.client.clone();
    let asked = tokio::spawn(async move { ask(&mut client, task("Loire")).await });
    world.group.asked(2).await;
    world.gateway.begin_shutdown();
    world.group.go_on();
    assert!(end(&asked.await.unwrap()).approved);
    world.gateway.ended().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_gateways_share_the_work() {
    let world = world(Group::start(Script::default()).await).await;
    let (second, other) = start(config(&world.nats, &world.group)).await;
    let asked = (0..12).map(|number| {
        let mut client = if number % 2 == 0 { world.client.clone() } else { other.clone() };
        tokio::spawn(async move { ask(&mut client, task(&format!("question {number}"))).await })
    });
    let mut writers = std::collections::HashSet::new();
    for asked in asked.collect::<Vec<_>>() {
        let events = asked.await.unwrap();
        assert!(end(&events).approved);
        assert_eq!(names(&events).iter().filter(|name| **name == "started").count(), 1);
        writers.insert(events.last().unwrap().writer.clone());
    }
    // cancelled through the one that does not run it
    world.group.hold_after(0);
    let mut clients = [world.client.clone(), other];
    for (id, by) in [("a", 1), ("b", 0)] {
        clients[1 - by].submit_task(named(id, "q")).await.unwrap();
        world.group.asked(world.group.inner.plans.load(Ordering::SeqCst)).await;
        clients[by].cancel_task(v1::CancelTaskRequest { task_id: id.into() }).await.unwrap();
    }
    let hung_up = autoact_testkit::poll::until(LIMIT, async || (world.group.inner.open.load(Ordering::SeqCst) == 0).then_some(()));
    assert!(hung_up.await.is_some());
    second.stop().await.unwrap();
}

#[tokio::test]
async fn an_action_whose_call_is_lost_is_asked_for_again_as_one_that_may_have_run() {
    for (tool, open_effect) in [("Send", Some(1)), ("Retrieve", None)] {
        let script = Script {
            plan: Box::new(move |trajectory| if steps(trajectory).is_empty() { tool.into() } else { "Finish".into() }),
            params: Box::new(|trajectory| match steps(trajectory).last() {
                Some(step) if step.tool == "Finish" => "done".into(),
                _ => "vanish".into(),
            }),
            ..Script::default()
        };
        let group = Group::start(script).await;
        let mut world = world_with(group, |config| config.agents.patience = Duration::from_millis(500)).await;
        let limits = v1::Limits { max_time: Some(prost_types::Duration { seconds: 3, nanos: 0 }), ..Default::default() };
        let events = ask(&mut world.client, v1::SubmitTaskRequest { limits: Some(limits), ..task("Loire") }).await;
        let count = |counter: &AtomicUsize| counter.load(Ordering::SeqCst);
        let (called, again) = (count(&world.group.inner.runs), count(&world.group.inner.may_have_run));
        assert!(called >= 2 && again == called - 1, "tool-agent's receipts decide: {called} calls, {again} of them again");
        assert_eq!((end(&events).reason(), end(&events).open_effect), (FinishReason::MaxTime, open_effect));
        let request = v1::GetTaskRequest { task_id: events[0].task_id.clone(), view: 0 };
        let task = world.client.get_task(request).await.unwrap().into_inner().task.unwrap();
        assert_eq!((task.reason(), task.open_effect), (FinishReason::MaxTime, open_effect));
    }
}

/// A task that holders took up and left as `bodies` say, queued.
async fn left(bus: &Bus, bodies: impl IntoIterator<Item = EventBody>) {
    let key = TaskKey::new(Tenant::default(), "t".parse().unwrap());
    let mut after = 0;
    let submitted =
        EventBody::Submitted(Submitted { question: "Loire".into(), tools: vec![tool("Retrieve"), tool(FINISH)], ..Submitted::default() });
    for (body, index) in std::iter::once(submitted).chain(bodies).zip(1..) {
        after = bus.append(&Event::new(&key, index, std::time::SystemTime::now(), "test", body), after).await.unwrap().sequence;
    }
    bus.enqueue(&key).await.unwrap();
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        definition: format!("{name} does something."),
        timeout: Duration::from_secs(1),
        max_observation_bytes: 1000,
        ..ToolSpec::new(name)
    }
}

fn started(attempt: u32) -> EventBody {
    EventBody::Started(Started { gateway: "test".into(), attempt })
}

#[tokio::test]
async fn a_task_that_was_taken_up_too_often_fails_with_a_reason() {
    let group = Group::start(Script::default()).await;
    let nats = autoact_testkit::NatsServer::start().await.unwrap();
    let mut config = config(&nats, &group);
    config.service.max_attempts = 2;
    let bus = Bus::connect(config.service.bus.config(&nats.url(), "test")).await.unwrap();
    left(&bus, [started(1), started(2)]).await;
    let (_gateway, mut client) = start(config).await;
    let events = watch(&mut client, "t", 0).await;
    assert_eq!(names(&events), ["submitted", "started", "started", "finished"]);
    assert_eq!(end(&events).reason(), FinishReason::Failed);
    assert!(end(&events).detail.contains("given up after 2 attempt"), "{events:?}");
    let empty = autoact_testkit::poll::until(LIMIT, async || (bus.backlog().await.ok()? == 0).then_some(())).await;
    assert!(empty.is_some(), "it left the queue");
}

#[tokio::test]
async fn a_task_that_was_given_back_on_purpose_is_not_given_up() {
    let group = Group::start(Script::default()).await;
    let nats = autoact_testkit::NatsServer::start().await.unwrap();
    let mut config = config(&nats, &group);
    config.service.max_attempts = 2;
    let bus = Bus::connect(config.service.bus.config(&nats.url(), "test")).await.unwrap();
    let released = EventBody::Released(Released { reason: ReleaseReason::Draining, detail: String::new(), may_have_run: false });
    let drained = (1..5).flat_map(|attempt| [started(attempt), released.clone()]);
    left(&bus, drained).await;
    let (_gateway, mut client) = start(config).await;
    let events = watch(&mut client, "t", 0).await;
    assert!(end(&events).approved, "{events:?}");
}

/// Stores bytes as a task's next event.
async fn store_raw(nats: &autoact_testkit::NatsServer, bytes: Vec<u8>) {
    let client = async_nats::connect(nats.url()).await.unwrap();
    async_nats::jetstream::new(client).publish("autoact.default.traj.t", bytes.into()).await.unwrap().await.unwrap();
}

/// The bytes of an event of a later schema: a body that this program does not know.
fn later(index: u64, ignorable: bool) -> Vec<u8> {
    let key = TaskKey::new(Tenant::default(), "t".parse().unwrap());
    let event = Event::new(&key, index, std::time::SystemTime::now(), "next", started(1));
    let message = v2::Event::decode(autoact_wire::store::encode(&event).unwrap().as_slice()).unwrap();
    let mut bytes = v2::Event { version: 3, ignorable, body: None, ..message }.encode_to_vec();
    bytes.extend([0x9a, 0x06, 0x00]);
    bytes
}

#[tokio::test]
async fn a_task_that_a_later_gateway_wrote_is_left_to_it() {
    let group = Group::start(Script::default()).await;
    let nats = autoact_testkit::NatsServer::start().await.unwrap();
    let config = config(&nats, &group);
    let bus = Bus::connect(config.service.bus.config(&nats.url(), "test")).await.unwrap();
    left(&bus, [started(1)]).await;
    store_raw(&nats, later(3, false)).await;
    let (gateway, mut client) = start(config).await;
    // it shows in the list, and can be watched as far as it goes
    let listed = client.list_tasks(v1::ListTasksRequest::default()).await.unwrap().into_inner().tasks;
    assert!(listed.is_empty(), "it is in no index here: {listed:?}");
    let request = v1::WatchTaskRequest { task_id: "t".into(), ..Default::default() };
    let mut watched = client.watch_task(request).await.unwrap().into_inner();
    for expected in [true, true, false] {
        let event = tokio::time::timeout(LIMIT, watched.next()).await.unwrap().unwrap().unwrap().event.unwrap();
        assert_eq!(event.body.is_some(), expected, "{event:?}");
    }
    let status = client.get_task(v1::GetTaskRequest { task_id: "t".into(), view: 0 }).await.unwrap_err();
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::Unimplemented, Some("TRAJECTORY_NEWER")));
    // other tasks are run meanwhile, and this one stays in the queue
    assert!(end(&ask(&mut client, task("Rhine")).await).approved);
    let left = autoact_testkit::poll::until(LIMIT, async || (bus.backlog().await.ok()? == 1).then_some(()));
    assert!(left.await.is_some(), "the other task leaves the queue, this one does not");
    assert_eq!(bus.last(&TaskKey::new(Tenant::default(), "t".parse().unwrap())).await.unwrap().unwrap().index, 3, "nothing was added");
    gateway.stop().await.unwrap();
}

#[tokio::test]
async fn what_may_be_passed_over_stops_nobody() {
    let group = Group::start(Script::default()).await;
    let nats = autoact_testkit::NatsServer::start().await.unwrap();
    let config = config(&nats, &group);
    let bus = Bus::connect(config.service.bus.config(&nats.url(), "test")).await.unwrap();
    left(&bus, [started(1)]).await;
    store_raw(&nats, later(3, true)).await;
    let (_gateway, mut client) = start(config).await;
    let task = autoact_testkit::poll::until(LIMIT, async || {
        let task = get(&mut client.clone(), "t").await;
        (task.state() == v1::TaskState::Finished).then_some(task)
    });
    assert!(task.await.unwrap().approved);
    assert!(end(&watch(&mut client, "t", 0).await).approved);
}

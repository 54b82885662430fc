//! The bus against a real nats-server.
#![allow(clippy::unwrap_used)]

use std::time::{Duration, SystemTime};

use autoact_bus::{Bus, BusConfig, BusError, Lease, Leases, MAX_EVENT_BYTES};
use autoact_testkit::{NatsServer, poll};
use autoact_trajectory::{Event, EventBody, FinishReason, Finished, Started, Submitted, TaskId, Thought};
use futures::StreamExt;

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);

async fn server() -> (NatsServer, Bus) {
    let server = NatsServer::start().await.unwrap();
    let bus = Bus::connect(config(&server)).await.unwrap();
    (server, bus)
}

fn config(server: &NatsServer) -> BusConfig {
    BusConfig { max_bytes: 64 << 20, lease: Duration::from_secs(2), ..BusConfig::new(server.url()) }
}

fn id(text: &str) -> TaskId {
    text.parse().unwrap()
}

fn event(task: &TaskId, index: u64, body: EventBody) -> Event {
    Event { task_id: task.clone(), index, time: SystemTime::now(), writer: "test".into(), usage: None, timing: None, sequence: 0, body }
}

fn submitted(question: &str) -> EventBody {
    EventBody::Submitted(Submitted { question: question.into(), ..Submitted::default() })
}

fn started(attempt: u32) -> EventBody {
    EventBody::Started(Started { gateway: "test".into(), attempt })
}

fn thought(text: &str) -> EventBody {
    EventBody::Thought(Thought { thought: text.into(), tool: "Search".into() })
}

fn finished() -> EventBody {
    EventBody::Finished(Finished { answer: "42".into(), approved: false, reason: FinishReason::Cancelled, detail: String::new() })
}

/// Appends `bodies` as a task's next events; returns them as stored.
async fn append_all(bus: &Bus, task: &TaskId, bodies: impl IntoIterator<Item = EventBody>) -> Vec<Event> {
    let last = bus.last(task).await.unwrap();
    let mut index = last.as_ref().map_or(0, |event| event.index);
    let mut after = last.map_or(0, |event| event.sequence);
    let mut stored = Vec::new();
    for body in bodies {
        index += 1;
        let mut event = event(task, index, body);
        after = bus.append(&event, after).await.unwrap();
        event.sequence = after;
        stored.push(event);
    }
    stored
}

async fn next(leases: &mut Leases) -> Lease {
    tokio::time::timeout(LIMIT, leases.next()).await.unwrap()
}

async fn is_empty(leases: &mut Leases) -> bool {
    tokio::time::timeout(Duration::from_millis(300), leases.next()).await.is_err()
}

#[tokio::test]
async fn nats_not_reachable_names_url_and_fix() {
    let config = BusConfig { connect_limit: Duration::from_millis(300), ..BusConfig::new("nats://me:secret@127.0.0.1:1") };
    let error = Bus::connect(config).await.unwrap_err();
    assert!(matches!(error, BusError::Unreachable { .. }));
    let text = error.to_string();
    assert!(text.contains("127.0.0.1:1") && text.contains("autoact up") && text.contains("AUTOACT_NATS__URL"), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn events_come_back_in_order() {
    let (_server, bus) = server().await;
    let (one, two) = (id("one"), id("two"));
    assert!(bus.load(&one).await.unwrap().is_empty());
    let mut stored = append_all(&bus, &one, [submitted("q"), started(1)]).await;
    append_all(&bus, &two, [submitted("other")]).await;
    stored.extend(append_all(&bus, &one, [thought("a"), thought("b")]).await);
    assert_eq!(bus.load(&one).await.unwrap(), stored);
    assert_eq!(bus.load(&two).await.unwrap().len(), 1);
    assert_eq!(bus.last(&one).await.unwrap().as_ref(), stored.last());
}

#[tokio::test]
async fn a_second_writer_sees_the_conflict() {
    let (_server, bus) = server().await;
    let task = id("t");
    let stored = append_all(&bus, &task, [submitted("q"), thought("mine")]).await;
    let theirs = event(&task, 2, thought("theirs"));
    let error = bus.append(&theirs, stored[0].sequence).await.unwrap_err();
    let BusError::Conflict { expected, found, .. } = error else { panic!("{error}") };
    assert_eq!((expected, found), (stored[0].sequence, stored[1].sequence));
    let error = bus.append(&event(&task, 1, submitted("again")), 0).await.unwrap_err();
    assert!(matches!(error, BusError::Conflict { .. }));
    assert_eq!(bus.load(&task).await.unwrap(), stored);
}

#[tokio::test]
async fn the_same_event_is_stored_once() {
    let (_server, bus) = server().await;
    let task = id("t");
    let first = event(&task, 1, submitted("q"));
    let sequence = bus.append(&first, 0).await.unwrap();
    assert_eq!(bus.append(&first, 0).await.unwrap(), sequence);
    assert_eq!(bus.load(&task).await.unwrap().len(), 1);
}

#[tokio::test]
async fn an_event_that_is_too_large_is_refused() {
    let (_server, bus) = server().await;
    let task = id("t");
    let error = bus.append(&event(&task, 1, submitted(&"x".repeat(MAX_EVENT_BYTES))), 0).await.unwrap_err();
    assert!(matches!(error, BusError::TooLarge { .. }), "{error}");
    let fits = event(&task, 1, submitted(&"x".repeat(MAX_EVENT_BYTES - 1000)));
    bus.append(&fits, 0).await.unwrap();
    assert_eq!(bus.load(&task).await.unwrap()[0].body, fits.body);
}

#[tokio::test]
async fn a_reader_gets_history_then_live_and_ends() {
    let (_server, bus) = server().await;
    let task = id("t");
    let mut stored = append_all(&bus, &task, [submitted("q"), started(1)]).await;
    let mut reader = Box::pin(bus.read(&task, 0));
    let mut seen = vec![reader.next().await.unwrap().unwrap(), reader.next().await.unwrap().unwrap()];
    let resumed = bus.read(&task, stored[1].sequence);
    let writer = {
        let (bus, task) = (bus.clone(), task.clone());
        tokio::spawn(async move {
            let bodies = (0..50).map(|n| thought(&n.to_string())).chain([finished()]);
            append_all(&bus, &task, bodies).await
        })
    };
    let rest: Vec<Event> = tokio::time::timeout(LIMIT, reader.map(Result::unwrap).collect()).await.unwrap();
    let resumed: Vec<Event> = tokio::time::timeout(LIMIT, resumed.map(Result::unwrap).collect()).await.unwrap();
    stored.extend(writer.await.unwrap());
    seen.extend(rest);
    assert_eq!(seen, stored);
    assert_eq!(resumed, stored[2..]);
}

#[tokio::test]
async fn a_reader_and_a_writer_survive_a_restart() {
    for graceful in [true, false] {
        let (mut server, bus) = server().await;
        let task = id("t");
        append_all(&bus, &task, [submitted("q")]).await;
        let mut reader = Box::pin(bus.read(&task, 0));
        reader.next().await.unwrap().unwrap();
        let writer = |body| {
            let (bus, task) = (bus.clone(), task.clone());
            tokio::spawn(async move { append_all(&bus, &task, [body]).await })
        };
        if graceful {
            server.restart().await.unwrap();
            writer(started(1)).await.unwrap();
        } else {
            server.kill();
            let late = writer(started(1));
            server.resume().await.unwrap();
            late.await.unwrap();
        }
        writer(finished()).await.unwrap();
        let rest: Vec<Event> = tokio::time::timeout(LIMIT, reader.map(Result::unwrap).collect()).await.unwrap();
        assert_eq!(rest.iter().map(|event| event.body.name()).collect::<Vec<_>>(), ["started", "finished"]);
    }
}

#[tokio::test]
async fn a_dead_bus_is_unavailable_and_retryable() {
    let mut server = NatsServer::start().await.unwrap();
    let bus = Bus::connect(BusConfig { patience: Duration::from_millis(500), ..config(&server) }).await.unwrap();
    server.kill();
    let error = bus.append(&event(&id("t"), 1, submitted("q")), 0).await.unwrap_err();
    assert!(matches!(error, BusError::Unavailable { .. }) && error.retryable(), "{error}");
    let mut reader = Box::pin(bus.read(&id("t"), 0));
    assert!(reader.next().await.unwrap().is_err());
    assert!(reader.next().await.is_none());
    assert!(!bus.is_connected());
}

#[tokio::test]
async fn a_task_is_queued_once_and_leased_to_one() {
    let (_server, bus) = server().await;
    let mut leases = bus.leases().await.unwrap();
    let mut others = Bus::connect(config(&_server)).await.unwrap().leases().await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 1);
    let lease = next(&mut leases).await;
    assert_eq!((lease.task_id(), lease.attempt()), (&id("t"), 1));
    assert!(is_empty(&mut others).await);
    bus.enqueue(&id("t")).await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 1);
    lease.ack().await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 0);
}

#[tokio::test]
async fn a_lease_given_back_is_delivered_again() {
    let (_server, bus) = server().await;
    let mut leases = bus.leases().await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    next(&mut leases).await.nak(Duration::from_millis(50)).await.unwrap();
    let again = next(&mut leases).await;
    assert_eq!(again.attempt(), 2);
    again.ack().await.unwrap();
}

#[tokio::test]
async fn a_lease_is_kept_alive_while_held_and_passes_on_when_dropped() {
    let (_server, bus) = server().await;
    let mut leases = bus.leases().await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    let held = next(&mut leases).await;
    // twice the time after which an abandoned lease passes on
    assert!(tokio::time::timeout(Duration::from_secs(4), leases.next()).await.is_err());
    drop(held);
    assert_eq!(next(&mut leases).await.attempt(), 2);
}

#[tokio::test]
async fn leases_survive_a_restart() {
    let (mut server, bus) = server().await;
    let mut leases = bus.leases().await.unwrap();
    bus.enqueue(&id("before")).await.unwrap();
    let before = next(&mut leases).await;
    let waiting = tokio::spawn(async move { (next(&mut leases).await, leases) });
    server.restart().await.unwrap();
    bus.enqueue(&id("after")).await.unwrap();
    let (after, _leases) = waiting.await.unwrap();
    assert_eq!(after.task_id(), &id("after"));
    before.ack().await.unwrap();
    after.ack().await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 0);
}

#[tokio::test]
async fn tasks_are_listed_newest_first_in_pages() {
    let (_server, bus) = server().await;
    assert!(bus.list(10, None).await.unwrap().tasks.is_empty());
    let names: Vec<TaskId> = (0..25).map(|n| id(&format!("task-{n}"))).collect();
    for task in &names {
        append_all(&bus, task, [submitted("q"), started(1)]).await;
        bus.register(task).await.unwrap();
        bus.register(task).await.unwrap();
    }
    append_all(&bus, &names[24], [finished()]).await;
    let mut listed = Vec::new();
    let mut before = None;
    loop {
        let page = bus.list(10, before).await.unwrap();
        assert!(page.tasks.len() <= 10);
        listed.extend(page.tasks);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert!(matches!(listed[0].last.body, EventBody::Finished(_)));
    assert!(listed.iter().all(|head| head.first.index == 1));
    let listed: Vec<TaskId> = listed.into_iter().map(|head| head.first.task_id).collect();
    assert!(listed.iter().eq(names.iter().rev()), "{listed:?}");
}

#[tokio::test]
async fn a_cancelled_task_is_announced() {
    let (_server, bus) = server().await;
    let mut ends = bus.announced_ends().await.unwrap();
    let seen = poll::until(LIMIT, async || {
        bus.announce_end(&id("t")).await;
        tokio::time::timeout(Duration::from_millis(100), ends.next()).await.ok().flatten()
    })
    .await;
    assert_eq!(seen, Some(id("t")));
}

#[tokio::test]
async fn a_stream_that_means_something_else_is_reported() {
    let server = NatsServer::start().await.unwrap();
    let client = async_nats::connect(server.url()).await.unwrap();
    let theirs = async_nats::jetstream::stream::Config {
        name: "AUTOACT_TRAJECTORY".into(),
        subjects: vec!["something.else".into()],
        ..Default::default()
    };
    async_nats::jetstream::new(client).create_stream(theirs).await.unwrap();
    let error = Bus::connect(config(&server)).await.unwrap_err();
    let BusError::Mismatch { stream, field, .. } = &error else { panic!("{error}") };
    assert_eq!((stream.as_str(), *field), ("AUTOACT_TRAJECTORY", "subjects"));
}

//! The bus against a real nats-server.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use autoact_bus::{Bus, BusConfig, BusError, Full, Lease, Leases, Migrated, OpenTasks, Order, Page, Unqueued, migrate};
use autoact_testkit::{NatsServer, poll};
use autoact_trajectory::{
    Event, EventBody, FinishReason, Finished, NewArtifact, Started, Submitted, Task, TaskKey, Tenant, Thought, ToolSpec,
};
use autoact_wire::store::{IndexEntry, IndexRecord, MAX_EVENT_BYTES, digest};
use autoact_wire::v1;
use futures::StreamExt;
use prost::Message;

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

fn id(text: &str) -> TaskKey {
    of("default", text)
}

fn of(tenant: &str, text: &str) -> TaskKey {
    TaskKey::new(tenant.parse().unwrap(), text.parse().unwrap())
}

fn tenants() -> [Tenant; 1] {
    [Tenant::default()]
}

fn event(task: &TaskKey, index: u64, body: EventBody) -> Event {
    Event::new(task, index, SystemTime::now(), "test", body)
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
    EventBody::Finished(Finished {
        answer: "42".into(),
        approved: false,
        reason: FinishReason::Cancelled,
        detail: String::new(),
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    })
}

/// Appends `bodies` as a task's next events; returns them as stored.
async fn append_all(bus: &Bus, task: &TaskKey, bodies: impl IntoIterator<Item = EventBody>) -> Vec<Event> {
    let last = bus.last(task).await.unwrap();
    let mut index = last.as_ref().map_or(0, |event| event.index);
    let mut after = last.map_or(0, |event| event.sequence);
    let mut stored = Vec::new();
    for body in bodies {
        index += 1;
        let mut event = event(task, index, body);
        let place = bus.append(&event, after).await.unwrap();
        (event.sequence, event.digest) = (place.sequence, Some(place.digest));
        after = place.sequence;
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
    assert!(matches!(error, BusError::TooLarge(_)), "{error}");
    let fits = event(&task, 1, submitted(&"x".repeat(MAX_EVENT_BYTES - 1000)));
    bus.append(&fits, 0).await.unwrap();
    assert_eq!(bus.load(&task).await.unwrap()[0].body, fits.body);
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec { definition: "x".repeat(500), usage: format!("{name}[x]"), ..ToolSpec::new(name) }
}

fn with_tools(names: &[&str]) -> EventBody {
    let tools = names.iter().map(|name| tool(name)).collect();
    EventBody::Submitted(Submitted { question: "q".into(), tools, ..Submitted::default() })
}

/// The bucket of specifications, as an operator sees it.
async fn tools_bucket(server: &NatsServer) -> async_nats::jetstream::kv::Store {
    let client = async_nats::connect(server.url()).await.unwrap();
    async_nats::jetstream::new(client).get_key_value("AUTOACT_TOOLS").await.unwrap()
}

#[tokio::test]
async fn a_tools_specification_is_stored_once_and_found_by_every_reader() {
    let (server, bus) = server().await;
    let first = append_all(&bus, &id("one"), [with_tools(&["Search", "Retrieve"])]).await;
    append_all(&bus, &id("two"), [with_tools(&["Retrieve"])]).await;
    append_all(&bus, &of("acme", "three"), [with_tools(&["Retrieve"])]).await;
    let mut keys: Vec<String> = tools_bucket(&server).await.keys().await.unwrap().map(Result::unwrap).collect().await;
    keys.sort();
    let tenants: Vec<&str> = keys.iter().map(|key| key.split('.').next().unwrap()).collect();
    assert_eq!(tenants, ["acme", "default", "default"], "tenants share nothing");
    let reader = Bus::connect(config(&server)).await.unwrap();
    assert_eq!(reader.load(&id("one")).await.unwrap(), first);
    assert_eq!(Box::pin(reader.read(&id("one"), 0)).next().await.unwrap().unwrap(), first[0]);
    // what is known to be stored is neither stored nor looked for again
    let before = tools_bucket(&server).await.status().await.unwrap().info.state.last_sequence;
    append_all(&reader, &id("four"), [with_tools(&["Search", "Retrieve"])]).await;
    assert_eq!(tools_bucket(&server).await.status().await.unwrap().info.state.last_sequence, before);
}

#[tokio::test]
async fn a_specification_that_is_missing_is_waited_for() {
    let (server, bus) = server().await;
    let task = id("t");
    bus.record_submission(&task).await.unwrap();
    let stored = append_all(&bus, &task, [with_tools(&["Search"])]).await;
    let bucket = tools_bucket(&server).await;
    let key = bucket.keys().await.unwrap().next().await.unwrap().unwrap();
    let bytes = bucket.get(&key).await.unwrap().unwrap();
    bucket.delete(&key).await.unwrap();
    let reader = Bus::connect(config(&server)).await.unwrap();
    let error = reader.load(&task).await.unwrap_err();
    assert!(matches!(&error, BusError::MissingTool { tool, .. } if tool == "Search") && error.retryable(), "{error}");
    assert_eq!(reader.list(&Tenant::default(), 10, Order::NewestFirst, None).await.unwrap().tasks.len(), 1, "a list needs no tools");
    assert!(reader.last(&task).await.unwrap().is_some());
    bucket.put(&key, bytes).await.unwrap();
    assert_eq!(reader.load(&task).await.unwrap(), stored);
}

#[tokio::test]
async fn specifications_that_were_lost_with_the_disk_are_stored_again() {
    let (mut server, bus) = server().await;
    append_all(&bus, &id("one"), [with_tools(&["Search"])]).await;
    let bucket = tools_bucket(&server).await;
    let key = bucket.keys().await.unwrap().next().await.unwrap().unwrap();
    bucket.purge(&key).await.unwrap();
    server.restart().await.unwrap();
    let back = poll::until(LIMIT, async || bus.last(&id("one")).await.ok().flatten());
    assert!(back.await.is_some());
    append_all(&bus, &id("two"), [with_tools(&["Search"])]).await;
    let reader = Bus::connect(config(&server)).await.unwrap();
    assert_eq!(reader.load(&id("one")).await.unwrap().len(), 1);
}

fn artifact(name: &str, bytes: usize) -> NewArtifact {
    let (kind, media_type, text) = ("table".into(), "text/csv".into(), "a table".into());
    NewArtifact { kind, media_type, name: name.into(), text, data: vec![b'x'; bytes] }
}

/// The names of the objects of a tenant.
async fn objects(server: &NatsServer, tenant: &str) -> Vec<String> {
    let client = async_nats::connect(server.url()).await.unwrap();
    let store = async_nats::jetstream::new(client).get_object_store(format!("AUTOACT_ARTIFACTS_{tenant}")).await.unwrap();
    store.list().await.unwrap().map(|info| info.unwrap().name).collect().await
}

#[tokio::test]
async fn an_artifact_is_stored_once_whoever_repeats_the_call() {
    let (server, bus) = server().await;
    let new = artifact("rivers.csv", 300_000);
    let kept = bus.keep_artifact(&id("t"), &new).await.unwrap();
    // the holder of the lease died here, before the event; another one runs the tool again
    let other = Bus::connect(config(&server)).await.unwrap();
    assert_eq!(other.keep_artifact(&id("t"), &new).await.unwrap(), kept);
    assert_eq!(objects(&server, "default").await, [format!("t/{}", digest(&new.data))]);
    assert_eq!((kept.bytes, kept.sha256, kept.name.as_str()), (300_000, Some(digest(&new.data)), "rivers.csv"));
    assert_eq!(other.artifact(&id("t"), &kept).await.unwrap(), new.data);
    // tenants share nothing, and what is not there is gone
    assert!(matches!(bus.artifact(&of("acme", "t"), &kept).await, Err(BusError::MissingArtifact { .. })));
    bus.keep_artifact(&of("acme", "t"), &artifact("empty", 0)).await.unwrap();
    assert_eq!(objects(&server, "acme").await.len(), 1);
}

#[tokio::test]
async fn a_full_store_refuses_and_loses_nothing() {
    let server = NatsServer::start().await.unwrap();
    let bus = Bus::connect(BusConfig { max_artifact_bytes: 200_000, ..config(&server) }).await.unwrap();
    let kept = bus.keep_artifact(&id("t"), &artifact("first", 100_000)).await.unwrap();
    let error = bus.keep_artifact(&id("t"), &artifact("second", 100_001)).await.unwrap_err();
    assert!(matches!(error, BusError::Full { .. }) && error.retryable(), "{error}");
    assert_eq!(bus.artifact(&id("t"), &kept).await.unwrap().len(), 100_000);
    assert_eq!(objects(&server, "default").await.len(), 1, "no halves of objects");
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
    let mut leases = bus.leases(&tenants()).await.unwrap();
    let mut others = Bus::connect(config(&_server)).await.unwrap().leases(&tenants()).await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 1);
    let lease = next(&mut leases).await;
    assert_eq!((lease.task(), lease.deliveries()), (&id("t"), 1));
    assert!(is_empty(&mut others).await);
    bus.enqueue(&id("t")).await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 1);
    lease.ack().await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 0);
}

#[tokio::test]
async fn a_lease_given_back_is_delivered_again() {
    let (_server, bus) = server().await;
    let mut leases = bus.leases(&tenants()).await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    next(&mut leases).await.nak(Duration::from_millis(50)).await.unwrap();
    let again = next(&mut leases).await;
    assert_eq!(again.deliveries(), 2);
    again.ack().await.unwrap();
}

#[tokio::test]
async fn a_lease_is_kept_alive_while_held_and_passes_on_when_dropped() {
    let (_server, bus) = server().await;
    let mut leases = bus.leases(&tenants()).await.unwrap();
    bus.enqueue(&id("t")).await.unwrap();
    let held = next(&mut leases).await;
    // twice the time after which an abandoned lease passes on
    assert!(tokio::time::timeout(Duration::from_secs(4), leases.next()).await.is_err());
    drop(held);
    assert_eq!(next(&mut leases).await.deliveries(), 2);
}

#[tokio::test]
async fn leases_survive_a_restart() {
    let (mut server, bus) = server().await;
    let mut leases = bus.leases(&tenants()).await.unwrap();
    bus.enqueue(&id("before")).await.unwrap();
    let before = next(&mut leases).await;
    let waiting = tokio::spawn(async move { (next(&mut leases).await, leases) });
    server.restart().await.unwrap();
    bus.enqueue(&id("after")).await.unwrap();
    let (after, _leases) = waiting.await.unwrap();
    assert_eq!(after.task(), &id("after"));
    before.ack().await.unwrap();
    after.ack().await.unwrap();
    assert_eq!(bus.backlog().await.unwrap(), 0);
}

#[tokio::test]
async fn tasks_are_listed_newest_first_in_pages() {
    let (_server, bus) = server().await;
    assert!(bus.list(&Tenant::default(), 10, Order::NewestFirst, None).await.unwrap().tasks.is_empty());
    let names: Vec<TaskKey> = (0..25).map(|n| id(&format!("task-{n}"))).collect();
    for task in &names {
        append_all(&bus, task, [submitted("q"), started(1)]).await;
        bus.record_submission(task).await.unwrap();
        bus.record_submission(task).await.unwrap();
    }
    bus.record_submission(&of("other", "theirs")).await.unwrap();
    append_all(&bus, &of("other", "theirs"), [submitted("q")]).await;
    let end = append_all(&bus, &names[24], [finished()]).await.remove(0);
    bus.record_end(&names[24], end.index, end.digest).await.unwrap();
    let mut listed = Vec::new();
    let mut before = None;
    loop {
        let page = bus.list(&Tenant::default(), 10, Order::NewestFirst, before).await.unwrap();
        assert!(page.tasks.len() <= 10);
        listed.extend(page.tasks);
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert!(matches!(listed[0].last.body, EventBody::Finished(_)));
    assert!(listed.iter().all(|head| head.first.index == 1));
    let listed: Vec<TaskKey> = listed.into_iter().map(|head| head.first.key()).collect();
    assert!(listed.iter().eq(names.iter().rev()), "{listed:?}");

    // the other way round, while tasks come in
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = bus.list(&Tenant::default(), 10, Order::OldestFirst, after).await.unwrap();
        listed.extend(page.tasks.into_iter().map(|head| head.first.key()));
        if listed.len() == 10 {
            append_all(&bus, &id("late"), [submitted("q")]).await;
            bus.record_submission(&id("late")).await.unwrap();
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert!(listed.iter().eq(names.iter().chain([&id("late")])), "{listed:?}");
    let beyond = bus.list(&Tenant::default(), 10, Order::OldestFirst, Some(u64::MAX)).await.unwrap();
    assert_eq!(beyond, Page::default());
}

#[tokio::test]
async fn a_cancelled_task_is_announced() {
    let (_server, bus) = server().await;
    let mut ends = bus.announced_changes().await.unwrap();
    let seen = poll::until(LIMIT, async || {
        bus.announce_change(&id("t")).await;
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
        name: "AUTOACT_TRAJECTORIES".into(),
        subjects: vec!["something.else".into()],
        ..Default::default()
    };
    async_nats::jetstream::new(client).create_stream(theirs).await.unwrap();
    let error = Bus::connect(config(&server)).await.unwrap_err();
    let BusError::Mismatch { stream, field, .. } = &error else { panic!("{error}") };
    assert_eq!((stream.as_str(), *field), ("AUTOACT_TRAJECTORIES", "subjects"));
}

#[tokio::test]
async fn a_tenant_with_many_tasks_does_not_starve_another() {
    let (_server, bus) = server().await;
    for number in 0..200 {
        bus.enqueue(&of("many", &format!("t{number}"))).await.unwrap();
    }
    bus.enqueue(&of("one", "t")).await.unwrap();
    let mut leases = bus.leases(&["many".parse().unwrap(), "one".parse().unwrap()]).await.unwrap();
    let mut held = Vec::new();
    while held.iter().all(|lease: &Lease| lease.task() != &of("one", "t")) {
        assert!(held.len() < 4, "the other tenant's two hundred tasks come first");
        held.push(next(&mut leases).await);
    }
}

#[tokio::test]
async fn tenants_that_appear_later_are_served() {
    let (_server, bus) = server().await;
    let tenants = tokio::sync::watch::Sender::new(BTreeSet::new());
    let mut leases = bus.leases(&[of("first", "t").tenant]).await.unwrap().following(tenants.subscribe());
    assert!(tokio::time::timeout(Duration::from_millis(100), leases.next()).await.is_err());
    bus.enqueue(&of("later", "t")).await.unwrap();
    let queued = bus.queued_tenants().await.unwrap();
    assert_eq!(queued, [of("later", "t").tenant].into());
    assert_eq!(bus.served_tenants().await.unwrap(), [of("first", "t").tenant].into());
    assert_eq!(bus.backlog_of(&of("later", "t").tenant, 9).await.unwrap(), 1);
    assert_eq!(bus.backlog_of(&of("first", "t").tenant, 9).await.unwrap(), 0);
    tenants.send_replace(queued);
    assert_eq!(next(&mut leases).await.task(), &of("later", "t"));
    // and those before stay
    tenants.send_replace(BTreeSet::new());
    bus.enqueue(&of("first", "t")).await.unwrap();
    assert_eq!(next(&mut leases).await.task(), &of("first", "t"));
    assert_eq!(bus.served_tenants().await.unwrap().len(), 2);
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let (_server, bus) = server().await;
    let (mine, theirs) = (of("mine", "t"), of("theirs", "t"));
    append_all(&bus, &mine, [submitted("mine")]).await;
    assert!(bus.load(&theirs).await.unwrap().is_empty());
    append_all(&bus, &theirs, [submitted("theirs"), finished()]).await;
    assert_eq!(bus.load(&mine).await.unwrap().len(), 1);
}

/// The records of the index, oldest first.
async fn index(server: &NatsServer) -> Vec<(Vec<u8>, IndexRecord)> {
    let client = async_nats::connect(server.url()).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream("AUTOACT_TASK_INDEX").await.unwrap();
    let last = stream.cached_info().state.last_sequence;
    let mut records = Vec::new();
    for position in 1..=last {
        let payload = stream.get_raw_message(position).await.unwrap().payload.to_vec();
        let record = IndexRecord::decode(&payload).unwrap();
        records.push((payload, record));
    }
    records
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_is_one_chain_whoever_writes_it() {
    let (server, bus) = server().await;
    let other = Bus::connect(config(&server)).await.unwrap();
    let writers = (0..20).map(|number| {
        let bus = if number % 2 == 0 { bus.clone() } else { other.clone() };
        tokio::spawn(async move {
            let task = id(&format!("t{number}"));
            bus.record_submission(&task).await.unwrap();
            let end = append_all(&bus, &task, [submitted("q"), finished()]).await.remove(1);
            bus.record_end(&task, end.index, end.digest).await.unwrap();
            bus.record_end(&task, end.index, end.digest).await.unwrap();
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let records = index(&server).await;
    assert_eq!(records.len(), 40);
    let mut before = None;
    for (bytes, record) in &records {
        assert_eq!(record.previous, before, "a chain");
        before = Some(digest(bytes));
        if let IndexEntry::Ended { index, hash } = record.entry {
            let last = bus.last(&record.task).await.unwrap().unwrap();
            assert_eq!((index, hash), (last.index, last.digest));
        }
    }
}

#[tokio::test]
async fn a_task_that_was_never_queued_is_found() {
    let (_server, bus) = server().await;
    let (lost, queued, running) = (id("lost"), id("queued"), id("running"));
    for task in [&lost, &queued, &running] {
        bus.record_submission(task).await.unwrap();
        append_all(&bus, task, [submitted("q")]).await;
    }
    // the index knows it, and nothing was stored
    bus.record_submission(&id("never")).await.unwrap();
    bus.enqueue(&queued).await.unwrap();
    append_all(&bus, &running, [started(1)]).await;
    let mut unqueued = Unqueued::default();
    let now = SystemTime::now();
    assert!(unqueued.step(&bus, now).await.unwrap().is_empty(), "whoever accepted it may be about to queue it");
    assert_eq!(unqueued.step(&bus, now + Duration::from_secs(11)).await.unwrap(), std::slice::from_ref(&lost));
    assert!(unqueued.step(&bus, now + Duration::from_secs(22)).await.unwrap().is_empty());
    assert_eq!(bus.backlog().await.unwrap(), 2);
}

#[tokio::test]
async fn open_tasks_are_those_that_have_not_ended() {
    let (_server, bus) = server().await;
    let (now, hour) = (SystemTime::now(), Duration::from_secs(60 * 60));
    let (held, ends, unstored, unrecorded) = (of("ops", "held"), of("ops", "ends"), of("dev", "unstored"), of("dev", "unrecorded"));
    for task in [&held, &ends, &unstored, &unrecorded] {
        bus.record_submission(task).await.unwrap();
    }
    append_all(&bus, &held, [submitted("q"), started(1)]).await;
    append_all(&bus, &ends, [submitted("q"), finished()]).await;
    append_all(&bus, &unrecorded, [submitted("q"), finished()]).await;
    let open = OpenTasks::default();
    let counts = |open: &OpenTasks| (open.count(), open.count_of(&held.tenant), open.count_of(&unstored.tenant));
    open.catch_up(&bus).await.unwrap();
    assert_eq!(counts(&open), (4, 2, 2));
    bus.record_ended(&ends).await.unwrap();
    open.catch_up(&bus).await.unwrap();
    assert_eq!(counts(&open), (3, 1, 2));
    // they may just be on their way
    assert!(open.look(&bus, now).await.unwrap().is_empty());
    assert_eq!(counts(&open), (3, 1, 2));
    assert!(open.look(&bus, now + Duration::from_secs(20)).await.unwrap().is_empty());
    assert_eq!(counts(&open), (1, 1, 0));
    // one that is counted here and recorded by somebody else is one
    open.enter(&ends, now, Some(2), 2).unwrap();
    assert_eq!(open.enter(&id("more"), now, Some(2), 2), Err(Full::All(2)));
    assert_eq!(open.enter(&of("ops", "more"), now, Some(2), 9), Err(Full::Tenant(2)));
    open.enter(&id("more"), now, Some(2), 3).unwrap();
    assert!(open.look(&bus, now + Duration::from_secs(20)).await.unwrap().is_empty());
    // a process that starts anew finds the same, and the end that nobody had recorded
    let anew = OpenTasks::default();
    anew.catch_up(&bus).await.unwrap();
    assert_eq!(counts(&anew), (2, 1, 1));
    assert_eq!(counts(&open), (1, 1, 0));
    let old = now + bus_max_age() + hour;
    assert_eq!(anew.look(&bus, old).await.unwrap(), std::slice::from_ref(&held));
    assert!(anew.look(&bus, old).await.unwrap().is_empty(), "not again at once");
    assert_eq!(anew.look(&bus, old + 2 * hour).await.unwrap(), [held]);
}

fn bus_max_age() -> Duration {
    BusConfig::new("").max_age
}

/// An event as schema version 1 stored it.
fn version_1(event: &Event) -> Vec<u8> {
    v1::TrajectoryEvent { version: 1, tenant: String::new(), sequence: 0, ..event.into() }.encode_to_vec()
}

/// A bus as the release before left it: a task that ended and one that runs.
async fn version_1_bus(server: &NatsServer) {
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    for (name, subjects) in
        [("AUTOACT_TRAJECTORY", "autoact.trajectory.*"), ("AUTOACT_TASKS", "autoact.tasks.*"), ("AUTOACT_INDEX", "autoact.index.*")]
    {
        let config = async_nats::jetstream::stream::Config {
            name: name.into(),
            subjects: vec![subjects.into()],
            allow_direct: true,
            ..Default::default()
        };
        jetstream.create_stream(config).await.unwrap();
    }
    let tasks = [("ended", vec![submitted("q"), started(1), finished()]), ("running", vec![submitted("q"), started(1), started(2)])];
    for (name, bodies) in tasks {
        let task = id(name);
        for (body, index) in bodies.into_iter().zip(1..) {
            let bytes = version_1(&event(&task, index, body));
            jetstream.publish(format!("autoact.trajectory.{name}"), bytes.into()).await.unwrap().await.unwrap();
        }
        jetstream.publish(format!("autoact.index.{name}"), "".into()).await.unwrap().await.unwrap();
    }
    jetstream.publish("autoact.tasks.running", "".into()).await.unwrap().await.unwrap();
}

#[tokio::test]
async fn trajectories_of_version_1_are_moved_once() {
    let server = NatsServer::start().await.unwrap();
    version_1_bus(&server).await;
    let error = Bus::connect(config(&server)).await.unwrap_err();
    assert!(matches!(error, BusError::Version1 { events: 6 }), "{error}");
    assert!(error.to_string().contains("autoact migrate"), "{error}");

    let tenant: Tenant = "acme".parse().unwrap();
    let mut told = 0;
    let moved = migrate(config(&server), &tenant, |_| told += 1).await.unwrap();
    assert_eq!((moved, told), (Migrated { tasks: 2, events: 6, queued: 1 }, 2));
    assert_eq!(migrate(config(&server), &tenant, |_| {}).await.unwrap(), Migrated::default());

    let bus = Bus::connect(config(&server)).await.unwrap();
    let listed = bus.list(&tenant, 10, Order::NewestFirst, None).await.unwrap();
    let names: Vec<_> = listed.tasks.iter().map(|head| head.first.task_id.to_string()).collect();
    assert_eq!(names, ["running", "ended"]);
    let ended = Task::fold(&bus.load(&of("acme", "ended")).await.unwrap()).unwrap();
    assert!(ended.finished().is_some() && ended.key().tenant == tenant);
    assert_eq!(bus.backlog().await.unwrap(), 1);
    let entries: Vec<_> = index(&server).await.into_iter().map(|(_, record)| (record.task.id.to_string(), record.entry)).collect();
    assert!(matches!(entries[1], (ref id, IndexEntry::Ended { index: 3, .. }) if id == "ended"), "{entries:?}");
}

#[tokio::test]
async fn a_gateway_of_version_1_does_not_start_beside_this_one() {
    let (server, _bus) = server().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let stream = async_nats::jetstream::new(client).get_stream("AUTOACT_TRAJECTORY").await.unwrap();
    // what the release before compares, and refuses:
    // `stream AUTOACT_TRAJECTORY has subjects …, autoact needs autoact.trajectory.*`
    assert_ne!(stream.cached_info().config.subjects, ["autoact.trajectory.*"]);
}

#[tokio::test]
async fn words_reach_whoever_listens() {
    let (_server, bus) = server().await;
    let mut words = bus.words(&id("t")).await.unwrap();
    let heard = poll::until(LIMIT, async || {
        bus.tell_words(&id("t"), "hm".into()).await;
        bus.tell_words(&id("u"), "no".into()).await;
        tokio::time::timeout(Duration::from_millis(100), words.next()).await.ok().flatten()
    });
    assert_eq!(heard.await.unwrap(), "hm");
}

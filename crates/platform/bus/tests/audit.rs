//! Audits, backups and retention against a real nats-server.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::{Duration, SystemTime};

use autoact_bus::{
    AuditOptions, BackupError, Bus, BusConfig, BusError, Finding, Kind, Order, Purged, Report, Retention, Summary, audit, backup,
    check_durability, restore,
};
use autoact_testkit::{NatsServer, poll};
use autoact_trajectory::{
    Digest, Event, EventBody, FinishReason, Finished, NewArtifact, Started, Submitted, TaskKey, Tenant, Thought, ToolSpec,
};
use autoact_wire::store::PurgeReason;
use futures::StreamExt;

/// Much longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(20);
/// When everything that was stored has long been settled.
const LATER: Duration = Duration::from_secs(3600);

fn config(server: &NatsServer) -> BusConfig {
    BusConfig { max_bytes: 64 << 20, lease: Duration::from_secs(2), ..BusConfig::new(server.url()) }
}

async fn server() -> (NatsServer, Bus) {
    let server = NatsServer::start().await.unwrap();
    let bus = Bus::connect(config(&server)).await.unwrap();
    (server, bus)
}

fn of(tenant: &str, id: &str) -> TaskKey {
    TaskKey::new(tenant.parse().unwrap(), id.parse().unwrap())
}

fn id(text: &str) -> TaskKey {
    of("default", text)
}

fn tool() -> ToolSpec {
    ToolSpec { definition: "finds".into(), usage: "Search[x]".into(), ..ToolSpec::new("Search") }
}

fn bodies(thoughts: usize) -> Vec<EventBody> {
    let submitted = Submitted { question: "q".into(), tools: vec![tool()], ..Submitted::default() };
    let mut bodies = vec![EventBody::Submitted(submitted), EventBody::Started(Started { gateway: "g".into(), attempt: 1 })];
    bodies.extend(
        (0..thoughts).map(|n| EventBody::Thought(Thought { thought: format!("thought {n} {}", "x".repeat(200)), tool: "Search".into() })),
    );
    bodies
}

fn finished() -> EventBody {
    let (answer, detail) = ("42".to_owned(), String::new());
    EventBody::Finished(Finished {
        answer,
        approved: true,
        reason: FinishReason::Approved,
        detail,
        citations: Vec::new(),
        open_effect: None,
        by: String::new(),
    })
}

/// Stores events as a gateway does: each names the one before.
async fn store(bus: &Bus, task: &TaskKey, bodies: Vec<EventBody>) -> Vec<Event> {
    let mut last = bus.last(task).await.unwrap();
    let mut stored = Vec::new();
    for body in bodies {
        let (index, after, previous) = last.as_ref().map_or((0, 0, None), |last| (last.index, last.sequence, last.digest));
        let epoch = u64::from(index > 0);
        // long ago: whoever stored it would have queued its task
        let mut event = Event { previous, epoch, ..Event::new(task, index + 1, SystemTime::now() - LATER, "g", body) };
        let place = bus.append(&event, after).await.unwrap();
        (event.sequence, event.digest) = (place.sequence, Some(place.digest));
        stored.push(event.clone());
        last = Some(event);
    }
    stored
}

/// A task that has ended, as a gateway leaves it.
async fn ended(bus: &Bus, task: &TaskKey, thoughts: usize) -> Vec<Event> {
    bus.record_submission(task).await.unwrap();
    let mut all = bodies(thoughts);
    all.push(finished());
    let stored = store(bus, task, all).await;
    let last = stored.last().unwrap();
    bus.record_end(task, last.index, last.digest).await.unwrap();
    stored
}

/// A task that runs.
async fn running(bus: &Bus, task: &TaskKey, thoughts: usize) -> Vec<Event> {
    bus.record_submission(task).await.unwrap();
    let stored = store(bus, task, bodies(thoughts)).await;
    bus.enqueue(task).await.unwrap();
    stored
}

async fn look(bus: &Bus, against: Option<&Path>) -> Report {
    let backup = against.map(|dir| Summary::read(dir).unwrap());
    audit(bus, AuditOptions { tenant: None, backup }, |_| {}).await.unwrap()
}

fn says(report: &Report, task: &TaskKey, kind: Kind) -> bool {
    report.findings.iter().any(|finding: &Finding| finding.task.as_ref() == Some(task) && finding.kind == kind)
}

async fn stream(server: &NatsServer, name: &str) -> async_nats::jetstream::stream::Stream {
    let client = async_nats::connect(server.url()).await.unwrap();
    async_nats::jetstream::new(client).get_stream(name).await.unwrap()
}

#[tokio::test]
async fn a_whole_bus_has_no_findings_and_every_loss_is_named() {
    let (server, bus) = server().await;
    for number in 0..5 {
        ended(&bus, &id(&format!("e-{number}")), 3).await;
    }
    let runs = running(&bus, &id("runs"), 3).await;
    bus.record_submission(&id("cut-off")).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    backup(&bus, dir.path(), |_| {}).await.unwrap();
    for against in [None, Some(dir.path())] {
        let report = look(&bus, against).await;
        assert_eq!(report.findings, [], "{report:?}");
        assert_eq!((report.tasks, report.ended, report.cut_off, report.events), (6, 5, 1, 5 * 6 + 5));
    }

    let trajectories = stream(&server, "AUTOACT_TRAJECTORIES").await;
    let inner = bus.load(&id("e-0")).await.unwrap()[2].clone();
    trajectories.delete_message(inner.sequence).await.unwrap();
    let end = bus.load(&id("e-1")).await.unwrap().pop().unwrap();
    trajectories.delete_message(end.sequence).await.unwrap();
    trajectories.purge().filter("autoact.default.traj.e-2").await.unwrap();
    trajectories.delete_message(runs.last().unwrap().sequence).await.unwrap();
    let report = look(&bus, None).await;
    assert!(says(&report, &id("e-0"), Kind::Missing) && says(&report, &id("e-1"), Kind::TailMissing), "{report:?}");
    assert!(says(&report, &id("e-2"), Kind::TaskMissing), "{report:?}");
    assert_eq!(report.findings.len(), 3, "{report:?}");
    let report = look(&bus, Some(dir.path())).await;
    let tail = report.findings.iter().find(|finding| finding.task == Some(id("runs"))).unwrap();
    assert_eq!((tail.kind, tail.index), (Kind::TailMissing, Some(5)));

    // somebody's tool writes into a task
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    jetstream.publish("autoact.default.traj.e-3", "nonsense".into()).await.unwrap().await.unwrap();
    let index = stream(&server, "AUTOACT_TASK_INDEX").await;
    index.delete_message(2).await.unwrap();
    let report = look(&bus, None).await;
    assert!(says(&report, &id("e-3"), Kind::Unreadable), "{report:?}");
    assert!(report.findings.iter().any(|finding| finding.kind == Kind::IndexBroken), "{report:?}");
}

/// The files in which the server keeps a stream's messages.
fn blocks(server: &NatsServer, stream: &str) -> Vec<std::path::PathBuf> {
    let dir = server.data().join("jetstream/$G/streams").join(stream).join("msgs");
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "blk")).collect()
}

#[tokio::test]
async fn a_byte_that_is_flipped_on_the_disk_is_named() {
    let (mut server, bus) = server().await;
    for number in 0..5 {
        ended(&bus, &id(&format!("e-{number}")), 3).await;
    }
    let before = bus.load(&id("e-2")).await.unwrap();
    bus.close().await;
    server.restart().await.unwrap();
    server.kill();
    // within a thought of the third task
    let block = blocks(&server, "AUTOACT_TRAJECTORIES").pop().unwrap();
    let mut bytes = std::fs::read(&block).unwrap();
    let subject = b"autoact.default.traj.e-2";
    let third = bytes.windows(subject.len()).enumerate().filter(|(_, window)| window == subject).nth(2).unwrap().0;
    let text = b"thought 0 xxx";
    let at = third + bytes[third..].windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    std::fs::write(&block, bytes).unwrap();
    server.resume().await.unwrap();
    let bus = Bus::attach(config(&server)).await.unwrap();
    let report = look(&bus, None).await;
    assert!(report.findings.iter().any(|finding| finding.task == Some(id("e-2"))), "{report:?} {}", before.len());
}

#[tokio::test]
async fn artifacts_that_are_gone_or_have_other_bytes_are_named() {
    let (server, bus) = server().await;
    let mut objects = Vec::new();
    for number in 0..4_u8 {
        let task = id(&format!("t-{number}"));
        // several parts of an object
        let data = (0..300_000_u32).map(|at| at.to_le_bytes()[0] ^ number).collect();
        let artifact = NewArtifact { kind: "table".into(), media_type: "text/csv".into(), name: "a".into(), text: "a".into(), data };
        let kept = bus.keep_artifact(&task, &artifact).await.unwrap();
        bus.record_submission(&task).await.unwrap();
        store(&bus, &task, bodies(1)).await;
        let last = bus.last(&task).await.unwrap().unwrap();
        let time = SystemTime::now() - LATER;
        let mut event = Event { previous: last.digest, epoch: 1, ..Event::new(&task, last.index + 1, time, "g", finished()) };
        event.artifacts = vec![kept.clone()];
        let place = bus.append(&event, last.sequence).await.unwrap();
        bus.record_end(&task, event.index, Some(place.digest)).await.unwrap();
        objects.push(kept.object);
    }
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.artifacts), (&[][..], 4), "{report:?}");

    let client = async_nats::connect(server.url()).await.unwrap();
    let stored = async_nats::jetstream::new(client).get_object_store("AUTOACT_ARTIFACTS_default").await.unwrap();
    let parts = stream(&server, "OBJ_AUTOACT_ARTIFACTS_default").await;
    stored.delete(&objects[0]).await.unwrap();
    // one part of it
    let nuid = stored.info(&objects[1]).await.unwrap().nuid;
    let part = parts.get_last_raw_message_by_subject(&format!("$O.AUTOACT_ARTIFACTS_default.C.{nuid}")).await.unwrap();
    parts.delete_message(part.sequence).await.unwrap();
    // as many bytes, one of them another
    let mut data: Vec<u8> = (0..300_000_u32).map(|at| at.to_le_bytes()[0] ^ 2).collect();
    data[200_000] ^= 1;
    stored.put(objects[2].as_str(), &mut data.as_slice()).await.unwrap();
    let report = look(&bus, None).await;
    assert!(says(&report, &id("t-0"), Kind::ArtifactMissing), "{report:?}");
    assert!(says(&report, &id("t-1"), Kind::ArtifactChanged) && says(&report, &id("t-2"), Kind::ArtifactChanged), "{report:?}");
    assert_eq!(report.findings.len(), 3, "{report:?}");
}

#[tokio::test]
async fn what_is_removed_on_purpose_is_no_finding() {
    let (server, bus) = server().await;
    let artifact =
        NewArtifact { kind: "table".into(), media_type: "text/csv".into(), name: "a".into(), text: "a".into(), data: vec![1; 100] };
    let (old, runs) = (id("old"), id("runs"));
    let kept = bus.keep_artifact(&old, &artifact).await.unwrap();
    bus.record_submission(&old).await.unwrap();
    store(&bus, &old, bodies(2)).await;
    let last = bus.last(&old).await.unwrap().unwrap();
    let mut event = Event { previous: last.digest, epoch: 1, ..Event::new(&old, last.index + 1, SystemTime::now(), "g", finished()) };
    event.artifacts = vec![kept.clone()];
    let place = bus.append(&event, last.sequence).await.unwrap();
    // nobody has recorded its end yet
    running(&bus, &runs, 2).await;
    ended(&bus, &of("acme", "theirs"), 2).await;
    assert_eq!(bus.purge_task(&runs, PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::NotEnded);
    assert_eq!(bus.purge_task(&old, PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::Done);
    assert_eq!(bus.purge_task(&old, PurgeReason::Request { by: "ann".into() }).await.unwrap(), Purged::NotThere);
    assert!(place.sequence > 0 && bus.last(&old).await.unwrap().is_none());
    assert!(matches!(bus.artifact(&old, &kept).await, Err(BusError::MissingArtifact { .. })));
    assert!(!bus.record_loss(&old).await.unwrap(), "a lease that is left over is no loss");
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.purged), (&[][..], 1), "{report:?}");

    // the same name again
    ended(&bus, &old, 1).await;
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.purged), (&[][..], 0), "{report:?}");
    let acme: Tenant = "acme".parse().unwrap();
    let mut told = Vec::new();
    assert_eq!(bus.purge_ended(&acme, SystemTime::now(), "ann", |task| told.push(task.clone())).await.unwrap(), 1);
    assert_eq!(told, [of("acme", "theirs")]);
    assert_eq!(look(&bus, None).await.findings, []);
    drop(server);
}

#[tokio::test]
async fn a_lost_task_in_the_queue_is_recorded() {
    let (server, bus) = server().await;
    running(&bus, &id("t"), 1).await;
    stream(&server, "AUTOACT_TRAJECTORIES").await.purge().filter("autoact.default.traj.t").await.unwrap();
    assert!(says(&look(&bus, None).await, &id("t"), Kind::TaskMissing));
    assert!(bus.record_loss(&id("t")).await.unwrap());
    let mut leases = bus.leases(&[Tenant::default()]).await.unwrap();
    tokio::time::timeout(LIMIT, leases.next()).await.unwrap().ack().await.unwrap();
    assert!(says(&look(&bus, None).await, &id("t"), Kind::TaskMissing), "also once it has left the queue");
}

#[tokio::test]
async fn retention_removes_the_oldest_ended_tasks_and_never_a_running_one() {
    let server = NatsServer::start().await.unwrap();
    // room for some hundred and fifty tasks of 1.6 KB
    let bus = Bus::connect(BusConfig { max_bytes: 256 << 10, ..config(&server) }).await.unwrap();
    let long = id("long");
    let mut mine = running(&bus, &long, 1).await;
    let queued = running(&bus, &id("queued"), 0).await;
    let mut retention = Retention::default();
    let mut purged = 0;
    for number in 0..1000 {
        ended(&bus, &id(&format!("short-{number}")), 1).await;
        if number % 10 == 0 {
            let thought = EventBody::Thought(Thought { thought: "still here".into(), tool: "Search".into() });
            mine.extend(store(&bus, &long, vec![thought]).await);
            purged += retention.step(&bus, SystemTime::now()).await.unwrap().purged.len();
        }
    }
    assert!(purged > 700, "{purged}");
    assert_eq!(bus.load(&long).await.unwrap(), mine);
    assert_eq!(bus.load(&id("queued")).await.unwrap().len(), queued.len());
    assert!(bus.last(&id("short-0")).await.unwrap().is_none() && bus.last(&id("short-999")).await.unwrap().is_some());
    let report = look(&bus, None).await;
    assert_eq!((report.findings.as_slice(), report.purged), (&[][..], purged as u64), "{report:?}");
    // what is old goes too, and a new process begins at the beginning
    let later = SystemTime::now() + BusConfig::new("").max_age + LATER;
    let mut retention = Retention::default();
    while retention.step(&bus, later).await.unwrap().more {}
    assert!(bus.last(&id("short-999")).await.unwrap().is_none());
    assert_eq!(bus.load(&long).await.unwrap(), mine);
    assert_eq!(look(&bus, None).await.findings, []);
}

#[tokio::test]
async fn a_full_bus_of_running_tasks_refuses_and_loses_nothing() {
    let server = NatsServer::start().await.unwrap();
    let bus = Bus::connect(BusConfig { max_bytes: 64 << 10, ..config(&server) }).await.unwrap();
    let task = id("t");
    running(&bus, &task, 0).await;
    let mut stored = 2;
    let refused = loop {
        let last = bus.last(&task).await.unwrap().unwrap();
        let body = EventBody::Thought(Thought { thought: "x".repeat(4000), tool: "Search".into() });
        let event = Event { previous: last.digest, epoch: 1, ..Event::new(&task, last.index + 1, SystemTime::now(), "g", body) };
        match bus.append(&event, last.sequence).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, BusError::Full { .. }) && refused.retryable(), "{refused}");
    assert!(Retention::default().step(&bus, SystemTime::now()).await.unwrap().purged.is_empty());
    assert_eq!(bus.load(&task).await.unwrap().len(), stored);
}

/// Everything of a task, as it is stored.
async fn digests(bus: &Bus, task: &TaskKey) -> Vec<(u64, Option<Digest>)> {
    bus.load(task).await.unwrap().iter().map(|event| (event.index, event.digest)).collect()
}

#[tokio::test]
async fn a_backup_brings_everything_back() {
    let (_server, bus) = server().await;
    let dir = tempfile::tempdir().unwrap();
    let artifact =
        NewArtifact { kind: "table".into(), media_type: "text/csv".into(), name: "a".into(), text: "a".into(), data: vec![7; 300_000] };
    let kept = bus.keep_artifact(&id("one"), &artifact).await.unwrap();
    ended(&bus, &id("one"), 2).await;
    ended(&bus, &id("gone"), 2).await;
    running(&bus, &id("runs"), 2).await;
    bus.put_into_outbox(&id("one"), "c", b"remember".to_vec()).await.unwrap();
    let first = backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert!(first.first && first.events == 5 + 5 + 4 && first.tools == 1 && first.artifacts == 1 && first.outbox == 1, "{first:?}");

    // only what is new
    ended(&bus, &of("acme", "two"), 2).await;
    let thought = EventBody::Thought(Thought { thought: "later".into(), tool: "Search".into() });
    store(&bus, &id("runs"), vec![thought]).await;
    bus.purge_task(&id("gone"), PurgeReason::Request { by: "ann".into() }).await.unwrap();
    let second = backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert_eq!((second.first, second.events, second.records, second.artifacts), (false, 6, 3, 0), "{second:?}");
    let third = backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert_eq!((third.events, third.records, third.tools), (0, 0, 0));

    let other = NatsServer::start().await.unwrap();
    let restored = Bus::connect(config(&other)).await.unwrap();
    let brought = restore(&restored, dir.path(), None, |_| {}).await.unwrap();
    assert_eq!((brought.tasks, brought.queued, brought.artifacts, brought.outbox, brought.events), (3, 1, 1, 1, 5 + 5 + 5), "{brought:?}");
    for task in [id("one"), of("acme", "two"), id("runs")] {
        assert_eq!(digests(&restored, &task).await, digests(&bus, &task).await);
    }
    assert!(restored.last(&id("gone")).await.unwrap().is_none());
    assert_eq!(restored.artifact(&id("one"), &kept).await.unwrap(), artifact.data);
    let report = look(&restored, Some(dir.path())).await;
    assert_eq!(report.findings, [], "{report:?}");
    let mut leases = restored.leases(&[Tenant::default()]).await.unwrap();
    assert_eq!(tokio::time::timeout(LIMIT, leases.next()).await.unwrap().task(), &id("runs"));
    // the chain goes on
    store(&restored, &id("runs"), vec![finished()]).await;
    let last = restored.last(&id("runs")).await.unwrap().unwrap();
    restored.record_end(&id("runs"), last.index, last.digest).await.unwrap();
    assert_eq!(look(&restored, Some(dir.path())).await.findings, []);

    // not twice, and not over another
    assert!(matches!(restore(&restored, dir.path(), None, |_| {}).await, Err(BackupError::NotEmpty { .. })));
    assert!(matches!(backup(&restored, dir.path(), |_| {}).await, Err(BackupError::OtherBus { .. })));

    // one tenant's part, beside others
    let third = NatsServer::start().await.unwrap();
    let beside = Bus::connect(config(&third)).await.unwrap();
    ended(&beside, &id("mine"), 1).await;
    let acme: Tenant = "acme".parse().unwrap();
    let brought = restore(&beside, dir.path(), Some(&acme), |_| {}).await.unwrap();
    assert_eq!((brought.tasks, brought.events), (1, 5));
    assert_eq!(digests(&beside, &of("acme", "two")).await, digests(&bus, &of("acme", "two")).await);
    assert_eq!(look(&beside, None).await.findings, []);
}

#[tokio::test]
async fn a_damaged_backup_is_refused_and_an_interrupted_one_is_the_one_before() {
    let (_server, bus) = server().await;
    let dir = tempfile::tempdir().unwrap();
    ended(&bus, &id("one"), 2).await;
    backup(&bus, dir.path(), |_| {}).await.unwrap();
    // an interrupted run leaves files that the manifest does not name
    std::fs::write(dir.path().join("trajectories-000002-000.seg"), b"half").unwrap();
    assert_eq!(Summary::read(dir.path()).unwrap().tasks.len(), 1);
    ended(&bus, &id("two"), 2).await;
    backup(&bus, dir.path(), |_| {}).await.unwrap();
    assert_eq!(Summary::read(dir.path()).unwrap().tasks.len(), 2);

    let other = NatsServer::start().await.unwrap();
    let empty = Bus::connect(config(&other)).await.unwrap();
    let mut names: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.extension().is_some_and(|extension| extension == "seg" || extension == "json"));
    assert!(names.len() >= 5);
    for path in names {
        let whole = std::fs::read(&path).unwrap();
        for damage in 0..3 {
            let mut bytes = whole.clone();
            match damage {
                0 => {
                    let middle = bytes.len() / 2;
                    bytes[middle] ^= 0x10;
                    std::fs::write(&path, bytes).unwrap();
                }
                1 => {
                    bytes.pop();
                    bytes.pop();
                    std::fs::write(&path, bytes).unwrap();
                }
                _ => std::fs::remove_file(&path).unwrap(),
            }
            let error = restore(&empty, dir.path(), None, |_| {}).await.unwrap_err();
            assert!(matches!(error, BackupError::Damaged { .. } | BackupError::None { .. }), "{error}");
            std::fs::write(&path, &whole).unwrap();
        }
    }
    assert!(empty.last(&id("one")).await.unwrap().is_none(), "nothing was restored");
    restore(&empty, dir.path(), None, |_| {}).await.unwrap();
}

#[tokio::test]
async fn streams_that_vanish_are_an_error_and_are_not_made_anew() {
    let (mut server, bus) = server().await;
    let runs = running(&bus, &id("t"), 1).await;
    let mut reader = Box::pin(bus.read(&id("t"), runs.last().unwrap().sequence));
    let watcher = tokio::spawn(async move { reader.next().await });
    let mut leases = bus.leases(&[Tenant::default()]).await.unwrap();
    tokio::time::timeout(LIMIT, leases.next()).await.unwrap().nak(Duration::ZERO).await.unwrap();
    let waits = tokio::spawn(async move { leases.next().await.task().clone() });
    bus.answers().await.unwrap();
    server.lose_disk();
    server.resume().await.unwrap();
    let lost = poll::until(LIMIT, async || matches!(bus.answers().await, Err(BusError::Vanished { .. })).then_some(()));
    assert!(lost.await.is_some(), "the gateway is not ready, and says why");
    let told = tokio::time::timeout(LIMIT, watcher).await.unwrap().unwrap();
    assert!(matches!(told, Some(Err(BusError::Vanished { .. }))), "{told:?}");
    assert!(matches!(bus.last(&id("t")).await, Err(BusError::Vanished { .. })));
    assert!(matches!(bus.record_submission(&id("u")).await, Err(BusError::Vanished { .. })));
    let client = async_nats::connect(server.url()).await.unwrap();
    let streams: Vec<String> = async_nats::jetstream::new(client).stream_names().map(Result::unwrap).collect().await;
    assert_eq!(streams, Vec::<String>::new());
    // another process starts there, and makes them: this one knows that they are others
    let fresh = Bus::connect(config(&server)).await.unwrap();
    assert!(fresh.answers().await.is_ok() && matches!(bus.answers().await, Err(BusError::Vanished { .. })));
    waits.abort();
}

#[tokio::test]
async fn a_bus_that_lacks_a_stream_is_refused() {
    let (server, bus) = server().await;
    ended(&bus, &id("t"), 1).await;
    let client = async_nats::connect(server.url()).await.unwrap();
    async_nats::jetstream::new(client).delete_stream("AUTOACT_TASK_INDEX").await.unwrap();
    for error in [Bus::connect(config(&server)).await.unwrap_err(), Bus::attach(config(&server)).await.unwrap_err()] {
        assert!(matches!(&error, BusError::Vanished { stream } if stream == "AUTOACT_TASK_INDEX"), "{error}");
        assert!(!error.retryable());
    }
}

#[tokio::test]
async fn streams_that_dropped_by_themselves_are_taken_over() {
    let (server, bus) = server().await;
    ended(&bus, &id("old"), 2).await;
    running(&bus, &id("runs"), 2).await;
    bus.close().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    for name in ["AUTOACT_TRAJECTORIES", "AUTOACT_TASK_INDEX"] {
        let mut config = jetstream.get_stream(name).await.unwrap().cached_info().config.clone();
        config.discard = async_nats::jetstream::stream::DiscardPolicy::Old;
        jetstream.update_stream(config).await.unwrap();
    }
    // as a full stream did: the first events and records are gone
    jetstream.get_stream("AUTOACT_TRAJECTORIES").await.unwrap().purge().sequence(4).await.unwrap();
    jetstream.get_stream("AUTOACT_TASK_INDEX").await.unwrap().purge().sequence(2).await.unwrap();
    let bus = Bus::connect(config(&server)).await.unwrap();
    let report = look(&bus, None).await;
    assert_eq!(report.findings, [], "{report:?}");
    let found = jetstream.get_stream("AUTOACT_TRAJECTORIES").await.unwrap().cached_info().config.clone();
    assert_eq!(found.discard, async_nats::jetstream::stream::DiscardPolicy::New);
    // what goes from now on is a loss
    ended(&bus, &id("new"), 2).await;
    stream(&server, "AUTOACT_TRAJECTORIES").await.purge().filter("autoact.default.traj.new").await.unwrap();
    assert!(says(&look(&bus, None).await, &id("new"), Kind::TaskMissing));
}

#[tokio::test]
async fn a_server_says_whether_it_writes_before_it_acknowledges() {
    let safe = NatsServer::start_with("http: \"127.0.0.1:-1\"\njetstream { sync_interval: always }\n").await.unwrap();
    let unsafe_one = NatsServer::start_with("http: \"127.0.0.1:-1\"\n").await.unwrap();
    let (safe, unsafe_one) =
        (safe.monitoring().map(|url| (safe, url)).unwrap(), unsafe_one.monitoring().map(|url| (unsafe_one, url)).unwrap());
    check_durability(&safe.1).await.unwrap();
    assert!(matches!(check_durability(&unsafe_one.1).await, Err(BusError::Unsynced { .. })));
    // each server of a cluster counts
    assert!(matches!(check_durability(&format!("{}, {}", safe.1, unsafe_one.1)).await, Err(BusError::Unsynced { .. })));
    assert!(matches!(check_durability("").await, Err(BusError::UnknownDurability)));
    for nobody in ["http://127.0.0.1:1".to_owned(), "nowhere".to_owned(), safe.0.url().replace("nats", "http")] {
        let error = check_durability(&nobody).await.unwrap_err();
        assert!(matches!(error, BusError::Monitoring { .. }) && error.retryable(), "{error}");
    }
}

#[tokio::test]
async fn an_index_that_is_nearly_full_loses_its_older_half_and_says_so() {
    let (server, bus) = server().await;
    let (long, gone) = (id("long"), id("short-0"));
    let mine = running(&bus, &long, 1).await;
    bus.close().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let mut small = jetstream.get_stream("AUTOACT_TASK_INDEX").await.unwrap().cached_info().config.clone();
    small.max_bytes = 64 << 10;
    jetstream.update_stream(small).await.unwrap();
    let bus = Bus::connect(config(&server)).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let (mut retention, mut trimmed) = (Retention::default(), 0);
    for number in 0..150 {
        ended(&bus, &id(&format!("short-{number}")), 0).await;
        if number == 20 {
            backup(&bus, dir.path(), |_| {}).await.unwrap();
        }
        if number % 10 == 0 {
            trimmed += retention.step(&bus, SystemTime::now()).await.unwrap().trimmed;
        }
    }
    assert!(trimmed > 100, "{trimmed}");
    assert!(bus.last(&gone).await.unwrap().is_none());
    assert_eq!(bus.load(&long).await.unwrap(), mine);
    let page = bus.list(&Tenant::default(), 1000, Order::NewestFirst, None).await.unwrap();
    assert!(page.tasks.iter().any(|head| head.first.task_id == long.id), "a task that runs is listed for ever");
    for against in [None, Some(dir.path())] {
        let report = look(&bus, against).await;
        assert_eq!(report.findings, [], "{report:?}");
    }
    // what the index alone remembers is not enough for the old backup to go on
    assert!(matches!(backup(&bus, dir.path(), |_| {}).await, Err(BackupError::OtherBus { .. })));
}

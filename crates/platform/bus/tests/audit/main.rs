//! Audits, backups and retention against a real nats-server.
#![allow(clippy::unwrap_used)]

mod backups;
mod findings;
mod room;
mod streams;

use std::path::Path;
use std::time::{Duration, SystemTime};

use autoact_bus::{AuditOptions, Bus, BusConfig, Finding, Kind, Report, Summary, audit};
use autoact_testkit::NatsServer;
use autoact_trajectory::{Event, EventBody, FinishReason, Finished, Started, Submitted, TaskKey, Thought, ToolSpec};

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

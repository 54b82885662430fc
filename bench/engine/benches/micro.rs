//! Small things that happen at every step. Kernels have
//! `crates/engine/kernels/examples/kernel_throughput.rs`, grammar masks
//! `crates/engine/model/examples/promises.rs`.
//!
//! `cargo bench -p autoact-bench --bench micro [-- decide]`; the bus needs a nats-server
//! (`scripts/fetch-nats`).
#![allow(clippy::unwrap_used, clippy::missing_docs_in_private_items, missing_docs)] // a benchmark

use std::hint::black_box;
use std::path::Path;
use std::time::SystemTime;

use autoact_bus::{Bus, BusConfig};
use autoact_model::{Backend, Engine, EngineOptions, GenerateRequest, ModelDir};
use autoact_prompt::transcript;
use autoact_testkit::NatsServer;
use autoact_trajectory::{
    Action, Event, EventBody, Limits, Observation, Started, Submitted, Task, TaskKey, Tenant, Thought, ToolSpec, decide,
};
use criterion::{Criterion, criterion_group, criterion_main};
use tokio::runtime::Runtime;

/// Planning loops of the task that is looked at.
const STEPS: usize = 20;
const OBSERVATION: &str = "Kenya is a country in Africa. Its capital is Nairobi. The highest mountain of Kenya is Mount Kenya. Its \
                           currency is the Kenyan shilling. Its calling code is +254. It has an area of 580367 km².";

fn event(task: &TaskKey, index: u64, body: EventBody) -> Event {
    Event { sequence: index, ..Event::new(task, index, SystemTime::now(), "bench", body) }
}

/// A task in the middle of its work.
fn events() -> Vec<Event> {
    let tool = ToolSpec {
        definition: "Reads a page.".into(),
        usage: "Retrieve[title]".into(),
        max_observation_bytes: 2048,
        ..ToolSpec::new("Retrieve")
    };
    let limits = Limits { max_steps: 100, ..Limits::default() };
    let question = "What is the currency of the country of Mount Kenya?".into();
    let mut bodies = vec![
        EventBody::Submitted(Submitted { question, tools: vec![tool], limits, ..Submitted::default() }),
        EventBody::Started(Started { gateway: "bench".into(), attempt: 1 }),
    ];
    for step in 0..STEPS {
        bodies.push(EventBody::Thought(Thought { thought: format!("I need page {step}."), tool: "Retrieve".into() }));
        bodies.push(EventBody::Action(Action { tool: "Retrieve".into(), params: format!("Page {step}") }));
        bodies.push(EventBody::Observation(Observation { text: OBSERVATION.into(), ..Observation::default() }));
    }
    let task = TaskKey::new(Tenant::default(), "bench".parse().unwrap());
    bodies.into_iter().zip(1..).map(|(body, index)| event(&task, index, body)).collect()
}

fn domain(c: &mut Criterion) {
    let events = events();
    let task = Task::fold(&events).unwrap();
    let now = SystemTime::now();
    c.bench_function("decide", |b| b.iter(|| decide(black_box(&task), now)));
    c.bench_function("fold 62 events", |b| b.iter(|| Task::fold(black_box(&events))));
    c.bench_function("transcript of 20 steps", |b| b.iter(|| transcript(black_box(task.trajectory()))));
}

fn bus(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let Ok(server) = runtime.block_on(NatsServer::start()) else {
        eprintln!("append: left out, no nats-server (fix: `scripts/fetch-nats`)");
        return;
    };
    let bus = runtime.block_on(Bus::connect(BusConfig { max_bytes: 512 << 20, ..BusConfig::new(server.url()) })).unwrap();
    let task = TaskKey::new(Tenant::default(), "append".parse().unwrap());
    let (mut index, mut last) = (0, 0);
    c.bench_function("append to the bus", |b| {
        b.iter(|| {
            index += 1;
            let body = EventBody::Observation(Observation { text: OBSERVATION.into(), ..Observation::default() });
            last = runtime.block_on(bus.append(&event(&task, index, body), last)).unwrap().sequence;
        });
    });
}

/// A request as the agents send it, over what the engine keeps of earlier prompts: looking the
/// prompt up, and one token.
fn prefixes(c: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let stem = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/stem");
    let engine = Engine::start(&ModelDir::open(stem).unwrap(), EngineOptions { threads: 1, ..EngineOptions::default() }).unwrap();
    let ask = |prompt: &str| {
        let request = GenerateRequest { max_tokens: 1, ..GenerateRequest::new(prompt) };
        runtime.block_on(async { engine.generate(request).unwrap().finish().await.unwrap() })
    };
    // others that begin like it, so that there is a tree to walk
    let long = format!("{}Thought:", format!("Observation: {OBSERVATION}\n").repeat(8));
    for at in 1..64 {
        ask(&format!("{}Thought: {at}", &long[..long.len() * at / 64]));
    }
    let tokens = ask(&long).prompt_tokens;
    c.bench_function("one token after a short prompt", |b| b.iter(|| ask("Thought:")));
    c.bench_function(&format!("one token after {tokens} known tokens"), |b| b.iter(|| ask(&long)));
}

criterion_group!(benches, domain, bus, prefixes);
criterion_main!(benches);

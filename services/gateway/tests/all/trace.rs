//! One trace per task, from the client's call over the bus to the planning loop. One test: a
//! process has one subscriber.

use std::time::Duration;

use crate::common::scripted::{Group, Script};
use crate::common::*;
use autoact_config::TelemetryConfig;
use autoact_telemetry::testing::{Collector, Received};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_one_trace_over_the_bus() {
    let collector = Collector::start().await.unwrap();
    let telemetry = TelemetryConfig { otlp_endpoint: Some(collector.endpoint()), log_level: "warn".into(), ..Default::default() };
    let guard = autoact_telemetry::init(&telemetry, "gateway", "0").unwrap();
    let mut world = world(Group::start(Script::default()).await).await;
    ask(&mut world.client, named("t", "Loire")).await;
    // spans leave when they end; the gateway has none left when it has stopped
    world.gateway.stop().await.unwrap();
    guard.flush().await;

    let is_append = |span: &&Received| span.span.name == "publish autoact.trajectory";
    let spans = collector.wait(Duration::from_secs(10), |spans| spans.iter().filter(is_append).count() >= 9).await;
    let only = |name: &str| {
        let found: Vec<&Received> = spans.iter().filter(|span| span.span.name == name).collect();
        assert_eq!(found.len(), 1, "`{name}` in {:?}", spans.iter().map(|span| &span.span.name).collect::<Vec<_>>());
        found[0]
    };
    let (asked, workflow) = (only("autoact.v1.Gateway/Ask"), only("invoke_workflow autoact"));
    assert!(asked.span.parent_span_id.is_empty());
    assert_eq!(workflow.span.parent_span_id, asked.span.span_id, "the trace goes on over the queue");
    assert_eq!(workflow.attribute("gen_ai.conversation.id").as_deref(), Some("t"));
    for agent in ["invoke_agent plan", "invoke_agent tool", "invoke_agent reflect"] {
        let mut calls = spans.iter().filter(|span| span.span.name == agent).peekable();
        assert!(calls.peek().is_some(), "{agent}");
        assert!(calls.all(|call| call.span.parent_span_id == workflow.span.span_id), "{agent}");
    }
    for append in spans.iter().filter(is_append) {
        assert_eq!(append.attribute("messaging.system").as_deref(), Some("nats"));
        let parent = if append.attribute("autoact.event").as_deref() == Some("submitted") { asked } else { workflow };
        assert_eq!(append.span.parent_span_id, parent.span.span_id, "{append:?}");
    }
    assert!(spans.iter().all(|span| span.span.trace_id == asked.span.trace_id), "one trace");
    guard.shutdown().await;
}

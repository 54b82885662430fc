//! One trace per task, through every process and the bus.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use autoact_telemetry::testing::{Collector, Received};
use autoact_testkit::{Group, GroupOptions};

use crate::clients::{QUESTION, TASK_LIMIT, ask, finished, gateway, task};

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_one_trace_through_every_process() -> anyhow::Result<()> {
    let collector = Collector::start().await?;
    let env = vec![("AUTOACT_TELEMETRY__OTLP_ENDPOINT".to_owned(), collector.endpoint())];
    let group = Group::start_with(GroupOptions { env, ..GroupOptions::default() }).await?;
    let mut client = gateway(&group.gateway())?;
    let mut wanted = task(QUESTION);
    if !group.assets().trained {
        // a random model may never finish by itself: three steps are enough to see every process
        // but reflect-agent
        wanted.limits = Some(autoact_wire::v1::Limits { max_steps: Some(3), ..Default::default() });
    }
    let events = autoact_testkit::within(TASK_LIMIT, "a task", ask(&mut client, wanted)).await??;
    let reflected = events.iter().any(|event| matches!(event.body, Some(autoact_wire::v1::trajectory_event::Body::Reflection(_))));
    let executed = events.iter().any(|event| matches!(event.body, Some(autoact_wire::v1::trajectory_event::Body::Observation(_))));
    finished(&events)?;

    let mut services = vec!["gateway", "plan-agent", "tool-agent"];
    services.extend(reflected.then_some("reflect-agent"));
    // spans arrive in batches and out of order: wait until every service is there and no parent is
    // missing
    let all = collector
        .wait(Duration::from_secs(30), |spans| services.iter().all(|service| served(spans, service)) && orphans(spans).is_empty())
        .await;
    let of_task: Vec<&Received> = all.iter().collect();
    let traces: BTreeMap<&[u8], BTreeSet<&str>> = of_task.iter().fold(BTreeMap::new(), |mut traces, received| {
        traces.entry(&received.span.trace_id).or_insert_with(BTreeSet::new).insert(&received.service);
        traces
    });
    let found: BTreeSet<&str> = of_task.iter().map(|received| received.service.as_str()).collect();
    for service in &services {
        assert!(found.contains(service), "no span of {service}; spans: {}", names(&all));
    }
    assert_eq!(traces.len(), 1, "one task is one trace; spans: {}", names(&all));

    let roots: Vec<&&Received> = of_task.iter().filter(|received| received.span.parent_span_id.is_empty()).collect();
    assert_eq!(roots.len(), 1, "one root; spans: {}", names(&all));
    assert!(orphans(&all).is_empty(), "spans without their parent: {:?}; spans: {}", orphans(&all), names(&all));

    let operations: BTreeSet<String> = of_task.iter().filter_map(|received| received.attribute("gen_ai.operation.name")).collect();
    assert!(operations.contains("chat"), "{operations:?}");
    assert_eq!(operations.contains("execute_tool"), executed, "{operations:?}");
    let chat = of_task.iter().find(|received| received.attribute("gen_ai.operation.name").as_deref() == Some("chat"));
    for attribute in ["gen_ai.agent.name", "gen_ai.request.model", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"] {
        assert!(chat.is_some_and(|chat| chat.attribute(attribute).is_some()), "a chat span has `{attribute}`");
    }
    // prompts and replies stay out of traces unless asked for
    assert!(of_task.iter().all(|received| received.attribute("gen_ai.input.messages").is_none()), "content is in the trace");
    let bus = of_task.iter().any(|received| received.attribute("messaging.system").as_deref() == Some("nats"));
    assert!(bus, "no span of the bus; spans: {}", names(&all));
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

/// Whether a service's span of a call has arrived.
fn served(spans: &[Received], service: &str) -> bool {
    spans.iter().any(|received| received.service == service && received.attribute("rpc.system").is_some())
}

/// The spans whose parent has not arrived.
fn orphans(spans: &[Received]) -> Vec<&str> {
    let ids: BTreeSet<&[u8]> = spans.iter().map(|received| received.span.span_id.as_slice()).collect();
    let orphans = spans.iter().filter(|received| {
        let parent = received.span.parent_span_id.as_slice();
        !parent.is_empty() && !ids.contains(parent)
    });
    orphans.map(|received| received.span.name.as_str()).collect()
}

fn names(spans: &[Received]) -> String {
    let lines = spans.iter().map(|received| {
        let hex = |bytes: &[u8]| bytes.iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
        let span = &received.span;
        format!("\n  {} {:<40} {} {} ← {}", hex(&span.trace_id), span.name, received.service, hex(&span.span_id), hex(&span.parent_span_id))
    });
    lines.collect()
}

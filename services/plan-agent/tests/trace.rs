//! The trace of one call, as a collector sees it. One test: a process has one subscriber.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::sync::Arc;
use std::time::Duration;

use autoact_agent::testing::{ScriptedBackend, history};
use autoact_agent::{Agent, AgentOptions};
use autoact_config::{Common, TelemetryConfig};
use autoact_service::Setup;
use autoact_telemetry::gen_ai;
use autoact_telemetry::propagate::TraceInterceptor;
use autoact_telemetry::testing::Collector;
use autoact_trajectory::Role;
use autoact_wire::agents_v1::PlanRequest;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use plan_agent::PlanAgentConfig;
use tracing::Instrument;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_the_model_is_a_span_of_its_callers_trace() {
    let collector = Collector::start().await.unwrap();
    let config = TelemetryConfig { otlp_endpoint: Some(collector.endpoint()), log_level: "warn".into(), ..TelemetryConfig::default() };
    let telemetry = autoact_telemetry::init(&config, "plan-agent", "0").unwrap();

    let mut setup = Setup::bind("plan-agent", Common::on_ports(0, 0)).await.unwrap();
    let backend = Arc::new(ScriptedBackend::saying(" I know.\nAction: Finish\n").with_adapter("plan"));
    let options = AgentOptions { adapter: Some("plan".into()), ..AgentOptions::default() };
    autoact_agent::install(Arc::new(Agent::new(Role::Plan, backend, options)), (), &PlanAgentConfig::default(), &mut setup);
    let running = setup.finish().await.unwrap().start();

    let channel = autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap();
    let mut client = PlanAgentClient::with_interceptor(channel, TraceInterceptor);
    async {
        let request = PlanRequest { trajectory: Some(history(vec![])), sampling: None, ..Default::default() };
        let mut stream = client.plan(request).await.unwrap().into_inner();
        while stream.message().await.unwrap().is_some() {}
    }
    .instrument(tracing::info_span!("caller"))
    .await;
    running.stop().await.unwrap();
    telemetry.flush().await;

    let spans = collector.wait(Duration::from_secs(10), |spans| spans.len() >= 3).await;
    let find = |name: &str| spans.iter().find(|span| span.span.name == name).unwrap_or_else(|| panic!("no span `{name}` in {spans:#?}"));
    let (caller, call, chat) = (find("caller"), find("autoact.agents.v1.PlanAgent/Plan"), find("chat scripted"));
    assert_eq!(call.span.parent_span_id, caller.span.span_id);
    assert_eq!(chat.span.parent_span_id, call.span.span_id);
    assert_eq!(chat.span.trace_id, caller.span.trace_id);
    for (name, value) in [
        (gen_ai::OPERATION_NAME, "chat"),
        (gen_ai::AGENT_NAME, "plan"),
        (gen_ai::REQUEST_MODEL, "scripted"),
        (gen_ai::CONVERSATION_ID, "task-1"),
        (gen_ai::ADAPTER_NAME, "plan"),
        (gen_ai::USAGE_OUTPUT_TOKENS, "4"),
    ] {
        assert_eq!(chat.attribute(name).as_deref(), Some(value), "{name}");
    }
    assert_eq!(chat.attribute(gen_ai::INPUT_MESSAGES), None, "content stays out unless asked for");
    assert_eq!(call.attribute("rpc.grpc.status_code").as_deref(), Some("0"));
}

//! One trace across a client and a server, as a collector sees it. One test: a process has one
//! subscriber.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::collections::HashMap;
use std::time::Duration;

use autoact_config::TelemetryConfig;
use autoact_telemetry::propagate::{self, TraceInterceptor};
use autoact_telemetry::testing::Collector;
use autoact_telemetry::{Methods, ServerTraceLayer, gen_ai, init, prometheus};
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::memory_v1::memory_server::{Memory, MemoryServer};
use autoact_wire::memory_v1::{
    ForgetRequest, ForgetResponse, GetMemoryRequest, GetMemoryResponse, ListMemoriesRequest, ListMemoriesResponse, RecallRequest,
    RecallResponse, RememberRequest, RememberResponse,
};
use tokio::net::TcpListener;
use tonic::{Request, Response, Status};
use tracing::Instrument;

struct Nothing;

#[tonic::async_trait]
impl Memory for Nothing {
    async fn remember(&self, _: Request<RememberRequest>) -> Result<Response<RememberResponse>, Status> {
        Err(Status::unavailable("full"))
    }
    async fn recall(&self, _: Request<RecallRequest>) -> Result<Response<RecallResponse>, Status> {
        let span = gen_ai::chat_span("stem", "plan", "plan", "abc", "t1");
        span.record(gen_ai::USAGE_INPUT_TOKENS, 12);
        span.in_scope(|| {});
        Ok(Response::new(RecallResponse::default()))
    }
    async fn list_memories(&self, _: Request<ListMemoriesRequest>) -> Result<Response<ListMemoriesResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn get_memory(&self, _: Request<GetMemoryRequest>) -> Result<Response<GetMemoryResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn forget(&self, _: Request<ForgetRequest>) -> Result<Response<ForgetResponse>, Status> {
        Ok(Response::new(ForgetResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_span_is_a_child_of_its_client() {
    let collector = Collector::start().await.unwrap();
    let config = TelemetryConfig { otlp_endpoint: Some(collector.endpoint()), log_level: "warn".into(), ..TelemetryConfig::default() };
    let handle = prometheus::recorder().unwrap();
    let guard = init(&config, "demo", "1.2.3").unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let methods = Methods::of([autoact_wire::FILE_DESCRIPTOR_SET]).unwrap();
    let server = tonic::transport::Server::builder().layer(ServerTraceLayer::new(methods)).add_service(MemoryServer::new(Nothing));
    let server = tokio::spawn(server.serve_with_incoming(tokio_stream::wrappers::TcpListenerStream::new(listener)));

    let channel = autoact_wire::client::connect_lazy(&addr.to_string()).unwrap();
    let mut client = MemoryClient::with_interceptor(channel, TraceInterceptor);
    let root = tracing::info_span!("ask");
    let mut headers: HashMap<String, String> = HashMap::new();
    async {
        client.recall(RecallRequest::default()).await.unwrap();
        client.remember(RememberRequest::default()).await.unwrap_err();
        propagate::inject(|name, value| {
            headers.insert(name.to_owned(), value);
        });
    }
    .instrument(root)
    .await;
    let over_the_bus = tracing::info_span!("receive");
    propagate::adopt(&over_the_bus, |name| headers.get(name).cloned());
    over_the_bus.in_scope(|| {});
    drop(over_the_bus);
    guard.flush().await;

    let spans = collector.wait(Duration::from_secs(10), |spans| spans.len() >= 5).await;
    let find = |name: &str| spans.iter().find(|span| span.span.name == name).unwrap_or_else(|| panic!("no span `{name}` in {spans:#?}"));
    let root = find("ask");
    assert!(root.span.parent_span_id.is_empty());
    assert_eq!(root.service, "demo");
    for name in ["autoact.memory.v1.Memory/Recall", "autoact.memory.v1.Memory/Remember", "receive"] {
        assert_eq!(find(name).span.parent_span_id, root.span.span_id, "{name}");
        assert_eq!(find(name).span.trace_id, root.span.trace_id, "{name}");
    }
    let chat = find("chat stem");
    assert_eq!(chat.span.parent_span_id, find("autoact.memory.v1.Memory/Recall").span.span_id);
    assert_eq!(chat.attribute(gen_ai::AGENT_NAME).as_deref(), Some("plan"));
    assert_eq!(chat.attribute(gen_ai::USAGE_INPUT_TOKENS).as_deref(), Some("12"));
    assert_eq!(chat.attribute(gen_ai::INPUT_MESSAGES), None);
    assert_eq!(find("autoact.memory.v1.Memory/Recall").attribute("rpc.grpc.status_code").as_deref(), Some("0"));
    assert_eq!(find("autoact.memory.v1.Memory/Remember").attribute("rpc.grpc.status_code").as_deref(), Some("14"));

    let metrics = handle.render();
    assert!(
        metrics.contains("autoact_grpc_seconds_bucket{service=\"autoact.memory.v1.Memory\",method=\"Recall\",code=\"Ok\",le=\"0.0005\"}"),
        "{metrics}"
    );
    assert!(metrics.contains("code=\"Unavailable\""), "{metrics}");
    server.abort();
    guard.shutdown().await;
}

//! What an operator looks at: health, reflection, metrics, the pages of the metrics port.

use anyhow::Context as _;
use autoact_testkit::group::SERVICES;
use autoact_testkit::{Group, within};
use futures::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::clients::{QUESTION, QUICK, ask, gateway, task};

#[tokio::test(flavor = "multi_thread")]
async fn every_service_shows_health_reflection_and_metrics() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let contracts = ["v1.Gateway", "agents.v1.PlanAgent", "agents.v1.ToolAgent", "agents.v1.ReflectAgent", "memory.v1.Memory"];
    for (service, contract) in SERVICES.iter().zip(contracts) {
        let own = format!("autoact.{contract}");
        let listed = reflection(group.channel(service)?).await.with_context(|| service.to_string())?;
        assert!(listed.contains(&own), "{service} lists {listed:?}");
        let channel = group.channel(service)?;
        for name in [String::new(), own] {
            let health = HealthClient::new(channel.clone()).check(HealthCheckRequest { service: name.clone() }).await?;
            assert_eq!(health.into_inner().status(), ServingStatus::Serving, "{service} `{name}`");
        }
        assert!(page(&group.metrics(service), "/livez").await?.starts_with("HTTP/1.1 200"));
        assert!(page(&group.metrics(service), "/readyz").await?.starts_with("HTTP/1.1 200"));
    }

    let mut client = gateway(&group.gateway())?;
    ask(&mut client, task(QUESTION)).await?;
    let calls = [("plan-agent", "PlanAgent", "Plan"), ("tool-agent", "ToolAgent", "Parameterize"), ("gateway", "Gateway", "Ask")];
    for (service, contract, method) in calls {
        let metrics = page(&group.metrics(service), "/metrics").await?;
        let line = metrics.lines().find(|line| {
            line.starts_with("autoact_grpc_seconds_bucket{") && line.contains(&format!("method=\"{method}\"")) && line.contains(contract)
        });
        assert!(line.is_some(), "no latency histogram of {method} in:\n{metrics}");
    }
    for (service, agent) in [("plan-agent", "plan"), ("tool-agent", "tool")] {
        let metrics = page(&group.metrics(service), "/metrics").await?;
        for phase in ["queue", "prefill", "decode"] {
            let wanted = [format!("agent=\"{agent}\""), format!("phase=\"{phase}\"")];
            let found = metrics
                .lines()
                .any(|line| line.starts_with("autoact_model_seconds_bucket{") && wanted.iter().all(|label| line.contains(label.as_str())));
            assert!(found, "no latency histogram of {agent}, {phase}, in:\n{metrics}");
        }
    }
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

async fn reflection(channel: Channel) -> anyhow::Result<Vec<String>> {
    let mut client = ServerReflectionClient::new(channel);
    let request = ServerReflectionRequest { host: String::new(), message_request: Some(MessageRequest::ListServices(String::new())) };
    let mut responses = client.server_reflection_info(tokio_stream::once(request)).await?.into_inner();
    let response = within(QUICK, "reflection", responses.next()).await?.context("an answer")??;
    match response.message_response {
        Some(MessageResponse::ListServicesResponse(list)) => Ok(list.service.into_iter().map(|service| service.name).collect()),
        other => anyhow::bail!("{other:?}"),
    }
}

/// A page of the metrics port with its status line.
pub(crate) async fn page(address: &str, path: &str) -> anyhow::Result<String> {
    let work = async {
        let mut stream = tokio::net::TcpStream::connect(address).await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").as_bytes()).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        anyhow::Ok(text)
    };
    within(QUICK, path, work).await?
}

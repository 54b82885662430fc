//! A gateway in this process with a real nats-server and agents that follow a script. The scripted
//! agents exist in these tests only.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)] // every test file uses its own part

pub mod scripted;

use std::time::Duration;

use autoact_config::{Common, Loaded, Section};
use autoact_service::{App, Running};
use autoact_testkit::NatsServer;
use autoact_wire::client::connect_lazy;
use autoact_wire::v1;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use gateway::{AgentsConfig, BusSettings, Gateway, GatewayConfig};
use scripted::Group;
use tokio_stream::StreamExt;
use tonic::transport::Channel;

pub type Client = GatewayClient<Channel>;

/// Much longer than anything here takes.
pub const LIMIT: Duration = Duration::from_secs(60);

pub struct World {
    pub nats: NatsServer,
    pub group: Group,
    pub gateway: Running,
    pub client: Client,
}

/// The settings of a gateway over these surroundings.
pub fn config(nats: &NatsServer, group: &Group) -> Loaded<GatewayConfig> {
    let mut common = Common { grace_period: Duration::from_secs(10), ..GatewayConfig::common() };
    common.listen.set_port(0);
    common.metrics_listen.set_port(0);
    common.nats.url = nats.url();
    let agents = AgentsConfig {
        plan: group.plan_address(),
        tool: group.tool_address(),
        reflect: group.reflect_address(),
        patience: Duration::from_secs(2),
        ..AgentsConfig::default()
    };
    // a server of a test need not survive its machine
    let bus = BusSettings { max_bytes: 64 << 20, lease: Duration::from_secs(2), allow_unsynced: true, ..BusSettings::default() };
    let memory = group.memory_address();
    Loaded::new(common, GatewayConfig { agents, memory, bus, drain: Duration::from_secs(2), ..GatewayConfig::default() })
}

pub async fn start(config: Loaded<GatewayConfig>) -> (Running, Client) {
    let gateway = App::build::<Gateway>(config).await.unwrap().start();
    let client = client(&gateway);
    (gateway, client)
}

pub fn client(gateway: &Running) -> Client {
    GatewayClient::new(connect_lazy(&gateway.addr().to_string()).unwrap())
}

pub async fn world(group: Group) -> World {
    world_with(group, |_| {}).await
}

pub async fn world_with(group: Group, change: impl FnOnce(&mut GatewayConfig)) -> World {
    let nats = NatsServer::start().await.unwrap();
    let mut config = config(&nats, &group);
    change(&mut config.service);
    let (gateway, client) = start(config).await;
    World { nats, group, gateway, client }
}

pub fn task(question: &str) -> v1::SubmitTaskRequest {
    v1::SubmitTaskRequest { question: question.into(), ..Default::default() }
}

pub fn named(id: &str, question: &str) -> v1::SubmitTaskRequest {
    v1::SubmitTaskRequest { task_id: id.into(), ..task(question) }
}

/// Asks and collects every event to the end.
pub async fn ask(client: &mut Client, request: v1::SubmitTaskRequest) -> Vec<v1::TrajectoryEvent> {
    collect_responses(client.ask(v1::AskRequest { task: Some(request), ..Default::default() }).await.unwrap().into_inner()).await
}

/// Every event of a question's stream, to the end.
pub async fn collect_responses(ask: tonic::Streaming<v1::AskResponse>) -> Vec<v1::TrajectoryEvent> {
    collect(ask.map(|response| response.unwrap().event.unwrap())).await
}

/// Watches from a sequence to the end.
pub async fn watch(client: &mut Client, id: &str, after: u64) -> Vec<v1::TrajectoryEvent> {
    let request = v1::WatchTaskRequest { task_id: id.into(), after_sequence: after, deltas: false };
    let watch = client.watch_task(request).await.unwrap().into_inner();
    collect(watch.map(|response| response.unwrap().event.unwrap())).await
}

async fn collect(events: impl tokio_stream::Stream<Item = v1::TrajectoryEvent>) -> Vec<v1::TrajectoryEvent> {
    let events: Vec<_> = tokio::time::timeout(LIMIT, events.collect()).await.expect("the task ends");
    for (event, index) in events.iter().zip(events.first().map_or(1, |event| event.index)..) {
        assert_eq!(event.index, index, "no gap, nothing twice");
    }
    events
}

/// The names of the events, in order.
pub fn names(events: &[v1::TrajectoryEvent]) -> Vec<&'static str> {
    let name = |event: &v1::TrajectoryEvent| match event.body.as_ref().unwrap() {
        Body::Submitted(_) => "submitted",
        Body::Started(_) => "started",
        Body::Thought(_) => "thought",
        Body::Action(_) => "action",
        Body::Observation(_) => "observation",
        Body::Reflection(_) => "reflection",
        Body::Finished(_) => "finished",
        Body::Released(_) => "released",
        Body::Shortened(_) => "shortened",
        Body::Recalled(_) => "recalled",
        Body::Paused(_) => "paused",
        Body::Resumed(_) => "resumed",
        Body::InputRequested(_) => "input_requested",
        Body::InputGiven(_) => "input_given",
    };
    events.iter().map(name).collect()
}

/// How the task ended.
pub fn end(events: &[v1::TrajectoryEvent]) -> &v1::Finished {
    match events.last().and_then(|event| event.body.as_ref()) {
        Some(Body::Finished(finished)) => finished,
        other => panic!("the last event is {other:?}"),
    }
}

pub fn observations(events: &[v1::TrajectoryEvent]) -> Vec<&v1::Observation> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            Some(Body::Observation(observation)) => Some(observation),
            _ => None,
        })
        .collect()
}

pub async fn get(client: &mut Client, id: &str) -> v1::Task {
    client.get_task(v1::GetTaskRequest { task_id: id.into(), view: 0 }).await.unwrap().into_inner().task.unwrap()
}

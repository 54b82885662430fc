//! reflect-agent over real gRPC on a free port, with a scripted model and with a tiny random one.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::sync::Arc;

use autoact_agent::testing::{ScriptedBackend, history, step, tiny_model};
use autoact_agent::{Agent, AgentOptions, EngineConfig};
use autoact_config::{Common, Loaded};
use autoact_service::{App, Running, Setup};
use autoact_trajectory::Role;
use autoact_wire::agents_v1::reflect_agent_client::ReflectAgentClient;
use autoact_wire::agents_v1::reflect_response::Event;
use autoact_wire::agents_v1::{ReflectRequest, ReflectResult};
use autoact_wire::status;
use autoact_wire::v1::{Trajectory, Verdict};
use reflect_agent::{ReflectAgentConfig, ReflectAgentService};
use tonic::transport::Channel;
use tonic::{Code, Status};

async fn start(text: &'static str) -> Running {
    let mut setup = Setup::bind("reflect-agent", Common::on_ports(0, 0)).await.unwrap();
    let agent = Agent::new(Role::Reflect, Arc::new(ScriptedBackend::saying(text)), AgentOptions::default());
    autoact_agent::install(Arc::new(agent), (), &ReflectAgentConfig::default(), &mut setup);
    setup.finish().await.unwrap().start()
}

fn client(running: &Running) -> ReflectAgentClient<Channel> {
    ReflectAgentClient::new(autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap())
}

async fn reflect(running: &Running, trajectory: Trajectory) -> Result<ReflectResult, Status> {
    let request = ReflectRequest { trajectory: Some(trajectory), sampling: None, ..Default::default() };
    let mut stream = client(running).reflect(request).await?.into_inner();
    loop {
        match stream.message().await?.and_then(|response| response.event) {
            Some(Event::Delta(_)) => {}
            Some(Event::Result(result)) => return Ok(result),
            None => panic!("a stream without a result"),
        }
    }
}

fn answered() -> Trajectory {
    history(vec![step("Retrieve", Some("Loire"), Some("A river in France.")), step("Finish", Some("France"), None)])
}

#[tokio::test]
async fn an_answer_is_judged() {
    for (text, verdict) in [(" It says so.\nVerdict: right\n", Verdict::Right), (" It does not.\nVerdict: wrong\n", Verdict::Wrong)] {
        let running = start(text).await;
        let result = reflect(&running, answered()).await.unwrap();
        assert_eq!(result.verdict(), verdict);
        assert!(!result.thought.is_empty() && result.usage.is_some());
        running.stop().await.unwrap();
    }
}

#[tokio::test]
async fn only_an_answer_can_be_judged() {
    let running = start(" It says so.\nVerdict: right\n").await;
    let unanswered = history(vec![step("Retrieve", Some("Loire"), Some("A river in France."))]);
    for trajectory in [history(vec![]), unanswered] {
        let error = reflect(&running, trajectory).await.unwrap_err();
        assert_eq!((error.code(), status::reason(&error).as_deref()), (Code::InvalidArgument, Some("WRONG_TURN")), "{error}");
    }
    running.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_checkpoint_serves_from_its_configuration() {
    let dir = tiny_model("qwen2").unwrap();
    let config = ReflectAgentConfig {
        model: dir.path().to_owned(),
        adapter: dir.path().join("adapter"),
        engine: EngineConfig { threads: 1, ..EngineConfig::default() },
        ..ReflectAgentConfig::default()
    };
    let app = App::build::<ReflectAgentService>(Loaded::new(Common::on_ports(0, 0), config)).await.unwrap();
    let running = app.start();
    running.readiness().ready().await;
    let result = reflect(&running, answered()).await.unwrap();
    assert!([Verdict::Right, Verdict::Wrong].contains(&result.verdict()));
    let usage = result.usage.unwrap();
    assert_eq!(usage.adapter, "adapter");
    assert_eq!(usage.adapter_digest.len(), 64);
    running.stop().await.unwrap();
}

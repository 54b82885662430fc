//! plan-agent over real gRPC on a free port, with a scripted model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_agent::testing::{ScriptedBackend, history, step};
use autoact_agent::{Agent, AgentOptions};
use autoact_config::{Common, Section};
use autoact_model::GenerateError;
use autoact_service::{Running, Setup};
use autoact_trajectory::Role;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::plan_response::Event;
use autoact_wire::agents_v1::{PlanRequest, PlanResponse, PlanResult};
use autoact_wire::status;
use autoact_wire::v1::{SamplingParams, Trajectory};
use plan_agent::PlanAgentConfig;
use tokio::sync::Semaphore;
use tonic::transport::Channel;
use tonic::{Code, Request, Status, Streaming};

const REPLY: &str = " I know it now.\nAction: Finish\n";

async fn start(backend: ScriptedBackend) -> (Running, PlanAgentClient<Channel>, Arc<ScriptedBackend>) {
    let backend = Arc::new(backend);
    let common = Common { grace_period: Duration::from_secs(5), ..Common::on_ports(0, 0) };
    let mut setup = Setup::bind(PlanAgentConfig::NAME, common).await.unwrap();
    let agent = Agent::new(Role::Plan, Arc::clone(&backend) as _, AgentOptions::default());
    autoact_agent::install(Arc::new(agent), (), &PlanAgentConfig::default(), &mut setup);
    let running = setup.finish().await.unwrap().start();
    let client = PlanAgentClient::new(autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap());
    (running, client, backend)
}

fn ask(trajectory: Trajectory) -> PlanRequest {
    PlanRequest { trajectory: Some(trajectory), sampling: None, ..Default::default() }
}

async fn read(mut stream: Streaming<PlanResponse>) -> Result<(String, PlanResult), Status> {
    let mut text = String::new();
    loop {
        match stream.message().await?.and_then(|response| response.event) {
            Some(Event::Delta(delta)) => text.push_str(&delta.text),
            Some(Event::Result(result)) => {
                assert!(stream.message().await?.is_none(), "the result is the last message");
                return Ok((text, result));
            }
            None => panic!("a stream without a result"),
        }
    }
}

async fn refused(client: &mut PlanAgentClient<Channel>, request: impl tonic::IntoRequest<PlanRequest>) -> Status {
    match client.plan(request).await {
        Ok(stream) => read(stream.into_inner()).await.unwrap_err(),
        Err(status) => status,
    }
}

#[tokio::test]
async fn words_arrive_and_then_the_result() {
    let (running, mut client, backend) = start(ScriptedBackend::saying(REPLY)).await;
    running.readiness().ready().await;
    let sampling = SamplingParams { temperature: 0.5, top_k: 3, top_p: 0.9, seed: 7 };
    let request = PlanRequest { trajectory: Some(history(vec![])), sampling: Some(sampling), ..Default::default() };
    let (text, result) = read(client.plan(request).await.unwrap().into_inner()).await.unwrap();
    assert_eq!(text, REPLY);
    assert_eq!((result.thought.as_str(), result.tool.as_str()), ("I know it now.", "Finish"));
    let usage = result.usage.unwrap();
    assert_eq!(usage.model, "scripted");
    assert!(usage.prompt_tokens > 0 && usage.completion_tokens > 0 && usage.prefill.is_some());
    let asked = backend.requests().pop().unwrap().sampling;
    assert_eq!((asked.temperature, asked.top_k, asked.top_p, asked.seed), (0.5, Some(3), Some(0.9), 7));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn bad_requests_name_the_field() {
    let (running, mut client, _) = start(ScriptedBackend::saying(REPLY)).await;
    let empty = Trajectory { question: " ".into(), ..history(vec![]) };
    let open = history(vec![step("Retrieve", None, None)]);
    let foreign = history(vec![step("Fly", Some("x"), Some("y"))]);
    let hot = PlanRequest {
        trajectory: Some(history(vec![])),
        sampling: Some(SamplingParams { temperature: -1.0, ..Default::default() }),
        ..Default::default()
    };
    for (request, reason, part) in [
        (PlanRequest::default(), "BAD_REQUEST", "`trajectory`"),
        (ask(empty), "BAD_REQUEST", "`trajectory.question`"),
        (ask(open), "WRONG_TURN", "a step that waits for its parameters"),
        (ask(foreign), "UNKNOWN_TOOL", "`Retrieve`, `Finish`"),
        (hot, "BAD_SAMPLING", "`sampling.temperature`"),
    ] {
        let status = refused(&mut client, request).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        assert_eq!(status::reason(&status).as_deref(), Some(reason), "{status}");
        assert!(status.message().contains(part), "{status}");
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_model_that_refuses_is_told_with_the_right_code() {
    for (error, code, reason) in [
        (GenerateError::Overloaded { retry_after: Duration::from_millis(120) }, Code::ResourceExhausted, "QUEUE_FULL"),
        (GenerateError::PromptTooLong { tokens: 5000, limit: 4095 }, Code::InvalidArgument, "PROMPT_TOO_LONG"),
        (GenerateError::DeadlineExceeded, Code::DeadlineExceeded, "DEADLINE_EXCEEDED"),
        (GenerateError::engine("NaN"), Code::Internal, "ENGINE_FAILED"),
    ] {
        let said = error.clone();
        let (running, mut client, _) = start(ScriptedBackend::new(move |_| Err(said.clone()))).await;
        let status = refused(&mut client, ask(history(vec![]))).await;
        assert_eq!((status.code(), status::reason(&status).as_deref()), (code, Some(reason)), "{status}");
        let delay = matches!(error, GenerateError::Overloaded { .. }).then_some(Duration::from_millis(120));
        assert_eq!(status::retry_after(&status), delay);
        running.stop().await.unwrap();
    }
}

#[tokio::test]
async fn a_reply_without_the_form_is_an_error() {
    let (running, mut client, _) = start(ScriptedBackend::saying("no form")).await;
    let status = refused(&mut client, ask(history(vec![]))).await;
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status::reason(&status).as_deref(), Some("BAD_REPLY"));
    running.stop().await.unwrap();
}

#[tokio::test]
async fn the_model_stops_when_the_client_hangs_up() {
    let pace = Arc::new(Semaphore::new(1));
    let (running, mut client, backend) = start(ScriptedBackend::saying(REPLY).paced(Arc::clone(&pace))).await;
    let mut stream = client.plan(ask(history(vec![]))).await.unwrap().into_inner();
    // the health probe may have taken the first permit
    pace.add_permits(1);
    assert!(stream.message().await.unwrap().is_some());
    drop(stream);
    let deadline = Instant::now() + Duration::from_secs(5);
    while backend.cancelled() == 0 {
        assert!(Instant::now() < deadline, "the model goes on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_call_ends_at_its_deadline() {
    let pace = Arc::new(Semaphore::new(0));
    let (running, mut client, backend) = start(ScriptedBackend::saying(REPLY).paced(pace)).await;
    let mut request = Request::new(ask(history(vec![])));
    request.metadata_mut().insert("grpc-timeout", "100m".parse().unwrap());
    let status = refused(&mut client, request).await;
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let asked = backend.requests().into_iter().find(|request| request.grammar.is_some()).unwrap();
    assert!(asked.deadline.is_some(), "the model knows the deadline too");
    running.stop().await.unwrap();
}

#[tokio::test]
async fn a_reply_in_flight_survives_the_shutdown() {
    let pace = Arc::new(Semaphore::new(0));
    let (mut running, mut client, _) = start(ScriptedBackend::saying(REPLY).paced(Arc::clone(&pace))).await;
    let stream = client.plan(ask(history(vec![]))).await.unwrap().into_inner();
    running.begin_shutdown();
    pace.add_permits(100);
    let (_, result) = read(stream).await.unwrap();
    assert_eq!(result.tool, "Finish");
    running.ended().await.unwrap();
}

#[tokio::test]
async fn a_model_that_does_not_work_is_not_ready() {
    let (running, _, backend) = start(ScriptedBackend::new(|_| Err(GenerateError::engine("NaN")))).await;
    let deadline = Instant::now() + Duration::from_secs(5);
    while backend.requests().is_empty() {
        assert!(Instant::now() < deadline, "nobody looks after the model");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(running.readiness().waiting(), ["model"]);
    running.stop().await.unwrap();
}

#[test]
fn the_settings_of_another_agent_are_none_of_this_one() {
    use autoact_config::{Sources, load};
    let given = |env: &[(&str, &str)]| {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        load::<PlanAgentConfig>(&Sources { env, ..Sources::default() })
    };
    // for every agent that has the setting
    assert_eq!(given(&[("AUTOACT_CORPUS", "x")]).unwrap().service.adapter, std::path::Path::new("models/stem/adapters/plan"));
    assert!(given(&[("AUTOACT_PLAN_AGENT__CORPUS", "x")]).is_err());
}

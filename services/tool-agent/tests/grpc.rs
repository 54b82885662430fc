//! tool-agent over real gRPC on a free port: parameters from a scripted model, tools that really
//! run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use autoact_agent::testing::{ScriptedBackend, history, step};
use autoact_agent::{Agent, AgentOptions};
use autoact_config::Common;
use autoact_service::{Running, Setup};
use autoact_tools::{Corpus, Page, Tool, ToolCall, ToolError, ToolLibrary, ToolOutput};
use autoact_trajectory::Role;
use autoact_trajectory::{Effect, ParameterSchema, ToolSpec};
use autoact_wire::agents_v1::parameterize_response::Event;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::agents_v1::{ExecuteRequest, ExecuteResponse, ListToolsRequest, ListToolsResponse, ParameterizeRequest};
use autoact_wire::status;
use autoact_wire::v1::Action;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tool_agent::{ToolAgentConfig, ToolSettings, Tools};

fn spec(name: &str, effect: Effect, timeout: Duration) -> ToolSpec {
    ToolSpec {
        definition: format!("The tool {name}."),
        usage: format!("{name}[x]"),
        effect,
        timeout,
        max_observation_bytes: 100,
        ..ToolSpec::new(name)
    }
}

/// A tool with two arguments.
fn write() -> ToolSpec {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"},"count":{"type":"integer"}},"required":["text"]}"#;
    ToolSpec { schema: Some(ParameterSchema::parse(schema).unwrap()), ..spec("Write", Effect::SideEffect, Duration::from_secs(5)) }
}

/// Counts its runs.
struct Count {
    spec: ToolSpec,
    runs: AtomicUsize,
}

impl Tool for Count {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn run(&self, call: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let run = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(format!("run {run} with {}", call.params).into())
    }
}

/// Runs until the test lets it go.
struct Hang {
    spec: ToolSpec,
    gate: Mutex<mpsc::Receiver<()>>,
}

impl Tool for Hang {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let _ = self.gate.lock().unwrap().recv_timeout(Duration::from_secs(10));
        Ok("let go".to_owned().into())
    }
}

/// Sees to its own deadline, as programs do, and says how far it came.
struct Late(ToolSpec);

impl Tool for Late {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        let (_open, nothing) = mpsc::channel::<()>();
        let _ = nothing.recv_timeout(self.0.timeout);
        Err(ToolError::Timeout { after: self.0.timeout, written: "page 1 of 9".into() })
    }
}

struct Panics(ToolSpec);

impl Tool for Panics {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn run(&self, _: &ToolCall<'_>) -> Result<ToolOutput, ToolError> {
        panic!("on purpose")
    }
}

struct Started {
    running: Running,
    client: ToolAgentClient<Channel>,
    /// Dropping it lets the hanging tools go.
    gate: mpsc::Sender<()>,
}

async fn start(mut config: ToolAgentConfig) -> Started {
    // tests/tests/chaos runs it with receipts
    config.own.receipts = false;
    let page = |title: &str, text: &str| Page { title: title.into(), text: text.into() };
    let pages = vec![page("Loire", "Loire is a river in France. It is 1006 km long."), page("France", "The capital of France is Paris.")];
    let corpus = Arc::new(Corpus::from_pages(pages).unwrap());
    let (gate, released) = mpsc::channel();
    let second = Duration::from_secs(5);
    let library = ToolLibrary::bundled(corpus)
        .unwrap()
        .with_tool(Arc::new(Count { spec: spec("Send", Effect::SideEffect, second), runs: AtomicUsize::new(0) }))
        .unwrap()
        .with_tool(Arc::new(Count { spec: spec("Read", Effect::ReadOnly, second), runs: AtomicUsize::new(0) }))
        .unwrap()
        .with_tool(Arc::new(Hang { spec: spec("Hang", Effect::ReadOnly, Duration::from_millis(200)), gate: Mutex::new(released) }))
        .unwrap()
        .with_tool(Arc::new(Late(spec("Late", Effect::SideEffect, Duration::from_millis(200)))))
        .unwrap()
        .with_tool(Arc::new(Panics(spec("Break", Effect::ReadOnly, second))))
        .unwrap()
        .with_tool(Arc::new(Count { spec: write(), runs: AtomicUsize::new(0) }))
        .unwrap();
    let mut setup = Setup::bind("tool-agent", Common::on_ports(0, 0)).await.unwrap();
    let model = ScriptedBackend::new(|request| {
        let typed = request.prompt.ends_with("Action: Write\nInput:");
        Ok(if typed { " { \"text\": \"a\", \"count\": 2 }\n".to_owned() } else { " Loire\n".to_owned() })
    });
    let agent = Agent::new(Role::Tool, Arc::new(model), AgentOptions::default());
    autoact_agent::install(Arc::new(agent), Arc::new(Tools::from(Arc::new(library))), &config, &mut setup);
    let running = setup.finish().await.unwrap().start();
    let client = ToolAgentClient::new(autoact_wire::client::connect_lazy(&running.addr().to_string()).unwrap());
    Started { running, client, gate }
}

fn call(step: u32, tool: &str, params: &str) -> ExecuteRequest {
    let action = Some(Action { tool: tool.into(), params: params.into() });
    ExecuteRequest { task_id: "task-1".into(), step, action, trajectory: Some(history(vec![])), ..ExecuteRequest::default() }
}

impl Started {
    async fn execute(&mut self, request: ExecuteRequest) -> Result<ExecuteResponse, Status> {
        self.client.execute(request).await.map(tonic::Response::into_inner)
    }
}

#[tokio::test]
async fn parameters_come_from_the_model() {
    let mut started = start(ToolAgentConfig::default()).await;
    let request =
        ParameterizeRequest { trajectory: Some(history(vec![step("Retrieve", None, None)])), sampling: None, ..Default::default() };
    let mut stream = started.client.parameterize(request).await.unwrap().into_inner();
    let mut text = String::new();
    let result = loop {
        match stream.message().await.unwrap().unwrap().event.unwrap() {
            Event::Delta(delta) => text.push_str(&delta.text),
            Event::Result(result) => break result,
        }
    };
    assert_eq!((text.as_str(), result.params.as_str()), (" Loire\n", "Loire"));
    let wrong = ParameterizeRequest { trajectory: Some(history(vec![])), sampling: None, ..Default::default() };
    let error = started.client.parameterize(wrong).await.unwrap_err();
    assert_eq!((error.code(), status::reason(&error).as_deref()), (Code::InvalidArgument, Some("WRONG_TURN")));
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn tools_really_run() {
    let mut started = start(ToolAgentConfig::default()).await;
    let found = started.execute(call(1, "Retrieve", "Loire")).await.unwrap();
    assert!(found.observation.contains("river in France") && !found.is_error, "{found:?}");
    assert!(found.usage.unwrap().tool.is_some());
    assert!(started.execute(call(2, "Calculate", "2*21")).await.unwrap().observation.contains("42"));
    // an unknown entity is no error: similar ones are given
    let similar = started.execute(call(3, "Retrieve", "Loir")).await.unwrap();
    assert!(similar.observation.contains("Loire"), "{similar:?}");
    let names: Vec<String> = started
        .client
        .list_tools(ListToolsRequest::default())
        .await
        .unwrap()
        .into_inner()
        .tools
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(&names[..5], ["Search", "Retrieve", "Lookup", "Calculate", "Finish"]);
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_library_is_sent_to_who_does_not_have_it() {
    let (mut started, mut replica) = (start(ToolAgentConfig::default()).await, start(ToolAgentConfig::default()).await);
    let list = async |client: &mut ToolAgentClient<Channel>, known: &str| {
        client.list_tools(ListToolsRequest { known: known.into() }).await.unwrap().into_inner()
    };
    // as an earlier gateway asks
    let whole = list(&mut started.client, "").await;
    assert!(!whole.unchanged && !whole.digest.is_empty() && whole.tools.len() > 5 && whole.corpus.is_some());
    assert!(!whole.optional.is_empty());
    let known = list(&mut started.client, &whole.digest).await;
    let expected = ListToolsResponse { digest: whole.digest.clone(), unchanged: true, ..Default::default() };
    assert_eq!(known, expected);
    assert_eq!(list(&mut started.client, "another").await, whole);
    // the next call may go to a replica
    assert_eq!(list(&mut replica.client, &whole.digest).await, expected);
    started.running.stop().await.unwrap();
    replica.running.stop().await.unwrap();
}

#[tokio::test]
async fn bad_calls_name_what_is_wrong() {
    let mut started = start(ToolAgentConfig::default()).await;
    let long = "x".repeat(autoact_trajectory::MAX_PARAMS_BYTES + 1);
    for (request, reason, part) in [
        (ExecuteRequest::default(), "BAD_REQUEST", "`action`"),
        (call(1, "", "x"), "BAD_REQUEST", "`action.tool`"),
        (call(1, "Retrive", "x"), "UNKNOWN_TOOL", "`Retrieve`"),
        (call(1, "Finish", "x"), "TERMINAL_TOOL", "nothing is run"),
        (call(1, "Retrieve", &long), "PARAMS_TOO_LONG", "32768"),
        (ExecuteRequest { task_id: String::new(), ..call(1, "Send", "x") }, "BAD_REQUEST", "`task_id`"),
    ] {
        let error = started.execute(request).await.unwrap_err();
        assert_eq!((error.code(), status::reason(&error).as_deref()), (Code::InvalidArgument, Some(reason)), "{error}");
        assert!(error.message().contains(part), "{error}");
    }
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn arguments_are_checked_before_anything_is_run() {
    let mut started = start(ToolAgentConfig::default()).await;
    let mut trajectory = history(vec![step("Write", None, None)]);
    trajectory.tools.push((&write()).into());
    let request = ParameterizeRequest { trajectory: Some(trajectory), sampling: None, ..Default::default() };
    let mut stream = started.client.parameterize(request).await.unwrap().into_inner();
    let params = loop {
        if let Event::Result(result) = stream.message().await.unwrap().unwrap().event.unwrap() {
            break result.params;
        }
    };
    assert_eq!(params, r#"{"text":"a","count":2}"#);
    for (step, params) in [(1, r#"{"text":1,"count":2}"#), (2, r#"{"count":2}"#), (3, "a")] {
        let refused = started.execute(call(step, "Write", params)).await.unwrap();
        assert!(refused.is_error && refused.observation.starts_with("Write was not run: "), "{refused:?}");
    }
    let ran = started.execute(call(4, "Write", &params)).await.unwrap();
    assert_eq!((ran.observation.as_str(), ran.is_error), (r#"run 1 with {"text":"a","count":2}"#, false));
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_step_with_an_effect_runs_once() {
    let mut started = start(ToolAgentConfig::default()).await;
    let (mut one, mut two) = (started.client.clone(), started.client.clone());
    let (first, second) = tokio::join!(one.execute(call(1, "Send", "x")), two.execute(call(1, "Send", "x")));
    assert_eq!(first.unwrap().into_inner().observation, "run 1 with x");
    assert_eq!(second.unwrap().into_inner().observation, "run 1 with x");
    assert_eq!(started.execute(call(1, "Send", "x")).await.unwrap().observation, "run 1 with x");
    assert_eq!(started.execute(call(2, "Send", "x")).await.unwrap().observation, "run 2 with x");
    let other = started.execute(call(1, "Send", "y")).await.unwrap_err();
    assert_eq!((other.code(), status::reason(&other).as_deref()), (Code::FailedPrecondition, Some("OTHER_ACTION")));
    // what only reads is run again
    assert_eq!(started.execute(call(1, "Read", "x")).await.unwrap().observation, "run 1 with x");
    assert_eq!(started.execute(call(1, "Read", "x")).await.unwrap().observation, "run 2 with x");
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_tool_ends_at_its_deadline_and_others_wait_their_turn() {
    let mut started =
        start(ToolAgentConfig { own: ToolSettings { max_runs: 1, ..ToolSettings::default() }, ..ToolAgentConfig::default() }).await;
    let late = started.execute(call(1, "Hang", "x")).await.unwrap();
    assert!(late.is_error && late.observation.contains("no answer within 200ms"), "{late:?}");
    // the hanging tool still holds the only slot: eight may wait for it, the others are refused
    // with a delay
    let mut calls = tokio::task::JoinSet::new();
    for at in 0..10 {
        let mut client = started.client.clone();
        calls.spawn(async move { client.execute(call(at, "Read", "x")).await });
    }
    for _ in 0..2 {
        let error = calls.join_next().await.unwrap().unwrap().unwrap_err();
        assert_eq!((error.code(), status::reason(&error).as_deref()), (Code::ResourceExhausted, Some("TOOLS_BUSY")), "{error}");
        assert!(status::retry_after(&error).is_some());
    }
    started.gate.send(()).unwrap();
    let mut done = 0;
    while let Some(outcome) = calls.join_next().await {
        outcome.unwrap().unwrap();
        done += 1;
    }
    assert_eq!(done, 8);
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_tool_that_sees_to_its_deadline_has_the_last_word() {
    let mut started = start(ToolAgentConfig::default()).await;
    let late = started.execute(call(1, "Late", "x")).await.unwrap();
    assert!(late.is_error && late.observation.ends_with("; until then it wrote: page 1 of 9"), "{late:?}");
    started.running.stop().await.unwrap();
}

#[tokio::test]
async fn a_tool_that_panics_breaks_its_own_call_only() {
    let mut started = start(ToolAgentConfig::default()).await;
    let error = started.execute(call(1, "Break", "x")).await.unwrap_err();
    assert_eq!((error.code(), status::reason(&error).as_deref()), (Code::Internal, Some("TOOL_BROKE")));
    assert!(!started.execute(call(2, "Retrieve", "France")).await.unwrap().is_error);
    started.running.stop().await.unwrap();
}

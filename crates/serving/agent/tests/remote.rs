//! The three agents through a server over the bundled model, beside the same agents with the model
//! in their own process.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone)] // tests

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use autoact_agent::testing::{history, step};
use autoact_agent::{Agent, BackendConfig, EngineConfig, Request, Sources, open};
use autoact_config::Common;
use autoact_model::{Engine, EngineOptions, Generated, ModelDir};
use autoact_openai::Dialect;
use autoact_service::Setup;
use autoact_speaker::ReplyEvent;
use autoact_testkit::{Kind, OpenAiOptions, OpenAiServer, files};
use autoact_trajectory::{Role, ToolSpec};
use autoact_wire::v1;

async fn server(kind: Kind) -> OpenAiServer {
    let stem = files::root().join("models/stem");
    let options = EngineOptions { threads: 1, ..EngineOptions::default() };
    let engine = Engine::start(&ModelDir::open(&stem).unwrap(), options).unwrap();
    for role in Role::ALL {
        engine.load_adapter(role.as_str(), stem.join("adapters").join(role.as_str())).unwrap();
    }
    OpenAiServer::of_engine(Arc::new(engine), OpenAiOptions { kind, ..OpenAiOptions::default() }).await.unwrap()
}

async fn agent(role: Role, backend: &BackendConfig, engine: &EngineConfig) -> (Arc<Agent>, Setup) {
    let stem = files::root().join("models/stem");
    let adapter = stem.join("adapters").join(role.as_str());
    let sources = Sources { model: &stem, adapter: &adapter, registry: Path::new(""), announcements: false, backend };
    let setup = Setup::bind("test", Common::on_ports(0, 0)).await.unwrap();
    let agent = open(role, sources, engine, &setup).await.unwrap();
    (agent, setup)
}

fn one_thread() -> EngineConfig {
    EngineConfig { threads: 1, ..EngineConfig::default() }
}

async fn answer(agent: &Arc<Agent>, trajectory: v1::Trajectory) -> (String, Generated) {
    let mut speech = agent.speak(Request { trajectory: Some(trajectory), ..Request::default() }).await.unwrap();
    let mut streamed = String::new();
    loop {
        match speech.next().await.expect("a speech ends with Done or an error").unwrap() {
            ReplyEvent::Delta(text) => streamed.push_str(&text),
            ReplyEvent::Done(generated) => return (streamed, generated),
        }
    }
}

fn asked(question: &str, turns: Vec<v1::Turn>) -> v1::Trajectory {
    let mut trajectory = v1::Trajectory { question: question.into(), ..history(turns) };
    // without a grammar the model names it whether it is there or not
    let lookup = ToolSpec { definition: "Finds a sentence in a page.".into(), usage: "Lookup[text]".into(), ..ToolSpec::new("Lookup") };
    trajectory.tools.push((&lookup).into());
    trajectory
}

fn histories(role: Role) -> Vec<v1::Trajectory> {
    let loire = "The Loire is a river in France. It is 1006 km long. It flows into the Atlantic Ocean.";
    let done = || step("Retrieve", Some("Loire"), Some(loire));
    let question = "What is the capital of the country where the Loire flows?";
    match role {
        Role::Plan => vec![
            asked(question, vec![]),
            asked(question, vec![done()]),
            asked("Which river is longer, the Rhine or the Elbe?", vec![]),
            asked(question, vec![done(), step("Retrieve", Some("France"), Some("France is a country. The capital of France is Paris."))]),
        ],
        Role::Tool => {
            vec![asked(question, vec![step("Retrieve", None, None)]), asked(question, vec![done(), step("Retrieve", None, None)])]
        }
        Role::Reflect => vec![
            asked(question, vec![done(), step("Finish", Some("Paris"), None)]),
            asked(question, vec![step("Finish", Some("Berlin"), None)]),
        ],
    }
}

#[tokio::test]
async fn the_answers_are_those_of_the_engine() {
    let server = server(Kind::Vllm).await;
    for role in Role::ALL {
        let here = BackendConfig::default();
        // the served name is the agent's own
        let there = BackendConfig { url: server.url(), ..BackendConfig::default() };
        let (local, _local) = agent(role, &here, &one_thread()).await;
        let (remote, _remote) = agent(role, &there, &one_thread()).await;
        for history in histories(role) {
            let (a, b) = (answer(&local, history.clone()).await, answer(&remote, history).await);
            assert_eq!((&a.0, &a.1.text, a.1.finish), (&b.0, &b.1.text, b.1.finish), "{role:?}");
            assert_eq!((a.1.prompt_tokens, a.1.completion_tokens), (b.1.prompt_tokens, b.1.completion_tokens), "{role:?}");
            assert_eq!(a.1.adapter.unwrap().name, b.1.adapter.unwrap().name);
            assert_eq!(a.1.model, b.1.model);
        }
    }
    assert!(server.asked().iter().all(|asked| asked.body["structured_outputs"]["regex"].is_string()));
}

#[tokio::test]
async fn without_grammars_a_trained_model_answers_the_same() {
    let server = server(Kind::OpenAi).await;
    let engine = EngineConfig { context_length: 2048, ..one_thread() };
    for role in Role::ALL {
        let there = BackendConfig { url: server.url(), dialect: Dialect::Openai, ..BackendConfig::default() };
        let (local, _local) = agent(role, &BackendConfig::default(), &one_thread()).await;
        let (remote, _remote) = agent(role, &there, &engine).await;
        for history in histories(role) {
            let (a, b) = (answer(&local, history.clone()).await, answer(&remote, history).await);
            assert_eq!(a.1.text, b.1.text, "{role:?}");
            assert_eq!(b.0, b.1.text, "{role:?}");
        }
    }
}

#[tokio::test]
async fn an_agent_hangs_up_with_its_caller() {
    let server = server(Kind::Vllm).await;
    let there = BackendConfig { url: server.url(), ..BackendConfig::default() };
    let (remote, _remote) = agent(Role::Plan, &there, &one_thread()).await;
    server.hold();
    let speech = remote.speak(Request { trajectory: Some(histories(Role::Plan).remove(0)), ..Request::default() }).await.unwrap();
    let limit = Instant::now() + Duration::from_secs(30);
    let wait = async |open: usize| {
        while server.open() != open {
            assert!(Instant::now() < limit, "{} open, expected {open}", server.open());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    wait(1).await;
    drop(speech);
    wait(0).await;
    assert_eq!(server.abandoned(), 1);
}

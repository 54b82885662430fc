//! The binary with its model on a server: what it accepts, what it shows, and that it answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;

use autoact_agent::testing::{history, tiny_model};
use autoact_model::{Engine, EngineOptions, ModelDir};
use autoact_testkit::processes::terminate;
use autoact_testkit::{OpenAiOptions, OpenAiServer, ports};
use autoact_wire::agents_v1::PlanRequest;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::plan_response::Event;
use common::{code_and_error, plan_agent};

const URL: &str = "http://127.0.0.1:9/v1";

#[test]
fn what_does_not_go_together_is_a_mistake_with_its_place() {
    for (args, parts) in [
        (&["--backend", URL, "--adapter", "x"][..], &["flag `--adapter`", "the adapters are the server's", "found `x`"][..]),
        (&["--set", "backend.registry_path=r"], &["`backend.registry_path`", "found `r`"]),
        (&["--backend", URL, "--backend-api", "chat", "--set", "backend.chat_template=t"], &["`backend.chat_template`", "found `t`"]),
        (&["--backend", "vllm:8000"], &["flag `--backend`", "an address such as"]),
        (&["--backend-model", "plan"], &["flag `--backend-model`", "`backend.model`"]),
        (&["--backend", URL, "--set", "backend.api_key=k3y", "--backend-key-file", "f"], &["`backend.api_key_file`"]),
        (&["--backend", URL, "--backend-dialect", "sql"], &["`vllm`", "`openai`", "sql"]),
    ] {
        let (code, error) = code_and_error(plan_agent().args(args));
        assert_eq!(code, 64, "{args:?}: {error}");
        assert!(parts.iter().all(|part| error.contains(part)) && !error.contains("k3y"), "{args:?}: {error}");
    }
}

#[test]
fn the_key_is_not_shown() {
    let mut command = plan_agent();
    let output = command.args(["--backend", URL, "--print-config"]).env("AUTOACT_PLAN_AGENT__BACKEND__API_KEY", "s3cret").output().unwrap();
    let config = String::from_utf8(output.stdout).unwrap();
    assert!(config.contains("api_key = \"[redacted]\"  # variable `AUTOACT_PLAN_AGENT__BACKEND__API_KEY`"), "{config}");
    assert!(config.contains(&format!("url = \"{URL}\"  # flag `--backend`")) && !config.contains("s3cret"), "{config}");
}

#[test]
fn a_server_that_is_not_there_is_1_and_one_line() {
    let url = format!("http://127.0.0.1:{}/v1", ports::free_port().unwrap());
    let patience = ["--set", "backend.start_timeout=200ms", "--log-level", "off"];
    let (code, error) = code_and_error(plan_agent().args(["--backend", &url]).args(patience));
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
    assert!(error.starts_with(&format!("error: cannot speak through `{url}`: ")) && error.contains("; fix: start the server"), "{error}");
    let (code, error) = code_and_error(plan_agent().args(["--backend", &url, "--backend-key-file", "no/key"]).args(patience));
    assert_eq!((code, error.lines().count()), (1, 1), "{error}");
    assert!(error.contains("cannot read the API key from `no/key`") && error.contains("; fix: "), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_answers_with_the_servers_model() {
    let model = tiny_model("llama3").unwrap();
    let engine = Engine::start(&ModelDir::open(model.path()).unwrap(), EngineOptions { threads: 1, ..EngineOptions::default() }).unwrap();
    engine.load_adapter("planner", model.path().join("adapter")).unwrap();
    let options = OpenAiOptions { api_key: Some("s3cret".into()), ..OpenAiOptions::default() };
    let server = OpenAiServer::of_engine(Arc::new(engine), options).await.unwrap();
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), "s3cret\n").unwrap();
    let backend = ["--backend", &server.url(), "--backend-key-file", &key.path().display().to_string()];

    // a name that is not served: those that are
    let (code, error) = code_and_error(plan_agent().args(backend).args(["--log-level", "off"]));
    assert!(code == 1 && error.contains("serves no `plan`") && error.contains("`planner`") && error.contains("--backend-model"), "{error}");

    let mut command = plan_agent();
    command.args(backend).args(["--backend-model", "planner", "--log-format", "json", "--log-level", "debug"]);
    let (mut child, addr) = serving(command.stderr(Stdio::piped()).spawn().unwrap());
    let mut client = PlanAgentClient::new(autoact_wire::client::connect_lazy(&addr).unwrap());
    let mut replies =
        client.plan(PlanRequest { trajectory: Some(history(vec![])), sampling: None, ..Default::default() }).await.unwrap().into_inner();
    let mut result = None;
    while let Some(reply) = replies.message().await.unwrap() {
        if let Some(Event::Result(done)) = reply.event {
            result = Some(done);
        }
    }
    let result = result.unwrap();
    assert!(["Retrieve", "Finish"].contains(&result.tool.as_str()), "{result:?}");
    let usage = result.usage.unwrap();
    assert_eq!(usage.adapter, "planner");
    assert!(usage.prompt_tokens > 0 && usage.completion_tokens > 0, "{usage:?}");
    let asked = server.asked().into_iter().find(|asked| asked.body["model"] == "planner").unwrap();
    assert!(asked.body["prompt"].as_str().unwrap().contains("Question"), "{}", asked.body);
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

/// Returns when the process says that it serves, and on which address. Nothing it says holds the
/// key.
fn serving(mut child: Child) -> (Child, String) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    while let Some(line) = lines.next() {
        let line = line.unwrap();
        assert!(!line.contains("s3cret"), "{line}");
        if line.contains("\"message\":\"serving\"") {
            let addr = line.split("\"grpc\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
            // read on, or the process stops at a full pipe
            std::thread::spawn(move || lines.for_each(drop));
            return (child, addr);
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    panic!("it never served:\n{seen}");
}

//! The program as tool-agent: what is missing is one clear line, the first signal drains, the
//! second ends.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use autoact_agent::testing::tiny_model;
use autoact_testkit::processes::terminate;
use autoact_wire::agents_v1::ExecuteRequest;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::v1::Action;
use common::agent;
use tempfile::TempDir;

fn fails(args: &[&str], parts: &[&str]) {
    let output = agent("tool-agent")
        .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--log-level", "off"])
        .args(args)
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn a_missing_corpus_tool_library_or_model_is_named() {
    let corpus = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(corpus.path(), "{\"title\": \"Loire\", \"text\": \"A river.\"}\n").unwrap();
    let corpus = corpus.path().to_str().unwrap();
    let tools = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpora/atlas/tools.toml");
    fails(&["--corpus", "no/such.jsonl"], &["cannot open corpus `no/such.jsonl`", "; fix: set `--corpus FILE`"]);
    fails(&["--corpus", corpus, "--tools", "no/such.toml"], &["cannot open tools `no/such.toml`", "; fix: set `--tools FILE`"]);
    fails(&["--corpus", corpus, "--tools", tools, "--model", "no/such"], &["cannot open model `no/such`", "; fix: set `--model DIR`"]);
}

/// A process that serves, and where.
struct Serving {
    child: Child,
    grpc: String,
    metrics: String,
    _files: TempDir,
}

/// Starts the binary with a tool that takes `seconds`, and returns when it serves.
fn serving(seconds: &str) -> Serving {
    let files = tiny_model("llama3").unwrap();
    let path = |name: &str| files.path().join(name);
    std::fs::write(path("pages.jsonl"), "{\"title\": \"Loire\", \"text\": \"A river.\"}\n").unwrap();
    let tool = |name: &str, run: &str| {
        format!(
            "[[tool]]\nname = \"{name}\"\ndefinition = \"A tool.\"\nusage = \"{name}[x]\"\neffect = \"read_only\"\ntimeout = \"30s\"\nrun = {run}\n"
        )
    };
    let wait = tool("Wait", &format!("{{ kind = \"command\", sandbox = false, program = \"sleep\", args = [\"{seconds}\"] }}"));
    std::fs::write(path("tools.toml"), wait + &tool("Finish", "{ kind = \"finish\" }")).unwrap();
    let mut child = agent("tool-agent")
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--log-format", "json", "--adapter", ""])
        .args(["--grace-period", "20s", "--set", "engine.threads=1"])
        .arg("--model")
        .arg(files.path())
        .arg("--tools")
        .arg(path("tools.toml"))
        .arg("--corpus")
        .arg(path("pages.jsonl"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap) {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        if event["message"] == "serving" {
            let text = |key: &str| event[key].as_str().unwrap().to_owned();
            return Serving { grpc: text("grpc"), metrics: text("metrics"), child, _files: files };
        }
        seen.push_str(&line);
        seen.push('\n');
    }
    panic!("it never served:\n{seen}");
}

impl Serving {
    /// A call of the slow tool that has reached the service.
    async fn call(&self) -> tokio::task::JoinHandle<Result<String, tonic::Status>> {
        let mut client = ToolAgentClient::new(autoact_wire::client::connect_lazy(&self.grpc).unwrap());
        let action = Some(Action { tool: "Wait".into(), params: "x".into() });
        let request = ExecuteRequest { task_id: "t".into(), step: 1, action, ..ExecuteRequest::default() };
        let call = tokio::spawn(async move { client.execute(request).await.map(|reply| reply.into_inner().observation) });
        let deadline = Instant::now() + Duration::from_secs(10);
        while !self.metrics().contains("autoact_grpc_in_flight{service=\"autoact.agents.v1.ToolAgent\",method=\"Execute\"} 1") {
            assert!(Instant::now() < deadline, "the call never arrived");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        call
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.metrics).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_is_answered_before_the_process_ends() {
    let mut serving = serving("1");
    let call = serving.call().await;
    terminate(&serving.child);
    assert_eq!(call.await.unwrap().unwrap(), "(nothing)");
    assert_eq!(serving.child.wait().unwrap().code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_signal_ends_the_process_at_once() {
    let mut serving = serving("10");
    let started = Instant::now();
    let call = serving.call().await;
    terminate(&serving.child);
    let deadline = started + Duration::from_secs(5);
    while TcpStream::connect(&serving.grpc).is_ok() {
        assert!(Instant::now() < deadline, "it goes on taking connections");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // again until it ends: the system may join two signals in one
    let status = loop {
        terminate(&serving.child);
        if let Some(status) = serving.child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < started + Duration::from_secs(8), "it does not end");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(status.code(), Some(130));
    assert!(started.elapsed() < Duration::from_secs(8));
    assert!(call.await.unwrap().is_err());
}

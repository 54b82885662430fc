//! The program as plan-agent: exit codes, what it prints, signals.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod common;

use std::io::{BufRead, BufReader, Read as _, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use autoact_agent::testing::tiny_model;
use autoact_testkit::processes::terminate;
use common::{agent, code_and_error, plan_agent};

#[test]
fn a_bad_configuration_is_64_with_every_mistake() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[plan-agent]\nmodle = \"x\"\nengine.queue = 0\nengine.kv = \"q8_0\"\n").unwrap();
    let (code, error) = code_and_error(plan_agent().arg("--config").arg(file.path()).env("AUTOACT_GRACE_PERIOD", "soon"));
    assert_eq!(code, 64);
    for part in ["4 mistakes", "plan-agent.modle", "plan-agent.engine.queue", "plan-agent.engine.kv", "AUTOACT_GRACE_PERIOD"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_corrupt_file_and_an_unknown_flag_are_64() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"[plan-agent\n").unwrap();
    let (code, error) = code_and_error(plan_agent().arg("--config").arg(file.path()));
    assert_eq!(code, 64);
    assert!(error.contains("line 1, column"), "{error}");
    assert_eq!(code_and_error(plan_agent().arg("--modle")).0, 64);
    assert_eq!(code_and_error(plan_agent().args(["--set", "nothing"])).0, 64);
    assert_eq!(code_and_error(plan_agent().args(["--log-level", "a=b=c"])).0, 64);
}

#[test]
fn help_version_and_print_config_are_0() {
    let output = plan_agent().arg("--help").output().unwrap();
    assert!(output.status.success());
    let help = String::from_utf8(output.stdout).unwrap();
    assert!(help.contains("--adapter <DIR>") && help.contains("AUTOACT_CONFIG"), "{help}");
    assert!(plan_agent().arg("--version").output().unwrap().status.success());
    let output = plan_agent().arg("--print-config").env("AUTOACT_MODEL", "/m").output().unwrap();
    let config = String::from_utf8(output.stdout).unwrap();
    assert!(config.contains("model = \"/m\"  # variable `AUTOACT_MODEL`"), "{config}");
    assert!(config.contains("listen = \"127.0.0.1:0\"  # flag `--listen`"), "{config}");
}

#[test]
fn a_model_that_is_not_there_is_1_and_one_line() {
    let (code, error) = code_and_error(plan_agent().args(["--model", "no/such", "--log-level", "off"]));
    assert_eq!(code, 1);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.starts_with("error: cannot open model `no/such`: ") && error.contains("; fix: "), "{error}");
}

#[test]
fn a_port_that_is_taken_is_1() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let (code, error) = code_and_error(agent("plan-agent").args(["--listen", &addr, "--log-level", "off"]));
    assert_eq!(code, 1);
    assert!(error.contains(&format!("cannot listen on `{addr}`")), "{error}");
}

#[test]
fn sigterm_ends_it_with_0() {
    let dir = tiny_model("llama3").unwrap();
    let adapter = dir.path().join("adapter");
    let mut child = serving(dir.path(), &adapter);
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_pass_that_never_ends_is_no_life() {
    let dir = tiny_model("llama3").unwrap();
    let adapter = dir.path().join("adapter");
    // the model is asked for a token every second; the third pass stops for ever
    let mut command = plan_agent();
    command.args(["--set", "engine.health_interval=1s", "--set", "engine.stuck_after=1s"]).env("AUTOACT_FAILPOINTS", "model-pass@3");
    let (mut child, probes) = serving_with(dir.path(), &adapter, &mut command);
    let begun = Instant::now();
    let mut lived = false;
    let said = loop {
        let answer = get(&probes, "/livez");
        if answer.starts_with("HTTP/1.1 503") {
            break answer;
        }
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        lived = true;
        assert!(begun.elapsed() < Duration::from_secs(60), "a stuck model passes for alive");
        std::thread::yield_now();
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lived && said.ends_with("stuck: model\n"), "{said}");
}

/// The answer to a probe.
fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns when the process says that it serves, and on which addresses.
fn serving(model: &Path, adapter: &Path) -> std::process::Child {
    serving_with(model, adapter, &mut plan_agent()).0
}

/// The same for a command; the address of its probes as well.
fn serving_with(model: &Path, adapter: &Path, command: &mut std::process::Command) -> (std::process::Child, String) {
    let mut child = command
        .args(["--log-format", "json", "--set", "engine.threads=1"])
        .arg("--model")
        .arg(model)
        .arg("--adapter")
        .arg(adapter)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut seen = String::new();
    for line in lines {
        let line = line.unwrap();
        seen.push_str(&line);
        seen.push('\n');
        if line.contains("\"message\":\"serving\"") {
            assert!(line.contains("\"grpc\":\"127.0.0.1:") && !line.contains("\"grpc\":\"127.0.0.1:0\""), "{line}");
            let (_, metrics) = line.split_once("\"metrics\":\"").unwrap();
            return (child, metrics.split('"').next().unwrap().to_owned());
        }
    }
    panic!("it never served:\n{seen}");
}

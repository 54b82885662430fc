//! Whoever reads the output may leave, may be a terminal, and may be pointed at the wrong port:
//! what is said fits, and nothing panics.

use std::net::TcpListener;
use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::{Group, Output, Program, ports};

use crate::clients::{QUESTION, QUICK, TASK_LIMIT};

/// As a shell shows a program that SIGPIPE ended.
const CLOSED: i32 = 141;
const UNAVAILABLE: i32 = 69;
const BAD_ARGUMENTS: i32 = 64;

#[tokio::test(flavor = "multi_thread")]
async fn output_that_nobody_reads_ends_a_command_quietly() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let asked = group.autoact(["ask", "--id", "read", QUESTION])?.run(TASK_LIMIT).await?;
    assert!(matches!(asked.code, Some(0 | 3)), "{}", asked.text());
    let dir = tempfile::tempdir()?;
    let out = dir.path().display().to_string();
    let load = ["load", "--closed", "1", "--duration", "100ms", "--warmup", "0s", "--out", &out];
    assert_eq!(group.autoact(load)?.run(TASK_LIMIT).await?.code, Some(0));
    let registry = dir.path().join("registry");
    std::fs::create_dir(&registry)?;
    let registry = registry.display().to_string();
    let commands: [&[&str]; 16] = [
        &["tasks", "list"],
        &["tasks", "list", "--json"],
        &["tasks", "show", "read"],
        &["tasks", "show", "--json", "read"],
        &["tasks", "cancel", "read"],
        &["watch", "read"],
        &["watch", "--json", "read"],
        &["ask", "--id", "read", QUESTION],
        &["ask", "--quiet", "--id", "read", QUESTION],
        &["tools"],
        &["tools", "--json"],
        &["memory", "recall", QUESTION],
        &["eval", "--running", "--set", "dev", "--limit", "1", "--json"],
        &["load", "compare", &out, &out],
        &load,
        &["adapters", "list", "--registry", &registry],
    ];
    for command in commands {
        let output = group.autoact(command.iter().copied())?.unread_stdout().run(TASK_LIMIT).await?;
        assert_eq!((output.code, output.text().contains("error")), (Some(CLOSED), false), "{command:?}: {}", output.text());
        // what was said is what there was to say, whoever listens
        let output = group.autoact(command.iter().copied())?.unread_stderr().run(TASK_LIMIT).await?;
        assert!(matches!(output.code, Some(0 | 3)), "{command:?}: {:?} {}", output.code, output.stdout);
    }
    let nobody = format!("http://127.0.0.1:{}", ports::free_port()?);
    let output = Program::new("autoact")?.args(["--gateway", &nobody, "tasks", "list"]).unread_stdout().unread_stderr().run(QUICK).await?;
    assert_eq!(output.code, Some(UNAVAILABLE));
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

fn says(output: &Output, code: i32, words: &[&str]) {
    assert_eq!(output.code, Some(code), "{}", output.text());
    assert!(output.stderr.starts_with("error: ") && output.stderr.lines().count() == 1, "one line:\n{}", output.text());
    for word in words {
        assert!(output.stderr.contains(word), "`{word}` is missing in:\n{}", output.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_address_is_told_from_a_gateway_that_is_away() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let ask = |address: &str| anyhow::Ok(Program::new("autoact")?.args(["--gateway", address, "ask", QUESTION]));
    let nobody = format!("http://127.0.0.1:{}", ports::free_port()?);
    says(&ask(&nobody)?.run(QUICK).await?, UNAVAILABLE, &[&nobody, "nothing listens", "autoact up"]);
    says(&ask("http://no-such-host.invalid:7400")?.run(QUICK).await?, UNAVAILABLE, &["no-such-host.invalid", "not known", "--gateway"]);
    let metrics = group.metrics("gateway");
    says(&ask(&metrics)?.run(QUICK).await?, UNAVAILABLE, &[&metrics, "HTTP", "as metrics ports do", "--gateway"]);
    let nats = group.nats().replace("nats://", "");
    says(&ask(&nats)?.run(QUICK).await?, UNAVAILABLE, &[&nats, "nats-server"]);
    let memory = group.grpc("memory");
    says(&group.autoact(["--gateway", &memory, "ask", QUESTION])?.run(QUICK).await?, UNAVAILABLE, &["is not the gateway"]);
    let plain = format!("http://{}", group.door("memory"));
    says(&group.autoact(["--gateway", &plain, "ask", QUESTION])?.run(QUICK).await?, UNAVAILABLE, &["expects TLS", "https://"]);
    let secured = format!("https://{}", group.door("gateway"));
    says(&group.autoact(["--gateway", &secured, "ask", QUESTION])?.run(QUICK).await?, UNAVAILABLE, &["plain text", "http://"]);
    let recall = group.autoact(["memory", "recall", "Hamlet", "--memory", &group.gateway()])?;
    says(&recall.run(QUICK).await?, UNAVAILABLE, &["is not the memory service", "--memory"]);
    for wrong in ["https://127.0.0.1:7400", "nats://127.0.0.1:4222", "not an address", ""] {
        // there is no group whose certificate it could take
        let ask = ask(wrong)?.env("AUTOACT_STATE_DIR", "/nonexistent");
        says(&ask.run(QUICK).await?, BAD_ARGUMENTS, &["http://127.0.0.1:7400"]);
    }
    // a load looks before it begins
    let load = group.autoact(["--gateway", &metrics, "load", "--duration", "1s"])?;
    says(&load.run(QUICK).await?, UNAVAILABLE, &["as metrics ports do"]);
    Ok(())
}

/// A gateway without tools says so itself, and its advice is passed on.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_gateway_says_of_itself_is_shown() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let nobody = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let listen = format!("127.0.0.1:{}", ports::free_block(&[0])?);
    let gateway = Program::new("gateway")?
        .args(["--listen", &listen, "--metrics-listen", "127.0.0.1:0"])
        .args(group.nats_args("gateway"))
        .args(["--set", &format!("agents.tool=http://{nobody}"), "--set", "bus.allow_unsynced=true"]);
    let _running = gateway.start()?;
    let begun = Program::new("autoact")?.args(["--gateway", &listen, "tasks", "list"]);
    autoact_testkit::poll_until(QUICK, "the second gateway", async || (begun.run(QUICK).await.ok()?.code == Some(0)).then_some(())).await?;
    let asked = Program::new("autoact")?.args(["--gateway", &listen, "ask", QUESTION]).run(Duration::from_secs(60)).await;
    let asked = asked.context("ask without tools")?;
    says(&asked, UNAVAILABLE, &["is there but cannot serve now", "tool-agent", "try again in 1.0 s"]);
    assert!(!asked.stderr.contains("autoact up"), "{}", asked.text());
    Ok(())
}

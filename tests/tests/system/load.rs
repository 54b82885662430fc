//! Load on a whole group: every task is answered and counted, and nearly all of its time has an
//! owner.

use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::{Group, Program, poll_until, processes};
use autoact_wire::v1;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::clients::{QUICK, TASK_LIMIT, gateway};

#[tokio::test(flavor = "multi_thread")]
async fn a_group_under_load_accounts_for_its_time() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let dir = tempfile::tempdir()?;
    let out = |name: &str| dir.path().join(name).display().to_string();
    open_load(&group, &out("open")).await.context("an open load")?;
    compared(&group, &out("open")).await.context("compare")?;
    closed_load(&group, &out("closed")).await.context("a closed load")?;
    interrupted(&group, &out("interrupted")).await.context("Ctrl-C")?;
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

async fn open_load(group: &Group, out: &str) -> anyhow::Result<()> {
    // few of them: a busy machine takes seconds for each
    let args = ["load", "--rate", "2", "--arrivals", "constant", "--duration", "3s", "--warmup", "1s", "--json", "--out", out];
    let memory = group.grpc("memory");
    let run = group.autoact(args)?.args(["--memory", &memory]).run(TASK_LIMIT).await?;
    assert_eq!(run.code, Some(0), "{}", run.text());
    let report: Value = serde_json::from_str(&run.stdout).with_context(|| run.text())?;
    let (finished, failed) = (report["tasks"]["finished"].as_u64(), report["tasks"]["failed"].as_u64());
    assert_eq!((finished, failed, report["tasks"]["warmup"].as_u64()), (Some(6), Some(0), Some(2)), "{report:#}");
    assert_eq!((&report["codes"]["OK"], report["interrupted"].as_bool()), (&report["tasks"]["finished"], Some(false)));

    let coverage = report["coverage"]["part"].as_f64().context("a coverage")?;
    println!("{:.2}% of the time has an owner", 100.0 * coverage);
    assert!(coverage >= 0.95, "{:#}", report["coverage"]);
    let shares: f64 = parts(&report).filter_map(|part| part["share"].as_f64()).sum();
    assert!((0.95..1.05).contains(&shares), "{shares}");
    for (agent, phase) in [("plan", "decode"), ("tool", "decode"), ("gateway", "bus"), ("gateway", "own"), ("client", "network")] {
        let part = parts(&report).find(|part| part["agent"] == agent && part["phase"] == phase);
        assert!(part.and_then(|part| part["seconds"].as_f64()) > Some(0.0), "{agent} {phase}: {part:?}");
    }
    let count = |name: &str| report["calls"][name]["count"].as_u64();
    assert!(count("plan") >= finished && count("parameterize") > Some(0), "{:#}", report["calls"]);
    assert_eq!((count("memory recall"), report["recalls_failed"].as_u64()), (finished, Some(0)));
    assert!(report["tokens"]["plan"]["prompt"].as_u64() > Some(0));
    assert!(report["latency"]["percentiles_ms"]["p50"].as_f64() > Some(0.0));
    if group.assets().trained {
        assert_eq!(report["score"]["scored"].as_u64(), finished);
    }

    let written: Value = serde_json::from_str(&std::fs::read_to_string(format!("{out}/report.json"))?)?;
    assert_eq!(written, report);
    assert!(std::fs::read_to_string(format!("{out}/report.html"))?.contains("<svg"));
    Ok(())
}

fn parts(report: &Value) -> impl Iterator<Item = &Value> {
    report["parts"].as_array().into_iter().flatten()
}

async fn compared(group: &Group, report: &str) -> anyhow::Result<()> {
    let same = group.autoact(["load", "compare", report, report, "--fail-above", "1.0"])?.run(QUICK).await?;
    assert_eq!(same.code, Some(0), "{}", same.text());
    assert!(same.stdout.contains("no change"), "{}", same.text());
    let none = group.autoact(["load", "compare", report, "nowhere.json"])?.run(QUICK).await?;
    assert!(none.code == Some(1) && none.stderr.contains("nowhere.json"), "{}", none.text());
    Ok(())
}

async fn closed_load(group: &Group, out: &str) -> anyhow::Result<()> {
    let args = ["load", "--closed", "2", "--duration", "1s", "--warmup", "0s", "--out", out];
    let run = group.autoact(args)?.run(TASK_LIMIT).await?;
    assert_eq!(run.code, Some(0), "{}", run.text());
    assert!(run.stdout.contains("coordinated omission") && run.stdout.contains("the phases add up to"), "{}", run.text());
    Ok(())
}

/// The first Ctrl-C ends arrivals and waits for what runs; there is a report all the same.
async fn interrupted(group: &Group, out: &str) -> anyhow::Result<()> {
    let mut client = gateway(&group.gateway())?;
    let before = newest(&mut client).await?;
    let running = group.autoact(["load", "--rate", "2", "--duration", "10m", "--warmup", "0s", "--out", out])?.start()?;
    let pid = running.pid().context("it runs")?;
    let begun = poll_until(QUICK, "a task of the load", async || {
        let newest = newest(&mut client).await.ok()?;
        (newest != before).then_some(())
    });
    begun.await?;
    processes::signal(pid, Signal::SIGINT);
    let output = running.output(TASK_LIMIT).await?;
    assert_eq!(output.code, Some(130), "{}", output.text());
    let report: Value = serde_json::from_str(&std::fs::read_to_string(format!("{out}/report.json"))?)?;
    assert!(report["interrupted"] == true && report["tasks"]["finished"].as_u64() > Some(0), "{report:#}");
    assert_eq!(report["tasks"]["failed"].as_u64(), Some(0));
    Ok(())
}

async fn newest(client: &mut v1::gateway_client::GatewayClient<tonic::transport::Channel>) -> anyhow::Result<String> {
    let tasks = client.list_tasks(v1::ListTasksRequest { page_size: 1, ..v1::ListTasksRequest::default() }).await?.into_inner().tasks;
    Ok(tasks.first().map(|task| task.task_id.clone()).unwrap_or_default())
}

#[tokio::test]
async fn a_gateway_that_is_not_there_is_named() -> anyhow::Result<()> {
    let nobody = format!("http://127.0.0.1:{}", autoact_testkit::ports::free_block(&[0])?);
    let run = Program::new("autoact")?.args(["--gateway", &nobody, "load", "--duration", "1s"]).run(Duration::from_secs(30)).await?;
    assert_eq!(run.code, Some(69), "{}", run.text());
    assert!(run.stderr.contains(&nobody) && run.stderr.contains("autoact up"), "{}", run.text());
    Ok(())
}

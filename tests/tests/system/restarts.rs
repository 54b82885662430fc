//! A gateway that stops and starts under those who ask: each task is one task, and each event is
//! seen once.

use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::program::Running;
use autoact_testkit::{Group, poll_until, processes};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::clients::{ANSWER, QUESTION, QUICK, TASK_LIMIT};
use crate::second::{Held, Second, stop};

#[tokio::test(flavor = "multi_thread")]
async fn those_who_ask_outlast_their_gateway() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let second = Second::of(&group)?;
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        asked(&group, &second, signal).await.with_context(|| format!("ask and {signal}"))?;
    }
    loaded(&group, &second).await.context("load")?;
    given_up(&group, &second).await.context("a gateway that stays away")?;
    interrupted(&group, &second).await.context("Ctrl-C")?;
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

async fn asked(group: &Group, second: &Second, signal: Signal) -> anyhow::Result<()> {
    let gateway = second.start().await?;
    let held = Held::plan_agent(group)?;
    let id = format!("restarted-by-{signal}");
    let mut ask = second.autoact(&["ask", "--json", "--id", &id, QUESTION])?.start()?;
    ask.first_line(QUICK).await?;
    let mut watch = second.autoact(&["watch", "--json", &id])?.start()?;
    watch.first_line(QUICK).await?;
    let mut lines = second.autoact(&["watch", &id])?.start()?;
    lines.first_line(QUICK).await?;
    second.wait_for_tasks(1).await?;
    stop(gateway, signal).await?;
    let gateway = second.start().await?;
    drop(held);

    let (asked, watched, shown) = (ask.output(TASK_LIMIT).await?, watch.output(TASK_LIMIT).await?, lines.output(TASK_LIMIT).await?);
    let events = asked.json_lines()?;
    assert_eq!(watched.json_lines()?, events, "{}", watched.text());
    for (number, event) in (1..).zip(&events) {
        assert_eq!((event["index"].as_u64(), event["task_id"].as_str()), (Some(number), Some(id.as_str())), "{}", asked.text());
    }
    let end = events.last().context("there are events")?;
    assert_eq!(end["event"], "finished", "{}", asked.text());
    if group.assets().trained {
        assert_eq!((asked.code, end["body"]["answer"].as_str()), (Some(0), Some(ANSWER)), "{}", asked.text());
    }
    // one line about the gateway, beside the events, and none where people read
    for output in [&asked, &shown] {
        assert_eq!(output.stderr.lines().collect::<Vec<_>>(), ["the connection to the gateway is gone; looking for it again …"]);
    }
    assert!(shown.stdout.contains("where the time went"), "{}", shown.text());
    stop(gateway, Signal::SIGTERM).await?;
    Ok(())
}

/// Tasks in flight when the gateway goes: each is answered and counted once.
async fn loaded(group: &Group, second: &Second) -> anyhow::Result<()> {
    let gateway = second.start().await?;
    let held = Held::plan_agent(group)?;
    let dir = tempfile::tempdir()?;
    let out = dir.path().display().to_string();
    let args = ["load", "--rate", "4", "--arrivals", "constant", "--duration", "1s", "--warmup", "0s", "--json", "--out", &out];
    let load = second.autoact(&args)?.start()?;
    second.wait_for_tasks(4).await?;
    stop(gateway, Signal::SIGTERM).await?;
    let gateway = second.start().await?;
    drop(held);
    let run = load.output(TASK_LIMIT).await?;
    let report: Value = serde_json::from_str(&run.stdout).with_context(|| run.text())?;
    let tasks = &report["tasks"];
    assert_eq!((&tasks["finished"], &tasks["failed"], &tasks["resumed"]), (&4.into(), &0.into(), &4.into()), "{report:#}");
    assert!(tasks["reconnects"].as_u64() >= Some(4), "{tasks}");
    stop(gateway, Signal::SIGTERM).await?;
    Ok(())
}

/// Looking for a gateway has an end, and says how to come back.
async fn given_up(group: &Group, second: &Second) -> anyhow::Result<()> {
    let gateway = second.start().await?;
    let held = Held::plan_agent(group)?;
    let mut ask = second.autoact(&["ask", "--id", "given-up", "--reconnect", "2s", QUESTION])?.start()?;
    ask.first_line(QUICK).await?;
    stop(gateway, Signal::SIGTERM).await?;
    let asked = ask.output(QUICK).await?;
    assert_eq!(asked.code, Some(69), "{}", asked.text());
    for expected in ["autoact watch given-up --after ", "nothing listens at", &second.address] {
        assert!(asked.stderr.contains(expected), "`{expected}` is missing in:\n{}", asked.text());
    }
    drop(held);
    let later = group.autoact(["watch", "given-up"])?.run(Duration::from_secs(60)).await?;
    assert!(later.stdout.contains("answer"), "{}", later.text());
    Ok(())
}

/// Ctrl-C works while the gateway is there and while it is looked for.
async fn interrupted(group: &Group, second: &Second) -> anyhow::Result<()> {
    let gateway = second.start().await?;
    let held = Held::plan_agent(group)?;
    let mut ask = second.autoact(&["ask", "--id", "cancelled", QUESTION])?.start()?;
    ask.first_line(QUICK).await?;
    let mut watch = second.autoact(&["watch", "cancelled"])?.start()?;
    watch.first_line(QUICK).await?;
    let watched = interrupt(watch).await?;
    assert!(watched.contains("the task goes on") && watched.contains("autoact watch cancelled --after "), "{watched}");
    assert_eq!(interrupt(ask).await?, "cancelled task cancelled\n");

    let mut ask = second.autoact(&["ask", "--id", "lost", QUESTION])?.start()?;
    ask.first_line(QUICK).await?;
    stop(gateway, Signal::SIGTERM).await?;
    let said = interrupt(ask).await?;
    assert!(said.contains("task lost may still run") && said.contains("autoact tasks cancel lost"), "{said}");
    drop(held);
    Ok(())
}

/// What a command says on its standard error after Ctrl-C.
async fn interrupt(running: Running) -> anyhow::Result<String> {
    processes::signal(running.pid().context("it runs")?, Signal::SIGINT);
    let output = running.output(QUICK).await?;
    assert_eq!(output.code, Some(130), "{}", output.text());
    Ok(output.stderr)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_ctrl_c_does_not_wait_for_a_service_that_hangs() -> anyhow::Result<()> {
    let mut group = Group::start().await?;
    let _held = Held::plan_agent(&group)?;
    group.signal(Signal::SIGINT);
    poll_until(QUICK, "the first Ctrl-C to be heard", async || group.said().contains("stopping").then_some(())).await?;
    group.signal(Signal::SIGINT);
    // a service that hangs is given 15 s otherwise
    assert_eq!(group.ended(Duration::from_secs(10)).await?, Some(0), "{}", group.said());
    assert!(group.said().contains("ending at once"), "{}", group.said());
    group.all_gone(QUICK).await
}

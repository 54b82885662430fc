//! Two releases in one fleet: each goes on with tasks that the other began, and no task is lost or
//! unreadable.
//!
//! `AUTOACT_TEST_LONG=1` keeps them under load for five minutes instead of seconds.

use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::group::GroupOptions;
use autoact_testkit::{Group, poll_until};
use autoact_wire::v1;
use autoact_wire::v1::trajectory_event::Body;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::clients::{QUICK, TASK_LIMIT, gateway, long, watch};
use crate::second::{Second, counted, stop};

/// What a gateway does before its turn is over.
const STEPS: f64 = 4.0;

#[tokio::test(flavor = "multi_thread")]
async fn two_releases_run_each_others_tasks() -> anyhow::Result<()> {
    // the group's own gateway leaves work for the others
    let env = vec![("AUTOACT_GATEWAY__MAX_RUNNING".to_owned(), "1".to_owned())];
    let group = Group::start_with(GroupOptions { env, ..GroupOptions::default() }).await?;
    let this = Second::of(&group)?;
    let next = this.in_place_of(&group, "next-gateway")?;
    let seconds = if long() { 300 } else { 20 };
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("report").display().to_string();
    let duration = format!("{seconds}s");
    let args = ["load", "--rate", "2", "--arrivals", "constant", "--duration", &duration, "--warmup", "0s", "--json", "--out", &out];

    // the two in turn, and the group's own gateway, of this release, beside them
    let mut running = next.start().await?;
    let load = tokio::spawn(group.autoact(args)?.start()?.output(Duration::from_secs(seconds) + TASK_LIMIT));
    let mut passed = 0;
    for (now, then) in [(&next, &this), (&this, &next)].into_iter().cycle() {
        poll_until(TASK_LIMIT, "steps here", async || {
            (load.is_finished() || now.counted("autoact_steps_total").await.ok()? >= STEPS).then_some(())
        })
        .await?;
        if load.is_finished() {
            break;
        }
        poll_until(TASK_LIMIT, "a task here", async || {
            (load.is_finished() || now.counted("autoact_tasks_running").await.ok()? > 0.0).then_some(())
        })
        .await?;
        assert_eq!(now.counted("autoact_tasks_unreadable_total").await?, 0.0);
        stop(running, Signal::SIGTERM).await?;
        running = then.start().await?;
        passed += 1;
    }
    assert!(passed > 0, "the releases never took turns");
    let run = load.await??;
    let report: Value = serde_json::from_str(&run.stdout).with_context(|| run.text())?;
    let tasks = &report["tasks"];
    assert_eq!((tasks["finished"].as_u64(), tasks["failed"].as_u64()), (Some(2 * seconds), Some(0)), "{report:#}");
    assert_eq!(counted(&group.metrics("gateway"), "autoact_tasks_unreadable_total").await?, 0.0);

    let written = written(&group).await?;
    println!("{passed} changes of release, {} tasks, {written:?}", 2 * seconds);
    assert!(written.bodies > 0, "no body was written that this release does not know");
    if group.assets().trained {
        assert!(written.reasons > 0, "no reason was written that this release does not know");
    }
    stop(running, Signal::SIGTERM).await?;
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

/// What this release does not know of what was stored, as its own gateway tells it.
#[derive(Debug, Default)]
struct Written {
    bodies: usize,
    reasons: usize,
}

async fn written(group: &Group) -> anyhow::Result<Written> {
    let mut client = gateway(&group.gateway())?;
    let mut written = Written::default();
    let mut page_token = String::new();
    loop {
        let request = v1::ListTasksRequest { page_size: 100, page_token, ..v1::ListTasksRequest::default() };
        let page = autoact_testkit::within(QUICK, "a page", client.list_tasks(request)).await??.into_inner();
        for task in &page.tasks {
            let ended = matches!(task.outcome(), v1::TaskOutcome::Finished | v1::TaskOutcome::NoAnswer);
            assert!(ended && task.state() == v1::TaskState::Finished, "{task:?}");
            let events = watch(&mut client, &task.task_id, 0).await?;
            written.bodies += events.iter().filter(|event| event.body.is_none()).count();
            let unknown = |body: &Body| matches!(body, Body::Finished(end) if end.reason() == v1::FinishReason::Unspecified);
            written.reasons += events.iter().filter_map(|event| event.body.as_ref()).filter(|body| unknown(body)).count();
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(written);
        }
    }
}

//! Starting, stopping, being killed: nothing is left running, nothing that was answered is lost.

use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::group::SERVICES;
use autoact_testkit::{Group, processes};
use nix::sys::signal::Signal;

use crate::clients::{QUICK, TASK_LIMIT, ask, check_whole, gateway, task, watch};

/// How long a group may take to go: the services have nothing in flight.
const STOP: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn a_group_goes_whole_and_comes_back_with_what_it_knew() -> anyhow::Result<()> {
    let mut group = Group::start().await?;
    let mut client = gateway(&group.gateway())?;
    let question = "What is the capital of Peru?";
    let events = ask(&mut client, task(question)).await?;
    let id = events[0].task_id.clone();

    // `autoact down`
    let assets = group.assets();
    let files = [("--model", &assets.model), ("--adapters", &assets.adapters), ("--corpus", &assets.corpus), ("--tools", &assets.tools)];
    let files = files.into_iter().flat_map(|(flag, path)| [flag.to_owned(), path.display().to_string()]);
    let second = group.autoact(["up"])?.args(files).run(QUICK).await?;
    assert_eq!(second.code, Some(1), "{}", second.text());
    assert!(second.stderr.contains("already runs"), "{}", second.text());
    let down = group.autoact(["down"])?.run(STOP).await?;
    assert_eq!((down.code, down.stdout.trim()), (Some(0), "stopped"), "{}", down.text());
    assert_eq!(group.ended(STOP).await?, Some(0), "{}", group.said());
    group.all_gone(STOP).await.context("after `autoact down`")?;
    assert_eq!(group.panics(), [""; 0]);

    // what was answered is still there
    group.start_again().await?;
    assert_eq!(watch(&mut gateway(&group.gateway())?, &id, 0).await?, events);

    // Ctrl-C, with a task in flight
    let mut client = gateway(&group.gateway())?;
    let running = client.submit_task(task(question)).await?.into_inner().task.context("a task")?.task_id;
    group.signal(Signal::SIGINT);
    assert_eq!(group.ended(STOP).await?, Some(0), "{}", group.said());
    group.all_gone(STOP).await.context("after Ctrl-C")?;
    assert_eq!(group.panics(), [""; 0]);

    // the task that was in flight is finished by the next group
    group.start_again().await?;
    let resumed = autoact_testkit::within(TASK_LIMIT, "the resumed task", watch(&mut gateway(&group.gateway())?, &running, 0)).await??;
    check_whole(&resumed, question)?;

    // a child that dies takes the group with it, and `up` says which
    let victim = group.processes().into_iter().find(|process| process.name == "memory").context("memory runs")?;
    processes::signal(victim.pid, Signal::SIGKILL);
    assert_eq!(group.ended(STOP).await?, Some(1), "{}", group.said());
    assert!(group.said().contains("`memory` ended"), "{}", group.said());
    group.all_gone(STOP).await.context("after a child died")?;

    // SIGKILL leaves nobody to clean up, and still nothing runs on
    group.start_again().await?;
    for name in SERVICES {
        let short = &name[..name.len().min(15)];
        assert!(group.processes().iter().any(|process| process.name == short), "{name} runs: {:?}", group.processes());
    }
    group.signal(Signal::SIGKILL);
    assert_eq!(group.ended(STOP).await?, None);
    group.all_gone(STOP).await.context("after SIGKILL")?;
    group.start_again().await.context("after SIGKILL: the stale state is no obstacle")?;
    assert_eq!(watch(&mut gateway(&group.gateway())?, &id, 0).await?, events);
    Ok(())
}

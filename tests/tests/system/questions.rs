//! One group, asked in every way there is.

use std::time::Duration;

use anyhow::Context as _;
use autoact_testkit::{Group, poll_until};
use autoact_wire::v1::{self, trajectory_event::Body};
use futures::StreamExt as _;
use serde_json::Value;

use crate::clients::{ANSWER, QUESTION, QUICK, TASK_LIMIT, ask, check_whole, finished, gateway, task, watch};

#[tokio::test(flavor = "multi_thread")]
async fn a_group_is_asked_by_command_and_over_grpc() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let id = by_command(&group).await.context("autoact ask")?;
    the_same_id_is_the_same_task(&group, &id).await.context("idempotent")?;
    come_back_by_command(&group, &id).await.context("autoact tasks and watch")?;
    remembered(&group, &id).await.context("autoact memory recall")?;
    over_grpc(&group).await.context("Ask over gRPC")?;
    leave_and_come_back(&group).await.context("WatchTask at a sequence")?;
    bounds_and_cancel(&group).await.context("bounds and CancelTask")?;
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

async fn by_command(group: &Group) -> anyhow::Result<String> {
    let output = group.autoact(["ask", "--json", QUESTION])?.run(TASK_LIMIT).await?;
    let events = output.json_lines()?;
    let (first, last) = (events.first().context("no events")?, events.last().context("no events")?);
    assert_eq!((field(first, "event"), field(&first["body"], "question")), ("submitted", QUESTION));
    assert_eq!(field(last, "event"), "finished");
    for (number, event) in (1..).zip(&events) {
        assert_eq!(event["index"].as_u64(), Some(number));
        assert_eq!(event["task_id"], first["task_id"]);
    }
    let thought = events.iter().find(|event| field(event, "event") == "thought").context("no thought")?;
    assert!(thought["usage"]["completion_tokens"].as_u64() > Some(0), "{thought}");
    assert!(thought["usage"]["total_seconds"].as_f64() > Some(0.0), "{thought}");
    let approved = last["body"]["approved"].as_bool() == Some(true);
    assert_eq!(output.code, Some(if approved { 0 } else { 3 }), "{}", output.text());
    if group.assets().trained {
        assert!(approved && field(&last["body"], "answer") == ANSWER, "{last}");
    }
    let quiet = group.autoact(["ask", "--quiet", QUESTION])?.run(TASK_LIMIT).await?;
    // greedy decoding: the same question, the same answer
    assert_eq!(quiet.stdout.trim_end_matches('\n'), field(&last["body"], "answer"));
    let lines = group.autoact(["ask", QUESTION])?.run(TASK_LIMIT).await?;
    for expected in ["question", "thought 1", "action 1", "answer", "where the time went"] {
        assert!(lines.stdout.contains(expected), "`{expected}` is missing in:\n{}", lines.stdout);
    }
    Ok(field(first, "task_id").to_owned())
}

async fn the_same_id_is_the_same_task(group: &Group, id: &str) -> anyhow::Result<()> {
    let again = group.autoact(["ask", "--json", "--id", id, QUESTION])?.run(QUICK).await?;
    assert!(again.json_lines()?.iter().all(|event| field(event, "task_id") == id), "{}", again.text());
    let other = group.autoact(["ask", "--id", id, "Who wrote Hamlet?"])?.run(QUICK).await?;
    assert_eq!(other.code, Some(1), "{}", other.text());
    assert!(other.stderr.contains("choose another id") && other.stderr.contains(id), "{}", other.text());
    Ok(())
}

async fn come_back_by_command(group: &Group, id: &str) -> anyhow::Result<()> {
    let list = group.autoact(["tasks", "list", "--json"])?.run(QUICK).await?;
    let list: Value = serde_json::from_str(&list.stdout)?;
    assert!(list.as_array().is_some_and(|tasks| tasks.iter().any(|task| field(task, "task_id") == id)), "{list}");
    let shown = group.autoact(["tasks", "show", "--json", id])?.run(QUICK).await?;
    let shown: Value = serde_json::from_str(&shown.stdout)?;
    assert_eq!(field(&shown, "question"), QUESTION);
    assert!(shown["turns"].as_array().is_some_and(|turns| !turns.is_empty()), "{shown}");
    let all = group.autoact(["watch", "--json", id])?.run(QUICK).await?.json_lines()?;
    let middle = &all[all.len() / 2]["sequence"];
    let rest = group.autoact(["watch", "--json", "--after", &middle.to_string(), id])?.run(QUICK).await?.json_lines()?;
    assert_eq!(rest, all[all.len() / 2 + 1..]);
    let unknown = group.autoact(["watch", "no-such-task"])?.run(QUICK).await?;
    assert_eq!(unknown.code, Some(1));
    assert!(unknown.stderr.contains("no-such-task"), "{}", unknown.text());
    Ok(())
}

async fn remembered(group: &Group, id: &str) -> anyhow::Result<()> {
    if !group.assets().trained {
        // a task without an answer leaves no memory
        return Ok(());
    }
    poll_until(QUICK, "the task to be remembered", async || {
        let recalled = group.autoact(["memory", "recall", "--json", QUESTION]).ok()?.run(QUICK).await.ok()?;
        let recalled: Value = serde_json::from_str(&recalled.stdout).ok()?;
        recalled.as_array()?.iter().any(|task| field(task, "task_id") == id).then_some(())
    })
    .await
}

async fn over_grpc(group: &Group) -> anyhow::Result<()> {
    let mut client = gateway(&group.gateway())?;
    let question = "What is the capital of Italy?";
    let events = ask(&mut client, task(question)).await?;
    check_whole(&events, question)?;
    let end = finished(&events)?;
    if group.assets().trained {
        assert!(end.approved && end.answer == "Rome", "{end:?}");
    }
    let stored = client
        .get_task(v1::GetTaskRequest { task_id: events[0].task_id.clone(), ..v1::GetTaskRequest::default() })
        .await?
        .into_inner()
        .task
        .context("a task")?;
    assert_eq!((&stored.answer, stored.approved, stored.state()), (&end.answer, end.approved, v1::TaskState::Finished));
    assert_eq!(stored.last_sequence, events[events.len() - 1].sequence);
    Ok(())
}

async fn leave_and_come_back(group: &Group) -> anyhow::Result<()> {
    let mut client = gateway(&group.gateway())?;
    let question = "Which country has Lima as its capital?";
    let mut stream = client.ask(v1::AskRequest { task: Some(task(question)), ..v1::AskRequest::default() }).await?.into_inner();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        let message = autoact_testkit::within(TASK_LIMIT, "an event", stream.next()).await?.context("the stream goes on")??;
        seen.push(message.event.context("an event")?);
    }
    // the client hangs up in the middle
    drop(stream);
    let mut later = gateway(&group.gateway())?;
    let rest = watch(&mut later, &seen[0].task_id, seen[2].sequence).await?;
    let together: Vec<_> = seen.into_iter().chain(rest).collect();
    check_whole(&together, question)?;
    assert_eq!(watch(&mut later, &together[0].task_id, 0).await?, together);
    Ok(())
}

async fn bounds_and_cancel(group: &Group) -> anyhow::Result<()> {
    let mut client = gateway(&group.gateway())?;
    let limits = v1::Limits { max_steps: Some(1), ..v1::Limits::default() };
    let events = ask(&mut client, v1::SubmitTaskRequest { limits: Some(limits), ..task(QUESTION) }).await?;
    let end = finished(&events)?;
    if group.assets().trained {
        assert_eq!((end.approved, end.reason()), (false, v1::FinishReason::MaxSteps), "{end:?}");
    }
    let only = v1::SubmitTaskRequest { tools: vec!["Retrieve".to_owned()], ..task(QUESTION) };
    let events = ask(&mut client, only).await?;
    for event in &events {
        if let Some(Body::Thought(thought)) = &event.body {
            assert!(["Retrieve", "Finish"].contains(&thought.tool.as_str()), "{thought:?}");
        }
    }
    let cancelled = client.cancel_task(v1::CancelTaskRequest { task_id: events[0].task_id.clone() }).await?.into_inner();
    let stored = cancelled.task.context("a task")?;
    assert_eq!(
        (stored.answer.as_str(), stored.reason()),
        (finished(&events)?.answer.as_str(), finished(&events)?.reason()),
        "cancelling a finished task"
    );
    let running = client.submit_task(task("What is the highest mountain of the country where the Loire flows?")).await?.into_inner();
    let id = running.task.context("a task")?.task_id;
    client.cancel_task(v1::CancelTaskRequest { task_id: id.clone() }).await?;
    let end = poll_until(Duration::from_secs(10), "the cancelled task to end", async || {
        let task = client
            .clone()
            .get_task(v1::GetTaskRequest { task_id: id.clone(), ..v1::GetTaskRequest::default() })
            .await
            .ok()?
            .into_inner()
            .task?;
        (task.state() == v1::TaskState::Finished).then_some(task)
    })
    .await?;
    // it may have been faster than we
    assert!(end.reason() == v1::FinishReason::Cancelled || end.reason() == v1::FinishReason::Approved || !end.approved, "{end:?}");
    Ok(())
}

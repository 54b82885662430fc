//! Requests that cannot be served: each gets one clear error with the right code, and the group
//! goes on.

use anyhow::Context as _;
use autoact_testkit::group::SERVICES;
use autoact_testkit::{Group, poll_until};
use autoact_wire::agents_v1;
use autoact_wire::agents_v1::plan_agent_client::PlanAgentClient;
use autoact_wire::agents_v1::reflect_agent_client::ReflectAgentClient;
use autoact_wire::agents_v1::tool_agent_client::ToolAgentClient;
use autoact_wire::client::connect_lazy;
use autoact_wire::v1::{self, SubmitTaskRequest};
use autoact_wire::{limited, status};
use futures::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tonic::{Code, Status};

use crate::clients::{QUICK, TASK_LIMIT, ask, check_whole, gateway, task};

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_get_one_clear_error_and_leave_the_group_well() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let before = group.processes().len();
    questions(&group).await.context("questions")?;
    unknown_tasks(&group).await.context("unknown tasks")?;
    commands(&group).await.context("commands")?;
    agents(&group).await.context("agents")?;
    hang_ups(&group).await.context("clients that hang up")?;
    noise(&group).await.context("noise")?;

    let mut client = gateway(&group.gateway())?;
    let question = "What is the capital of Peru?";
    check_whole(&ask(&mut client, task(question)).await?, question).context("the group still answers")?;
    assert_eq!(group.panics(), [""; 0]);
    assert_eq!(group.processes().len(), before, "no process ended, none was added: {:?}", group.processes());
    Ok(())
}

/// The code, our own reason, and words that the message must have.
fn expect(status: &Status, code: Code, words: &[&str]) {
    assert_eq!(status.code(), code, "{status:?}");
    assert!(status::reason(status).is_some(), "a reason for programs: {status:?}");
    for word in words {
        assert!(status.message().contains(word), "`{word}` is missing in `{}`", status.message());
    }
    assert!(status.message().len() < 2000, "the message repeats the request");
}

async fn refused(group: &Group, request: SubmitTaskRequest) -> anyhow::Result<Status> {
    let mut client = gateway(&group.gateway())?;
    let submitted = client.submit_task(request.clone()).await.err().context("it was accepted")?;
    let asked = match client.ask(v1::AskRequest { task: Some(request), ..v1::AskRequest::default() }).await {
        Err(status) => status,
        Ok(stream) => stream.into_inner().next().await.context("an error")?.err().context("it was accepted")?,
    };
    assert_eq!((asked.code(), asked.message()), (submitted.code(), submitted.message()), "Ask and SubmitTask agree");
    Ok(submitted)
}

async fn questions(group: &Group) -> anyhow::Result<()> {
    for empty in ["", "   ", "\n\t"] {
        expect(&refused(group, task(empty)).await?, Code::InvalidArgument, &["question"]);
    }
    expect(&refused(group, task(&"why ".repeat(250_000))).await?, Code::InvalidArgument, &["question", "1000000"]);
    let unknown = SubmitTaskRequest { tools: vec!["Retrieve".to_owned(), "Teleport".to_owned()], ..task("Where am I?") };
    expect(&refused(group, unknown).await?, Code::InvalidArgument, &["Teleport", "Retrieve"]);
    let id = SubmitTaskRequest { task_id: "a.b c".to_owned(), ..task("Where am I?") };
    expect(&refused(group, id).await?, Code::InvalidArgument, &["a.b c"]);
    let sampling = v1::SamplingParams { temperature: f32::NAN, ..v1::SamplingParams::default() };
    expect(
        &refused(group, SubmitTaskRequest { sampling: Some(sampling), ..task("Where am I?") }).await?,
        Code::InvalidArgument,
        &["temperature"],
    );
    let mut client = gateway(&group.gateway())?;
    let status = client.ask(v1::AskRequest::default()).await.err().context("it was accepted")?;
    expect(&status, Code::InvalidArgument, &["task"]);
    // larger than any message may be: the transport itself refuses it
    let mut client = v1::gateway_client::GatewayClient::new(connect_lazy(&group.gateway())?);
    let huge = client.submit_task(task(&"x".repeat(20 << 20))).await.err().context("it was accepted")?;
    assert!(matches!(huge.code(), Code::OutOfRange | Code::ResourceExhausted), "{huge:?}");
    Ok(())
}

async fn unknown_tasks(group: &Group) -> anyhow::Result<()> {
    let mut client = gateway(&group.gateway())?;
    let id = || "never-submitted".to_owned();
    let get = client.get_task(v1::GetTaskRequest { task_id: id(), ..v1::GetTaskRequest::default() }).await.err().context("found")?;
    let cancel = client.cancel_task(v1::CancelTaskRequest { task_id: id() }).await.err().context("found")?;
    let watch = match client.watch_task(v1::WatchTaskRequest { task_id: id(), after_sequence: 0, ..v1::WatchTaskRequest::default() }).await
    {
        Err(status) => status,
        Ok(stream) => stream.into_inner().next().await.context("an error")?.err().context("found")?,
    };
    for status in [get, cancel, watch] {
        expect(&status, Code::NotFound, &["never-submitted"]);
    }
    let page = client
        .list_tasks(v1::ListTasksRequest { page_size: 5, page_token: "garbage".to_owned(), ..v1::ListTasksRequest::default() })
        .await
        .err()
        .context("accepted")?;
    expect(&page, Code::InvalidArgument, &["page_token"]);
    Ok(())
}

async fn commands(group: &Group) -> anyhow::Result<()> {
    let empty = group.autoact(["ask", ""])?.run(QUICK).await?;
    assert_eq!(empty.code, Some(64), "{}", empty.text());
    assert!(empty.stderr.starts_with("error: ") && empty.stderr.contains("question"), "{}", empty.text());
    let unknown = group.autoact(["ask", "--tools", "Teleport", "Where am I?"])?.run(QUICK).await?;
    assert_eq!(unknown.code, Some(64), "{}", unknown.text());
    assert!(unknown.stderr.contains("Teleport"), "{}", unknown.text());
    let nonsense = group.autoact(["ask", "--no-such-flag"])?.run(QUICK).await?;
    assert_eq!(nonsense.code, Some(64), "{}", nonsense.text());
    Ok(())
}

async fn agents(group: &Group) -> anyhow::Result<()> {
    let mut plan = limited!(PlanAgentClient::new(group.channel("plan-agent")?));
    let status = plan.plan(agents_v1::PlanRequest::default()).await.err().context("accepted")?;
    expect(&status, Code::InvalidArgument, &["trajectory"]);
    let mut reflect = limited!(ReflectAgentClient::new(group.channel("reflect-agent")?));
    let status = reflect.reflect(agents_v1::ReflectRequest::default()).await.err().context("accepted")?;
    expect(&status, Code::InvalidArgument, &["trajectory"]);
    let mut tools = limited!(ToolAgentClient::new(group.channel("tool-agent")?));
    let action = v1::Action { tool: "Teleport".to_owned(), params: "home".to_owned() };
    let trajectory = v1::Trajectory { task_id: "bad".to_owned(), question: "Where am I?".to_owned(), ..v1::Trajectory::default() };
    let request = agents_v1::ExecuteRequest {
        task_id: "bad".to_owned(),
        step: 0,
        action: Some(action),
        trajectory: Some(trajectory),
        ..agents_v1::ExecuteRequest::default()
    };
    let status = tools.execute(request).await.err().context("accepted")?;
    assert!(matches!(status.code(), Code::InvalidArgument | Code::NotFound), "{status:?}");
    assert!(status.message().contains("Teleport"), "{status:?}");
    Ok(())
}

/// A client that goes away in the middle takes nothing with it: the task ends all the same.
async fn hang_ups(group: &Group) -> anyhow::Result<()> {
    let mut ids = Vec::new();
    for events in 1..=3 {
        let mut client = gateway(&group.gateway())?;
        let mut stream = client
            .ask(v1::AskRequest { task: Some(task("What is the capital of Peru?")), ..v1::AskRequest::default() })
            .await?
            .into_inner();
        for _ in 0..events {
            let event = stream.next().await.context("the stream goes on")??.event.context("an event")?;
            ids.push(event.task_id);
        }
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
    let client = gateway(&group.gateway())?;
    for id in ids {
        poll_until(TASK_LIMIT, "the task to finish without its client", async || {
            let task = client
                .clone()
                .get_task(v1::GetTaskRequest { task_id: id.clone(), ..v1::GetTaskRequest::default() })
                .await
                .ok()?
                .into_inner()
                .task?;
            (task.state() == v1::TaskState::Finished).then_some(())
        })
        .await?;
    }
    Ok(())
}

/// What is no gRPC at all.
async fn noise(group: &Group) -> anyhow::Result<()> {
    for service in SERVICES {
        for address in [group.door(service), group.metrics(service)] {
            let mut stream = tokio::net::TcpStream::connect(&address).await?;
            // the other end may hang up before it has read everything
            let _ = stream.write_all(&[0xff; 4096]).await;
            let _ = stream.shutdown().await;
        }
    }
    Ok(())
}

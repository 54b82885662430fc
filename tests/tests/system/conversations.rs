//! Conversations over real services: memory and the gateway are killed between and within two tasks
//! of one conversation, and the second has the first.

use anyhow::Context as _;
use autoact_testkit::poll::poll_until;
use autoact_testkit::{Cluster, ClusterOptions, Group, NatsServer};
use autoact_wire::client::connect_lazy;
use autoact_wire::memory_v1::memory_client::MemoryClient;
use autoact_wire::memory_v1::{ForgetRequest, ListMemoriesRequest, stored_memory};
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::clients::{QUESTION, QUICK, TASK_LIMIT, finished, gateway, watch};

const CONVERSATION: &str = "trip";

fn memory(fleet: &Cluster) -> anyhow::Result<MemoryClient<Channel>> {
    Ok(MemoryClient::new(connect_lazy(&fleet.address("memory"))?))
}

/// The tasks that memory has of the conversation, as turns.
async fn turns(fleet: &Cluster) -> Option<Vec<String>> {
    let request = ListMemoriesRequest { conversation_id: CONVERSATION.to_owned(), ..Default::default() };
    let memories = memory(fleet).ok()?.list_memories(request).await.ok()?.into_inner().memories;
    let turn = |memory| if let stored_memory::Memory::Turn(turn) = memory { Some(turn.task_id) } else { None };
    Some(memories.into_iter().filter_map(|stored| stored.memory).filter_map(turn).collect())
}

fn said(id: &str, question: &str) -> v1::SubmitTaskRequest {
    let (task_id, conversation_id, question) = (id.to_owned(), CONVERSATION.to_owned(), question.to_owned());
    // with a step of its own, so that a model of random weights has an answer
    let limits = Some(v1::Limits { max_time: Some(prost_types::Duration { seconds: 60, nanos: 0 }), ..v1::Limits::default() });
    v1::SubmitTaskRequest { task_id, conversation_id, question, limits, ..v1::SubmitTaskRequest::default() }
}

fn recalled(events: &[TrajectoryEvent]) -> Vec<&v1::Recalled> {
    events.iter().filter_map(|event| if let Some(Body::Recalled(recalled)) = &event.body { Some(recalled) } else { None }).collect()
}

/// The same by commands, over a whole group.
#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_asked_listed_and_forgotten_by_command() -> anyhow::Result<()> {
    let group = Group::start().await?;
    let ask = async |id: &str, question: &str| -> anyhow::Result<Vec<Value>> {
        let asked = group.autoact(["ask", "--json", "--id", id, "--conversation", CONVERSATION, question])?.run(TASK_LIMIT).await?;
        asked.json_lines()
    };
    let recalled = |events: &[Value]| -> Vec<Value> {
        events.iter().filter(|event| event["event"] == "recalled").map(|event| event["body"].clone()).collect()
    };
    let first = ask("first", QUESTION).await?;
    let answer = first.last().map(|event| event["body"]["answer"].clone()).context("an end")?;
    assert_eq!(recalled(&first), [json!({ "items": [], "left_out": 0, "failure": "" })]);
    if answer == "" {
        return Ok(());
    }
    // however soon it is asked
    let second = ask("second", "Which country does the Loire flow through?").await?;
    let items = &recalled(&second)[0]["items"];
    assert_eq!((&items[0]["task_id"], &items[0]["answer"], &items[0]["kind"]), (&json!("first"), &answer, &json!("turn")));
    assert_eq!(items.as_array().map(Vec::len), Some(1), "{items}");
    let watched = group.autoact(["watch", "second"])?.run(QUICK).await?;
    assert!(watched.stdout.contains("recalled") && watched.stdout.contains("1 earlier answer of this conversation"), "{}", watched.text());

    let list = async || -> anyhow::Result<Vec<Value>> {
        let listed = group.autoact(["memory", "list", "--json", "--conversation", CONVERSATION])?.run(QUICK).await?;
        Ok(serde_json::from_str(&listed.stdout)?)
    };
    poll_until(QUICK, "both tasks to be remembered", async || list().await.ok().filter(|memories| memories.len() == 4)).await?;
    let shown = group.autoact(["memory", "show", "first"])?.run(QUICK).await?;
    assert!(shown.code == Some(0) && shown.stdout.contains(QUESTION) && shown.stdout.contains(CONVERSATION), "{}", shown.text());
    let unclear = group.autoact(["memory", "forget"])?.run(QUICK).await?;
    assert_eq!(unclear.code, Some(64), "{}", unclear.text());
    let forgotten = group.autoact(["memory", "forget", "--json", "first"])?.run(QUICK).await?;
    assert_eq!(serde_json::from_str::<Value>(&forgotten.stdout)?, json!({ "forgotten": 2 }));
    let missing = group.autoact(["memory", "show", "first"])?.run(QUICK).await?;
    assert!(missing.code == Some(1) && missing.stderr.contains("no such memory"), "{}", missing.text());
    let forgotten = group.autoact(["memory", "forget", "--conversation", CONVERSATION])?.run(QUICK).await?;
    assert_eq!(forgotten.stdout, "forgot 2 memories\n");
    assert_eq!(list().await?, [Value::Null; 0]);
    assert_eq!(group.panics(), [""; 0]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_outlives_kills_of_memory_and_gateway() -> anyhow::Result<()> {
    let options = ClusterOptions { memory: true, ..ClusterOptions::default() };
    let mut fleet = Cluster::start(vec![NatsServer::start().await?], options, |assets, _| Ok(assets.tools.clone())).await?;
    let mut client = gateway(&fleet.address("gateway"))?;

    // memory is away while the first task begins and ends, and then the gateway goes too
    fleet.kill("memory").await?;
    client.submit_task(said("first", QUESTION)).await?;
    let events = watch(&mut client, "first", 0).await?;
    let answer = finished(&events)?.answer.clone();
    let [none] = recalled(&events)[..] else { anyhow::bail!("{events:?}") };
    assert!(none.items.is_empty() && !none.failure.is_empty(), "{none:?}");
    fleet.kill("gateway").await?;
    fleet.restart("memory").await?;
    if answer.is_empty() {
        // a model of random weights: what has no answer leaves no memory
        return Ok(());
    }
    assert_eq!(turns(&fleet).await.context("memory answers")?, [""; 0]);
    fleet.restart("gateway").await?;
    poll_until(TASK_LIMIT, "memory to hear of the first task", async || turns(&fleet).await.filter(|turns| *turns == ["first"])).await?;

    // the gateway is killed once the second task has recalled
    client.submit_task(said("second", "Which country does the Loire flow through?")).await?;
    let request = v1::WatchTaskRequest { task_id: "second".to_owned(), ..v1::WatchTaskRequest::default() };
    let mut stream = client.watch_task(request).await?.into_inner();
    while let Some(response) = stream.next().await {
        if matches!(response?.event.and_then(|event| event.body), Some(Body::Recalled(_))) {
            break;
        }
    }
    fleet.kill("gateway").await?;
    // a holder that recalled again would find nothing
    memory(&fleet)?.forget(ForgetRequest { conversation_id: CONVERSATION.to_owned(), ..Default::default() }).await?;
    fleet.restart("gateway").await?;
    let events = watch(&mut client, "second", 0).await?;
    let [recalled] = recalled(&events)[..] else { anyhow::bail!("{events:?}") };
    let ids: Vec<&str> = recalled.items.iter().map(|item| item.task_id.as_str()).collect();
    assert_eq!((ids, recalled.items[0].answer.as_str()), (vec!["first"], answer.as_str()));
    let starts = events.iter().filter(|event| matches!(event.body, Some(Body::Started(_)))).count();
    assert!(starts > 1, "it was taken over");
    finished(&events)?;

    // what was forgotten stays so when memory starts again; what ended later is there
    poll_until(QUICK, "memory to hear of the second task", async || turns(&fleet).await.filter(|turns| *turns == ["second"])).await?;
    fleet.kill("memory").await?;
    fleet.restart("memory").await?;
    assert_eq!(turns(&fleet).await.context("memory answers")?, ["second"]);
    Ok(())
}

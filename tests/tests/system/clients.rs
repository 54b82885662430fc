//! Clients, and what every test asks of a finished task.

use std::time::Duration;

use anyhow::Context as _;
use autoact_wire::client::connect_lazy;
use autoact_wire::v1::gateway_client::GatewayClient;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, TrajectoryEvent};
use futures::{Stream, StreamExt as _};
use tonic::Status;
use tonic::transport::Channel;

/// Longer than any task: a stuck one fails its test, not the run.
pub(crate) const TASK_LIMIT: Duration = Duration::from_secs(90);
/// For commands that answer at once.
pub(crate) const QUICK: Duration = Duration::from_secs(20);

/// A two-hop question about the atlas; the answer is in the pages.
pub(crate) const QUESTION: &str = "What is the capital of the country where the Loire flows?";
/// Its answer.
pub(crate) const ANSWER: &str = "Paris";

/// Whether tests that can go on for minutes are to do so: `AUTOACT_TEST_LONG=1`.
pub(crate) fn long() -> bool {
    std::env::var("AUTOACT_TEST_LONG").is_ok_and(|value| value == "1")
}

pub(crate) fn gateway(address: &str) -> anyhow::Result<GatewayClient<Channel>> {
    Ok(autoact_wire::limited!(GatewayClient::new(connect_lazy(address)?)))
}

pub(crate) fn task(question: &str) -> v1::SubmitTaskRequest {
    v1::SubmitTaskRequest { question: question.to_owned(), ..v1::SubmitTaskRequest::default() }
}

/// Asks and collects every event until the stream ends.
pub(crate) async fn ask(client: &mut GatewayClient<Channel>, task: v1::SubmitTaskRequest) -> anyhow::Result<Vec<TrajectoryEvent>> {
    let stream = client.ask(v1::AskRequest { task: Some(task), ..v1::AskRequest::default() }).await?.into_inner();
    collect(stream.map(|item| item.map(|response| response.event))).await
}

/// Watches a task from a sequence on until the stream ends.
pub(crate) async fn watch(client: &mut GatewayClient<Channel>, task_id: &str, after_sequence: u64) -> anyhow::Result<Vec<TrajectoryEvent>> {
    let request = v1::WatchTaskRequest { task_id: task_id.to_owned(), after_sequence, ..v1::WatchTaskRequest::default() };
    let stream = client.watch_task(request).await?.into_inner();
    collect(stream.map(|item| item.map(|response| response.event))).await
}

async fn collect(mut stream: impl Stream<Item = Result<Option<TrajectoryEvent>, Status>> + Unpin) -> anyhow::Result<Vec<TrajectoryEvent>> {
    let work = async {
        let mut events = Vec::new();
        while let Some(item) = stream.next().await {
            events.push(item?.context("every message has an event")?);
        }
        anyhow::Ok(events)
    };
    autoact_testkit::within(TASK_LIMIT, "a task", work).await?
}

pub(crate) fn finished(events: &[TrajectoryEvent]) -> anyhow::Result<&v1::Finished> {
    match events.last().and_then(|event| event.body.as_ref()) {
        Some(Body::Finished(finished)) => Ok(finished),
        other => anyhow::bail!("the last event is {other:?}"),
    }
}

/// A whole trajectory: one task's events without a gap, from its question to its end.
pub(crate) fn check_whole(events: &[TrajectoryEvent], question: &str) -> anyhow::Result<()> {
    let Some(Body::Submitted(submitted)) = events.first().and_then(|event| event.body.as_ref()) else {
        anyhow::bail!("the first event is no question: {:?}", events.first());
    };
    anyhow::ensure!(submitted.question == question, "asked `{question}`, the trajectory says `{}`", submitted.question);
    let task_id = &events[0].task_id;
    for (number, event) in (1..).zip(events) {
        anyhow::ensure!(event.task_id == *task_id, "an event of `{}` in the trajectory of `{task_id}`", event.task_id);
        anyhow::ensure!(event.index == number, "event {number} has the index {}", event.index);
    }
    anyhow::ensure!(events.windows(2).all(|pair| pair[0].sequence < pair[1].sequence), "the sequences do not rise");
    let (last, before) = events.split_last().context("there are events")?;
    anyhow::ensure!(matches!(last.body, Some(Body::Finished(_))), "the trajectory does not end");
    anyhow::ensure!(!before.iter().any(|event| matches!(event.body, Some(Body::Finished(_)))), "the trajectory ends twice");
    Ok(())
}

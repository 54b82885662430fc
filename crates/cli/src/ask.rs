//! `autoact ask` and `autoact watch`: a task's events as they arrive.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use autoact_proto::v1::{self, trajectory_event::Body};
use futures::StreamExt as _;
use tonic::Status;

use crate::args::{AskOptions, WatchOptions};
use crate::client;
use crate::exit;
use crate::view::{View, reason_name};

/// How events are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Show {
    Lines,
    Json,
    AnswerOnly,
}

/// Asks and watches until the task has finished; Ctrl-C cancels the task.
pub(crate) async fn run(gateway: &str, options: AskOptions) -> anyhow::Result<u8> {
    let show = if options.json {
        Show::Json
    } else if options.quiet {
        Show::AnswerOnly
    } else {
        Show::Lines
    };
    let request = request(&options);
    ask(gateway, request, show).await
}

/// Sends a task to the gateway and shows its events; the exit code says whether the answer was approved.
pub(crate) async fn ask(gateway: &str, task: v1::SubmitTaskRequest, show: Show) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    let response = client.ask(v1::AskRequest { task: Some(task), ..v1::AskRequest::default() }).await;
    let stream = response.map_err(|status| client::explain(status, "gateway", gateway))?.into_inner();
    let events = stream.map(|item| item.map(|response| response.event));
    let mut seen = Seen::default();
    tokio::select! {
        code = follow(events, show, &mut seen) => code.map_err(|error| located(error, gateway)),
        _ = tokio::signal::ctrl_c() => {
            if !seen.task_id.is_empty() {
                let _ = client.cancel_task(v1::CancelTaskRequest { task_id: seen.task_id.clone() }).await;
                eprintln!("cancelled task {}", seen.task_id);
            }
            Ok(exit::INTERRUPTED)
        }
    }
}

/// Watches a task that was submitted before; Ctrl-C only stops watching.
pub(crate) async fn watch(gateway: &str, options: WatchOptions) -> anyhow::Result<u8> {
    let mut client = client::gateway(gateway)?;
    let request = v1::WatchTaskRequest { task_id: options.id.clone(), after_sequence: options.after, ..v1::WatchTaskRequest::default() };
    let response = client.watch_task(request).await;
    let stream = response.map_err(|status| client::explain(status, "gateway", gateway))?.into_inner();
    let events = stream.map(|item| item.map(|response| response.event));
    let show = if options.json { Show::Json } else { Show::Lines };
    let mut seen = Seen::default();
    tokio::select! {
        code = follow(events, show, &mut seen) => code.map_err(|error| located(error, gateway)),
        _ = tokio::signal::ctrl_c() => {
            eprintln!("the task goes on; watch it again with `autoact watch {} --after {}`", options.id, seen.sequence);
            Ok(exit::INTERRUPTED)
        }
    }
}

/// What has been seen of a stream when it is left.
#[derive(Default)]
struct Seen {
    task_id: String,
    sequence: u64,
}

fn request(options: &AskOptions) -> v1::SubmitTaskRequest {
    let max_time = options.timeout.filter(|seconds| seconds.is_finite() && *seconds > 0.0).map(Duration::from_secs_f64);
    v1::SubmitTaskRequest {
        task_id: options.id.clone().unwrap_or_default(),
        question: options.question.clone(),
        tools: options.tools.clone(),
        limits: Some(v1::Limits {
            max_steps: options.max_steps,
            max_time: max_time.and_then(|time| time.try_into().ok()),
            ..v1::Limits::default()
        }),
        sampling: Some(v1::SamplingParams { temperature: options.temperature, seed: options.seed, ..v1::SamplingParams::default() }),
        ..v1::SubmitTaskRequest::default()
    }
}

async fn follow(
    mut events: impl futures::Stream<Item = Result<Option<v1::TrajectoryEvent>, Status>> + Unpin,
    show: Show,
    seen: &mut Seen,
) -> anyhow::Result<u8> {
    let mut view = View::new();
    let mut finished = None;
    while let Some(event) = events.next().await {
        let Some(event) = event? else { continue };
        seen.task_id.clone_from(&event.task_id);
        seen.sequence = event.sequence;
        let line = view.line(&event);
        match show {
            Show::Json => print_line(&json(&event).to_string())?,
            Show::Lines => line.map_or(Ok(()), |line| print_line(&line))?,
            Show::AnswerOnly => {}
        }
        if let Some(Body::Finished(body)) = event.body {
            finished = Some(body);
        }
    }
    let finished = finished.context("the stream ended before the task did; watch it again with `autoact watch`")?;
    match show {
        Show::Lines => print_line(&format!("\n{}", view.table()))?,
        Show::AnswerOnly => print_line(&finished.answer)?,
        Show::Json => {}
    }
    Ok(if finished.approved { exit::OK } else { exit::UNAPPROVED })
}

fn located(error: anyhow::Error, gateway: &str) -> anyhow::Error {
    match error.downcast::<Status>() {
        Ok(status) => client::explain(status, "gateway", gateway),
        Err(error) => error,
    }
}

/// A closed pipe (`| head`) ends us quietly as an error, not as a panic.
fn print_line(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// An event for programs: the proto's field names, durations in milliseconds.
pub(crate) fn json(event: &v1::TrajectoryEvent) -> serde_json::Value {
    use serde_json::json;
    let (kind, body) = match &event.body {
        Some(Body::Submitted(body)) => {
            let tools: Vec<&str> = body.tools.iter().map(|tool| tool.name.as_str()).collect();
            ("submitted", json!({ "question": body.question, "tools": tools }))
        }
        Some(Body::Started(body)) => ("started", json!({ "gateway": body.gateway, "attempt": body.attempt })),
        Some(Body::Thought(body)) => ("thought", json!({ "thought": body.thought, "tool": body.tool })),
        Some(Body::Action(body)) => ("action", json!({ "tool": body.tool, "params": body.params })),
        Some(Body::Observation(body)) => {
            ("observation", json!({ "text": body.text, "is_error": body.is_error, "repeated": body.repeated, "truncated": body.truncated }))
        }
        Some(Body::Reflection(body)) => (
            "reflection",
            json!({ "thought": body.thought, "verdict": if body.verdict() == v1::Verdict::Right { "right" } else { "wrong" } }),
        ),
        Some(Body::Finished(body)) => (
            "finished",
            json!({ "answer": body.answer, "approved": body.approved, "reason": reason_name(body.reason()), "detail": body.detail }),
        ),
        None => ("unknown", json!({})),
    };
    let ms = |value: Option<prost_types::Duration>| {
        value.and_then(|value| Duration::try_from(value).ok()).map(|value| value.as_secs_f64() * 1e3)
    };
    let usage = event.usage.as_ref().map(|usage| {
        json!({
            "queue_ms": ms(usage.queue), "prefill_ms": ms(usage.prefill), "decode_ms": ms(usage.decode), "tool_ms": ms(usage.tool),
            "total_ms": ms(usage.total), "prompt_tokens": usage.prompt_tokens, "cached_prompt_tokens": usage.cached_prompt_tokens,
            "completion_tokens": usage.completion_tokens, "model": usage.model, "adapter": usage.adapter, "adapter_digest": usage.adapter_digest,
        })
    });
    json!({ "task_id": event.task_id, "sequence": event.sequence, "index": event.index, "event": kind, "body": body, "usage": usage })
}

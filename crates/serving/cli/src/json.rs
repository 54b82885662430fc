//! Events and tasks as JSON: the one place that names their fields. `docs/cli.md` lists the names.
//!
//! Times are RFC 3339, durations are seconds. What this version does not know stays visible: an
//! event of a kind that came later is `unknown`, with an empty body.

use std::time::Duration;

use autoact_trajectory::NextAttempt;
use autoact_wire::memory_v1::stored_memory::Memory as Stored;
use autoact_wire::v1::{self, trajectory_event::Body};
use serde_json::{Value, json};

use crate::names::{input_name, policy_name, reason_name, verdict_name};
use crate::tool_choice;

/// One event.
pub(crate) fn event(event: &v1::TrajectoryEvent) -> Value {
    let (kind, body) = body(event);
    json!({
        "task_id": event.task_id,
        "sequence": event.sequence,
        "index": event.index,
        "time": event.time.as_ref().map(time),
        "tenant": event.tenant,
        "writer": event.writer,
        "epoch": event.epoch,
        "call_id": event.call_id,
        "event": kind,
        "body": body,
        "usage": event.usage.as_ref().map(usage),
        "timing": event.timing.as_ref().map(timing),
        "artifacts": event.artifacts.iter().map(|found| artifact(found, None)).collect::<Vec<_>>(),
    })
}

/// An agent's words while they are written.
pub(crate) fn delta(task_id: &str, delta: &v1::TaskDelta) -> Value {
    json!({
        "task_id": task_id,
        "epoch": delta.epoch,
        "call_id": delta.call_id,
        "event": "delta",
        "body": { "attempt": delta.attempt, "offset": delta.offset, "text": delta.text },
    })
}

/// A reference to what a tool returned for people.
pub(crate) fn artifact(artifact: &v1::Artifact, step: Option<u32>) -> Value {
    let v1::Artifact { kind, media_type, name, object: _, bytes, sha256, text } = artifact;
    let mut value = json!({ "name": name, "kind": kind, "media_type": media_type, "bytes": bytes, "sha256": sha256, "text": text });
    if let Some(step) = step {
        value["step"] = step.into();
    }
    value
}

fn body(event: &v1::TrajectoryEvent) -> (&'static str, Value) {
    match &event.body {
        Some(Body::Submitted(body)) => {
            let tools: Vec<&str> = body.tools.iter().map(|tool| tool.name.as_str()).collect();
            (
                "submitted",
                json!({
                    "question": body.question, "tools": tools, "labels": body.labels, "conversation_id": body.conversation_id,
                    "context": body.context.as_ref().map(context), "trace_id": body.trace_id,
                    "tool_choice": body.tool_choice.as_ref().map(tool_choice::object),
                    "approval": policy_name(body.approval()), "origin": body.origin.as_ref().map(origin),
                    "by": body.by, "next_attempt": next_attempt(body.next_attempt),
                }),
            )
        }
        Some(Body::Started(body)) => ("started", json!({ "gateway": body.gateway, "attempt": body.attempt })),
        Some(Body::Thought(body)) => ("thought", json!({ "thought": body.thought, "tool": body.tool })),
        Some(Body::Action(body)) => ("action", json!({ "tool": body.tool, "params": body.params })),
        Some(Body::Observation(body)) => (
            "observation",
            json!({ "text": body.text, "is_error": body.is_error, "repeated": body.repeated, "truncated": body.truncated,
                "sources": sources(&body.sources), "untrusted": body.untrusted }),
        ),
        Some(Body::Reflection(body)) => (
            "reflection",
            json!({ "thought": body.thought, "verdict": verdict_name(body.verdict()), "log_odds": body.log_odds,
                "confidence": body.confidence, "threshold": body.threshold, "next_attempt": next_attempt(body.next_attempt) }),
        ),
        Some(Body::Finished(body)) => (
            "finished",
            json!({ "answer": body.answer, "approved": body.approved, "reason": reason_name(body.reason()), "detail": body.detail,
                "citations": citations(&body.citations), "open_effect": body.open_effect, "by": body.by }),
        ),
        Some(Body::Released(body)) => {
            let reason = match body.reason() {
                v1::ReleaseReason::Draining => "draining",
                v1::ReleaseReason::Waiting => "waiting",
                v1::ReleaseReason::Unspecified => "other",
            };
            ("released", json!({ "reason": reason, "detail": body.detail, "may_have_run": body.may_have_run }))
        }
        Some(Body::Shortened(body)) => (
            "shortened",
            json!({
                "left_out": body.left_out,
                "observations": cuts(&body.observations),
                "thoughts": cuts(&body.thoughts),
                "tokens": body.tokens,
                "limit": body.limit,
            }),
        ),
        Some(Body::Recalled(body)) => {
            let items: Vec<Value> = body.items.iter().map(recalled_item).collect();
            ("recalled", json!({ "items": items, "left_out": body.left_out, "failure": body.failure }))
        }
        Some(Body::Paused(body)) => ("paused", json!({ "by": body.by, "reason": body.reason })),
        Some(Body::Resumed(body)) => ("resumed", json!({ "by": body.by })),
        Some(Body::InputRequested(body)) => ("input_requested", input_requested(body)),
        Some(Body::InputGiven(body)) => (
            "input_given",
            json!({ "step": body.step, "kind": input_name(body.kind()), "text": body.text, "approved": body.approved,
                "for_task": body.for_task, "by": body.by }),
        ),
        None => ("unknown", json!({})),
    }
}

fn input_requested(asked: &v1::InputRequested) -> Value {
    json!({ "step": asked.step, "kind": input_name(asked.kind()), "tool": asked.tool, "prompt": asked.prompt })
}

fn origin(origin: &v1::Origin) -> Value {
    json!({ "task_id": origin.task_id, "steps": origin.steps })
}

/// Something that is remembered; with a score where it was recalled.
pub(crate) fn memory(memory: &Stored, score: Option<f32>) -> Value {
    let mut value = match memory {
        Stored::Task(task) => json!({
            "kind": "task", "task_id": task.task_id, "conversation_id": task.conversation_id, "question": task.question,
            "answer": task.answer, "approved": task.approved, "steps": task.steps, "finished_at": task.finished_at.as_ref().map(time),
            "tenant": task.tenant,
        }),
        Stored::Turn(turn) => json!({
            "kind": "conversation", "task_id": turn.task_id, "conversation_id": turn.conversation_id, "question": turn.question,
            "answer": turn.answer, "approved": turn.approved, "finished_at": turn.finished_at.as_ref().map(time), "tenant": turn.tenant,
        }),
    };
    if let Some(score) = score {
        value["score"] = score.into();
    }
    value
}

/// How many memories were forgotten.
pub(crate) fn forgotten(count: u64) -> Value {
    json!({ "forgotten": count })
}

fn recalled_item(item: &v1::RecalledItem) -> Value {
    let kind = match item.kind() {
        v1::RecalledKind::Turn => "turn",
        v1::RecalledKind::Task => "task",
        v1::RecalledKind::Unspecified => "other",
    };
    json!({ "kind": kind, "task_id": item.task_id, "question": item.question, "answer": item.answer, "approved": item.approved,
        "finished_at": item.finished_at.as_ref().map(time), "score": item.score })
}

fn sources(sources: &[v1::Source]) -> Vec<Value> {
    let source = |v1::Source { collection, file, title, heading, page, start, end, text }: &v1::Source| {
        json!({ "collection": collection, "file": file, "title": title, "heading": heading, "page": page, "start": start, "end": end,
            "text": text })
    };
    sources.iter().map(source).collect()
}

fn citations(citations: &[v1::Citation]) -> Vec<Value> {
    let citation = |v1::Citation { step, collection, file, title, heading, page, start, end, quote }: &v1::Citation| {
        json!({ "step": step, "collection": collection, "file": file, "title": title, "heading": heading, "page": page, "start": start,
            "end": end, "quote": quote })
    };
    citations.iter().map(citation).collect()
}

fn cuts(cuts: &[v1::Cut]) -> Vec<Value> {
    cuts.iter().map(|cut| json!({ "step": cut.step, "kept_bytes": cut.kept_bytes, "sentences": cut.sentences })).collect()
}

fn usage(usage: &v1::Usage) -> Value {
    json!({
        "queue_seconds": seconds(usage.queue),
        "prefill_seconds": seconds(usage.prefill),
        "decode_seconds": seconds(usage.decode),
        "tool_seconds": seconds(usage.tool),
        "total_seconds": seconds(usage.total),
        "prompt_tokens": usage.prompt_tokens,
        "cached_prompt_tokens": usage.cached_prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "model": usage.model,
        "adapter": usage.adapter,
        "adapter_digest": usage.adapter_digest,
        "log_prob": usage.log_prob,
        "scored_tokens": usage.scored_tokens,
    })
}

fn timing(timing: &v1::Timing) -> Value {
    json!({
        "own_seconds": seconds(timing.own),
        "bus_seconds": seconds(timing.bus),
        "retry_seconds": seconds(timing.retry),
    })
}

/// One task; `turns` are there for `tasks show`, and empty in lists.
pub(crate) fn task(task: &v1::Task, state: &str) -> Value {
    let turns: Vec<Value> = task.turns.iter().filter_map(turn).collect();
    json!({
        "task_id": task.task_id,
        "state": state,
        "question": task.question,
        "answer": task.answer,
        "approved": task.approved,
        "confidence": task.confidence,
        "min_confidence": task.min_confidence,
        "detail": task.detail,
        "citations": citations(&task.citations),
        "tenant": task.tenant,
        "conversation_id": task.conversation_id,
        "context": task.context.as_ref().map(context),
        "trace_id": task.trace_id,
        "steps": task.steps,
        "prompt_tokens": task.prompt_tokens,
        "completion_tokens": task.completion_tokens,
        "attempts": task.attempts,
        "submitted_at": task.submitted_at.as_ref().map(time),
        "finished_at": task.finished_at.as_ref().map(time),
        "turns": turns,
        "last_sequence": task.last_sequence,
        "labels": task.labels,
        "input_required": task.input_required.as_ref().map(input_requested),
        "open_effect": task.open_effect,
        "approval": policy_name(task.approval()),
        "next_attempt": next_attempt(task.next_attempt),
        "origin": task.origin.as_ref().map(origin),
        "submitted_by": task.submitted_by,
        "cancelled_by": task.cancelled_by,
    })
}

/// What the client said beside the question.
fn context(context: &v1::TaskContext) -> Value {
    let v1::TaskInfo { name, description, answer_format } = context.task.clone().unwrap_or_default();
    let profile = context.profile.clone().unwrap_or_default();
    json!({
        "task": { "name": name, "description": description, "answer_format": answer_format },
        "profile": { "name": profile.name, "bio": profile.bio, "audience": profile.audience },
        "instructions": context.instructions,
        "knowledge": context.knowledge,
        "now": context.now.as_ref().map(time),
        "time_zone": context.time_zone,
    })
}

fn turn(turn: &v1::Turn) -> Option<Value> {
    Some(match turn.turn.as_ref()? {
        v1::turn::Turn::Step(step) => json!({
            "thought": step.thought, "tool": step.tool, "params": step.params, "observation": step.observation,
            "artifacts": step.artifacts.iter().map(|found| artifact(found, None)).collect::<Vec<_>>(),
            "sources": sources(&step.sources),
        }),
        v1::turn::Turn::Reflection(reflection) => json!({
            "reflection": reflection.thought, "verdict": verdict_name(reflection.verdict()), "log_odds": reflection.log_odds, "confidence": reflection.confidence, "threshold": reflection.threshold,
            "next_attempt": next_attempt(reflection.next_attempt),
        }),
    })
}

/// What the next attempt is given; nothing where nothing was said.
fn next_attempt(number: i32) -> Option<&'static str> {
    autoact_wire::next_attempt(number).map(NextAttempt::as_str)
}

/// RFC 3339, in UTC.
fn time(time: &prost_types::Timestamp) -> String {
    time.to_string()
}

/// Seconds as a number; nothing where nothing was measured.
fn seconds(value: Option<prost_types::Duration>) -> Option<f64> {
    value.and_then(|value| Duration::try_from(value).ok()).map(|value| value.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thought() -> v1::TrajectoryEvent {
        let duration = |millis: i32| Some(prost_types::Duration { seconds: 1, nanos: millis * 1_000_000 });
        v1::TrajectoryEvent {
            version: 1,
            task_id: "t".into(),
            index: 3,
            sequence: 42,
            time: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 250_000_000 }),
            writer: "gateway-1".into(),
            usage: Some(v1::Usage {
                prefill: duration(250),
                total: duration(500),
                prompt_tokens: 7,
                log_prob: Some(-1.5),
                scored_tokens: 4,
                ..v1::Usage::default()
            }),
            timing: Some(v1::Timing { own: duration(0), bus: duration(125), retry: None }),
            body: Some(Body::Thought(v1::Thought { thought: "I need the country.".into(), tool: "Retrieve".into() })),
            tenant: "default".into(),
            epoch: 1,
            call_id: "plan-1-0".into(),
            artifacts: Vec::new(),
        }
    }

    /// The fields as programs have come to know them: a change here is a change for all of them.
    #[test]
    fn an_event_has_time_writer_usage_and_timing_under_stable_names() {
        assert_eq!(
            event(&thought()),
            json!({
                "task_id": "t", "sequence": 42, "index": 3, "time": "2023-11-14T22:13:20.250Z", "tenant": "default",
                "writer": "gateway-1", "epoch": 1, "call_id": "plan-1-0",
                "event": "thought", "body": { "thought": "I need the country.", "tool": "Retrieve" },
                "usage": {
                    "queue_seconds": null, "prefill_seconds": 1.25, "decode_seconds": null, "tool_seconds": null,
                    "total_seconds": 1.5, "prompt_tokens": 7, "cached_prompt_tokens": 0, "completion_tokens": 0,
                    "model": "", "adapter": "", "adapter_digest": "", "log_prob": -1.5, "scored_tokens": 4
                },
                "timing": { "own_seconds": 1.0, "bus_seconds": 1.125, "retry_seconds": null },
                "artifacts": []
            })
        );
    }

    #[test]
    fn what_is_not_known_is_an_event_all_the_same() {
        let unknown = v1::TrajectoryEvent { body: None, usage: None, timing: None, time: None, ..thought() };
        let unknown = event(&unknown);
        assert_eq!((&unknown["event"], &unknown["time"], &unknown["usage"]), (&json!("unknown"), &Value::Null, &Value::Null));
        let finished = v1::Finished { reason: 99, ..v1::Finished::default() };
        let later = event(&v1::TrajectoryEvent { body: Some(Body::Finished(finished)), ..thought() });
        assert_eq!(later["body"]["reason"], "unspecified");
    }

    #[test]
    fn a_task_has_its_times() {
        let stored = v1::Task { submitted_at: thought().time, ..v1::Task::default() };
        let task = task(&stored, "running");
        assert_eq!((&task["submitted_at"], &task["finished_at"]), (&json!("2023-11-14T22:13:20.250Z"), &Value::Null));
    }

    /// Every name is in the documentation.
    #[test]
    fn the_documentation_names_every_field() {
        let docs = include_str!("../../../../docs/cli.md");
        fn names(value: &Value, into: &mut Vec<String>) {
            for (name, value) in value.as_object().into_iter().flatten() {
                into.push(name.clone());
                names(value, into);
            }
            value.as_array().into_iter().flatten().for_each(|value| names(value, into));
        }
        let mut all = Vec::new();
        let bodies = [
            Body::Submitted(v1::Submitted { context: Some(v1::TaskContext::default()), ..v1::Submitted::default() }),
            Body::Started(v1::Started::default()),
            Body::Thought(v1::Thought::default()),
            Body::Action(v1::ActionReady::default()),
            Body::Observation(v1::Observation { sources: vec![v1::Source::default()], ..v1::Observation::default() }),
            Body::Reflection(v1::Reflection::default()),
            Body::Finished(v1::Finished { citations: vec![v1::Citation::default()], ..v1::Finished::default() }),
            Body::Released(v1::Released::default()),
            Body::Shortened(v1::Shortened { observations: vec![v1::Cut::default()], ..v1::Shortened::default() }),
            Body::Recalled(v1::Recalled { items: vec![v1::RecalledItem::default()], ..v1::Recalled::default() }),
        ];
        for body in bodies {
            let event = event(&v1::TrajectoryEvent { body: Some(body), ..thought() });
            all.push(event["event"].as_str().unwrap_or_default().to_owned());
            names(&event, &mut all);
        }
        let delta = delta("t", &v1::TaskDelta::default());
        all.push(delta["event"].as_str().unwrap_or_default().to_owned());
        names(&delta, &mut all);
        names(&task(&v1::Task::default(), ""), &mut all);
        names(&artifact(&v1::Artifact::default(), Some(1)), &mut all);
        names(&memory(&Stored::Task(Default::default()), Some(1.0)), &mut all);
        names(&memory(&Stored::Turn(Default::default()), None), &mut all);
        names(&forgotten(1), &mut all);
        all.retain(|name| !docs.contains(&format!("`{name}`")));
        assert_eq!(all, [""; 0], "not in docs/cli.md");
    }
}

//! What a client may ask, and what it is told when it may not.

use crate::common::scripted::{Group, Script, steps};
use crate::common::*;
use autoact_wire::status::{metadata, reason, retry_after};
use autoact_wire::{agents_v1, v1};
use tonic::{Code, Status};
use tonic_types::StatusExt;

async fn refused(client: &mut Client, request: v1::SubmitTaskRequest) -> Status {
    let submitted = client.submit_task(request.clone()).await.unwrap_err();
    let asked = client.ask(v1::AskRequest { task: Some(request), ..Default::default() }).await.unwrap_err();
    assert_eq!((submitted.code(), submitted.message()), (asked.code(), asked.message()));
    submitted
}

#[tokio::test]
async fn bad_requests_name_the_field() {
    let mut world = world(Group::start(Script::default()).await).await;
    let client = &mut world.client;
    let tools = |names: &[&str]| v1::SubmitTaskRequest { tools: names.iter().map(|name| (*name).into()).collect(), ..task("q") };
    let cases = [
        (task(""), "question", "empty"),
        (task(" \n"), "question", "empty"),
        (task(&"x".repeat(1 << 19)), "question", "524288"),
        (named("a.b", "q"), "task_id", "`a.b`"),
        (tools(&["Retreive"]), "tools", "did you mean `Retrieve`"),
        (tools(&["Teleport"]), "tools", "`Search`, `Retrieve`, `Send`, `Finish`"),
        (tools(&["Search"; 65]), "tools", "65"),
        (
            v1::SubmitTaskRequest { limits: Some(v1::Limits { max_steps: Some(1_000_000), ..Default::default() }), ..task("q") },
            "limits.max_steps",
            "max_steps",
        ),
        (
            v1::SubmitTaskRequest { sampling: Some(v1::SamplingParams { temperature: f32::NAN, ..Default::default() }), ..task("q") },
            "sampling.temperature",
            "temperature",
        ),
        (v1::SubmitTaskRequest { conversation_id: "a.b".into(), ..task("q") }, "conversation_id", "64"),
        (
            v1::SubmitTaskRequest {
                limits: Some(v1::Limits { max_time: Some(prost_types::Duration { seconds: -5, nanos: 0 }), ..Default::default() }),
                ..task("q")
            },
            "limits.max_time",
            "max_time",
        ),
        (v1::SubmitTaskRequest { labels: [("x".repeat(300), String::new())].into(), ..task("q") }, "labels", "256"),
    ];
    for (request, field, word) in cases {
        let status = refused(client, request).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
        assert!(status.message().contains(word) && status.message().len() < 500, "{status:?}");
        let violations = status.get_details_bad_request().unwrap().field_violations;
        assert_eq!(violations[0].field, field);
        assert!(reason(&status).is_some());
        assert_eq!(metadata(&status)["field"], field);
    }
    let empty = client.ask(v1::AskRequest::default()).await.unwrap_err();
    assert_eq!(empty.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn the_same_id_is_the_same_task() {
    let mut world = world(Group::start(Script::default()).await).await;
    let first = ask(&mut world.client, named("t", "Loire")).await;
    assert_eq!(ask(&mut world.client, named("t", "Loire")).await, first);
    let task = world.client.submit_task(named("t", "Loire")).await.unwrap().into_inner().task.unwrap();
    assert_eq!(task.last_sequence, first.last().unwrap().sequence);
    // idempotency is by the whole request, not only by the question
    let seed = v1::SamplingParams { seed: 7, ..Default::default() };
    let status = refused(&mut world.client, v1::SubmitTaskRequest { sampling: Some(seed), ..named("t", "Loire") }).await;
    assert_eq!(status.code(), Code::AlreadyExists);
    let status = refused(&mut world.client, named("t", "Rhine")).await;
    assert_eq!((status.code(), reason(&status).as_deref()), (Code::AlreadyExists, Some("TASK_EXISTS")));
    // at the same time
    let submit = || {
        let mut client = world.client.clone();
        async move { client.submit_task(named("u", "Loire")).await.unwrap().into_inner().task.unwrap().task_id }
    };
    let (a, b, c) = tokio::join!(submit(), submit(), submit());
    assert_eq!((a.as_str(), b.as_str(), c.as_str()), ("u", "u", "u"));
    assert_eq!(names(&watch(&mut world.client, "u", 0).await).iter().filter(|name| **name == "submitted").count(), 1);
}

#[tokio::test]
async fn a_task_has_the_tools_it_asked_for_and_finish() {
    let mut world = world(Group::start(Script::default()).await).await;
    let request = v1::SubmitTaskRequest { tools: vec!["Retrieve".into()], ..task("q") };
    let events = ask(&mut world.client, request).await;
    let Some(v1::trajectory_event::Body::Submitted(submitted)) = &events[0].body else { panic!() };
    let names: Vec<_> = submitted.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["Retrieve", "Finish"]);
    let limits = submitted.limits.as_ref().unwrap();
    assert!(limits.max_steps > Some(0) && limits.max_time.is_some(), "resolved");
}

#[tokio::test]
async fn an_answer_has_several_lines_where_the_task_asks() {
    let params = |trajectory: &v1::Trajectory| match steps(trajectory).last() {
        Some(step) if step.tool == "Finish" => r#"{"answer":"1. Loire\n2. Rhine"}"#.to_owned(),
        _ => "rivers".to_owned(),
    };
    let mut world = world(Group::start(Script { params: Box::new(params), ..Script::default() }).await).await;
    let plain = named("lines", "Which rivers?");
    let lines = v1::SubmitTaskRequest { multiline_answer: true, ..plain.clone() };
    let events = ask(&mut world.client, lines.clone()).await;
    assert_eq!(end(&events).answer, "1. Loire\n2. Rhine");
    let Some(v1::trajectory_event::Body::Submitted(submitted)) = &events[0].body else { panic!() };
    let finish = submitted.tools.iter().find(|tool| tool.terminal).unwrap();
    assert_eq!(finish.usage, r#"Finish{"answer": string}"#);
    let got = world.client.get_task(v1::GetTaskRequest { task_id: "lines".into(), view: 0 }).await.unwrap().into_inner();
    assert_eq!(got.task.unwrap().answer, "1. Loire\n2. Rhine");
    // it is a part of the request
    assert_eq!(refused(&mut world.client, plain).await.code(), Code::AlreadyExists);
    world.client.submit_task(lines).await.unwrap();
    // and a plain answer is taken as it is
    assert_eq!(end(&ask(&mut world.client, named("plain", "Which rivers?")).await).answer, r#"{"answer":"1. Loire\n2. Rhine"}"#);
}

#[tokio::test]
async fn an_approval_needs_the_confidence_that_was_asked_for() {
    // the confidence follows from the verdict's log-odds, which are 1.5: 0.82
    let term = agents_v1::Term { part: "verdict".into(), mean: 0.0, deviation: 1.0, weight: 1.0 };
    let calibration =
        agents_v1::Calibration { threshold: 0.9, precision: 0.97, intercept: 0.0, terms: vec![term], histories: 10, ..Default::default() };
    let mut world = world(Group::start(Script { calibration: Some(calibration), ..Script::default() }).await).await;
    let limits = Some(v1::Limits { max_reflections: Some(1), ..Default::default() });
    let asked = |min_confidence| v1::SubmitTaskRequest { min_confidence, limits, ..task("Loire") };
    for (least, approved, threshold) in [(None, false, 0.9), (Some(0.5), true, 0.5), (Some(0.85), false, 0.85)] {
        let events = ask(&mut world.client, asked(least)).await;
        let finished = end(&events);
        assert_eq!((finished.approved, finished.answer.as_str()), (approved, "the answer to Loire"), "{least:?}");
        let request = v1::GetTaskRequest { task_id: events[0].task_id.clone(), view: 0 };
        let got = world.client.get_task(request).await.unwrap().into_inner().task.unwrap();
        assert!((got.confidence.unwrap() - 0.817_574).abs() < 1e-6, "{got:?}");
        assert_eq!(got.min_confidence, least);
        let judged = got.turns.iter().rev().find_map(|turn| match &turn.turn {
            Some(v1::turn::Turn::Reflection(reflection)) => Some(reflection.clone()),
            _ => None,
        });
        assert_eq!((judged.as_ref().unwrap().threshold, judged.unwrap().confidence), (Some(threshold), got.confidence));
    }
    for least in [-0.1, 1.1, f64::NAN] {
        let status = refused(&mut world.client, asked(Some(least))).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{least}");
    }
}

#[tokio::test]
async fn a_request_says_what_the_next_attempt_is_given() {
    let mut world = world(Group::start(Script::default()).await).await;
    let asked = |next: v1::NextAttempt| v1::SubmitTaskRequest { next_attempt: next.into(), ..named(next.as_str_name(), "Loire") };
    for next in [v1::NextAttempt::Unspecified, v1::NextAttempt::Anew, v1::NextAttempt::Continues] {
        let task = world.client.submit_task(asked(next)).await.unwrap().into_inner().task.unwrap();
        assert_eq!(task.next_attempt(), next);
        let events = watch(&mut world.client, &task.task_id, 0).await;
        let Some(v1::trajectory_event::Body::Submitted(submitted)) = &events[0].body else { panic!() };
        assert_eq!(submitted.next_attempt(), next);
    }
    // another choice is another request
    let other = v1::SubmitTaskRequest { next_attempt: v1::NextAttempt::Continues.into(), ..asked(v1::NextAttempt::Anew) };
    assert_eq!(refused(&mut world.client, other).await.code(), Code::AlreadyExists);
}

#[tokio::test]
async fn a_full_gateway_says_when_to_come_back() {
    let mut world = world_with(Group::start(Script::default()).await, |config| config.max_tasks = 2).await;
    world.group.hold_after(0);
    for id in ["a", "b"] {
        world.client.submit_task(named(id, "q")).await.unwrap();
    }
    let status = refused(&mut world.client, task("q")).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(retry_after(&status).is_some());
    // what is there already is no new task
    world.client.submit_task(named("a", "q")).await.unwrap();
    world.group.go_on();
    for id in ["a", "b"] {
        assert!(end(&watch(&mut world.client, id, 0).await).approved);
    }
    let room = autoact_testkit::poll::until(LIMIT, async || world.client.clone().submit_task(task("q")).await.ok()).await;
    assert!(room.is_some());
}

#[tokio::test]
async fn unknown_tasks_are_not_found() {
    let mut world = world(Group::start(Script::default()).await).await;
    let client = &mut world.client;
    let id = || "never".to_owned();
    let get = client.get_task(v1::GetTaskRequest { task_id: id(), view: 0 }).await.unwrap_err();
    let cancel = client.cancel_task(v1::CancelTaskRequest { task_id: id() }).await.unwrap_err();
    let watch = client.watch_task(v1::WatchTaskRequest { task_id: id(), after_sequence: u64::MAX, deltas: false }).await.unwrap_err();
    for status in [get, cancel, watch] {
        assert_eq!(status.code(), Code::NotFound, "{status:?}");
        assert!(status.message().contains("never") && reason(&status).is_some());
    }
    let bad = client.get_task(v1::GetTaskRequest { task_id: "*".into(), view: 0 }).await.unwrap_err();
    assert_eq!(bad.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn tasks_are_listed_newest_first() {
    let mut world = world(Group::start(Script::default()).await).await;
    for number in 0..5 {
        ask(&mut world.client, named(&format!("t{number}"), "q")).await;
    }
    world.group.hold_after(0);
    world.client.submit_task(named("t5", "q")).await.unwrap();
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let request = v1::ListTasksRequest { page_size: 4, page_token: token, ..Default::default() };
        let page = world.client.list_tasks(request).await.unwrap().into_inner();
        seen.extend(page.tasks);
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    let ids: Vec<_> = seen.iter().map(|task| task.task_id.as_str()).collect();
    assert_eq!(ids, ["t5", "t4", "t3", "t2", "t1", "t0"]);
    assert_ne!(seen[0].state(), v1::TaskState::Finished);
    assert_eq!((seen[1].state(), seen[1].approved, seen[1].answer.as_str()), (v1::TaskState::Finished, true, "the answer to q"));
    assert!(seen.iter().all(|task| task.turns.is_empty()));
    let garbage = v1::ListTasksRequest { page_size: 4, page_token: "garbage".into(), ..Default::default() };
    let status = world.client.list_tasks(garbage).await.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument);
    assert!(status.message().contains("page_token"));
}

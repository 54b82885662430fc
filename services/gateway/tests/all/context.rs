//! What a client says beside the question: from the request to the agents, the stored task and
//! back.

use std::sync::{Arc, Mutex};

use crate::common::scripted::{Group, Script, steps};
use crate::common::*;
use autoact_wire::status::{metadata, reason};
use autoact_wire::v1;
use tonic::{Code, Request};
use tonic_types::StatusExt;

fn full() -> v1::TaskContext {
    v1::TaskContext {
        task: Some(v1::TaskInfo {
            name: "rivers".into(),
            description: "Questions about rivers.\nEach has one answer.".into(),
            answer_format: "one word".into(),
        }),
        profile: Some(v1::Profile { name: "Ada".into(), bio: "A guide.".into(), audience: "children".into() }),
        instructions: vec!["Be brief.".into(), "Name no numbers.".into()],
        knowledge: vec!["atlas".into()],
        now: Some(prost_types::Timestamp { seconds: 1_795_332_600, nanos: 0 }),
        time_zone: "Europe/Paris".into(),
    }
}

fn with(context: v1::TaskContext) -> v1::SubmitTaskRequest {
    v1::SubmitTaskRequest { context: Some(context), ..task("Loire") }
}

#[tokio::test]
async fn agents_read_what_the_client_said_and_the_task_shows_it() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let seen_by_plan = seen.clone();
    let script = Script {
        plan: Box::new(move |trajectory| {
            seen_by_plan.lock().unwrap().push(trajectory.context.clone());
            if steps(trajectory).is_empty() { "Retrieve".into() } else { "Finish".into() }
        }),
        ..Script::default()
    };
    let mut world = world(Group::start(script).await).await;
    let mut request = Request::new(v1::AskRequest {
        task: Some(v1::SubmitTaskRequest { task_id: "told".into(), conversation_id: "c-1".into(), ..with(full()) }),
        ..Default::default()
    });
    let trace = "0af7651916cd43dd8448eb211c80319c";
    request.metadata_mut().insert("traceparent", format!("00-{trace}-b7ad6b7169203331-01").parse().unwrap());
    let events = collect_responses(world.client.ask(request).await.unwrap().into_inner()).await;
    assert!(end(&events).approved);
    let Some(v1::trajectory_event::Body::Submitted(submitted)) = &events[0].body else { panic!("{events:?}") };
    assert_eq!(
        (submitted.context.as_ref(), submitted.conversation_id.as_str(), submitted.trace_id.as_str()),
        (Some(&full()), "c-1", trace)
    );
    assert_eq!(*seen.lock().unwrap(), [Some(full()), Some(full())], "at every step");
    let stored = get(&mut world.client, "told").await;
    assert_eq!((stored.context, stored.trace_id.as_str()), (Some(full()), trace));
    let listed = world.client.list_tasks(v1::ListTasksRequest::default()).await.unwrap().into_inner().tasks.remove(0);
    assert_eq!((listed.context, listed.trace_id.as_str()), (None, trace));

    // nothing said is nothing sent, and nothing stored
    seen.lock().unwrap().clear();
    for request in [named("plain", "Loire"), v1::SubmitTaskRequest { task_id: "empty".into(), ..with(v1::TaskContext::default()) }] {
        let id = request.task_id.clone();
        ask(&mut world.client, request).await;
        let stored = get(&mut world.client, &id).await;
        assert_eq!((stored.context, stored.trace_id.as_str()), (None, ""));
    }
    assert!(seen.lock().unwrap().iter().all(Option::is_none));
}

#[tokio::test]
async fn the_context_is_part_of_what_a_task_id_stands_for() {
    let world = world(Group::start(Script::default()).await).await;
    let named = |context: v1::TaskContext| v1::SubmitTaskRequest { task_id: "t".into(), ..with(context) };
    let submit = |request: v1::SubmitTaskRequest, trace: Option<&str>| {
        let mut client = world.client.clone();
        let mut request = Request::new(request);
        if let Some(trace) = trace {
            request.metadata_mut().insert("traceparent", format!("00-{trace}-b7ad6b7169203331-01").parse().unwrap());
        }
        async move { client.submit_task(request).await.map(|response| response.into_inner().task.unwrap()) }
    };
    let first = submit(named(full()), Some("11111111111111111111111111111111")).await.unwrap();
    // the trace is how it came, not what it asks for: the first one stays
    let again = submit(named(full()), Some("22222222222222222222222222222222")).await.unwrap();
    assert_eq!((first.trace_id.as_str(), again.trace_id.as_str()), ("1".repeat(32).as_str(), "1".repeat(32).as_str()));
    let change: [fn(&mut v1::TaskContext); 10] = [
        |context| context.task.as_mut().unwrap().name.push('x'),
        |context| context.task.as_mut().unwrap().description.push('x'),
        |context| context.task.as_mut().unwrap().answer_format.push('x'),
        |context| context.profile.as_mut().unwrap().name.push('x'),
        |context| context.profile.as_mut().unwrap().bio.push('x'),
        |context| context.profile.as_mut().unwrap().audience.push('x'),
        |context| context.instructions.swap(0, 1),
        // the same words, told apart otherwise
        |context| context.knowledge.push(context.instructions.pop().unwrap().replace(' ', "-")),
        |context| context.now = Some(prost_types::Timestamp { seconds: -1_795_332_600, nanos: 0 }),
        |context| context.time_zone.clear(),
    ];
    for (at, change) in change.iter().enumerate() {
        let mut context = full();
        change(&mut context);
        let status = submit(named(context), None).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::AlreadyExists, Some("TASK_EXISTS")), "change {at}");
        assert_eq!(metadata(&status)["task_id"], "t");
    }
    assert!(submit(named(v1::TaskContext::default()), None).await.is_err(), "without a context");
}

#[tokio::test]
async fn a_context_out_of_bounds_names_the_field_the_value_and_the_bound() {
    let mut world = world(Group::start(Script::default()).await).await;
    let info = |info: v1::TaskInfo| v1::TaskContext { task: Some(info), ..Default::default() };
    let profile = |profile: v1::Profile| v1::TaskContext { profile: Some(profile), ..Default::default() };
    let long = |most: usize| "x".repeat(most + 1);
    let text = |text: &str| v1::TaskContext { instructions: vec![text.into()], ..Default::default() };
    let cases = [
        (info(v1::TaskInfo { name: long(128), ..Default::default() }), "context.task.name", "129", "128"),
        (info(v1::TaskInfo { description: long(4096), ..Default::default() }), "context.task.description", "4097", "4096"),
        (info(v1::TaskInfo { answer_format: long(512), ..Default::default() }), "context.task.answer_format", "513", "512"),
        (profile(v1::Profile { name: long(128), ..Default::default() }), "context.profile.name", "129", "128"),
        (profile(v1::Profile { bio: long(4096), ..Default::default() }), "context.profile.bio", "4097", "4096"),
        (profile(v1::Profile { audience: long(512), ..Default::default() }), "context.profile.audience", "513", "512"),
        (text(&long(512)), "context.instructions", "513", "512"),
        (v1::TaskContext { instructions: vec!["x".into(); 17], ..Default::default() }, "context.instructions", "17", "16"),
        (text("a\u{7}b"), "context.instructions", "U+0007", ""),
        (text(" "), "context.instructions", "", ""),
        (v1::TaskContext { knowledge: vec!["x".into(); 17], ..Default::default() }, "context.knowledge", "17", "16"),
        (v1::TaskContext { knowledge: vec!["a/b".into()], ..Default::default() }, "context.knowledge", "a/b", ""),
        (v1::TaskContext { time_zone: "+01:00".into(), ..Default::default() }, "context.time_zone", "+01:00", ""),
        (v1::TaskContext { time_zone: long(1 << 16), ..Default::default() }, "context.time_zone", &"x".repeat(64), ""),
        (
            v1::TaskContext { now: Some(prost_types::Timestamp { seconds: i64::MAX, nanos: 0 }), ..Default::default() },
            "context.now",
            "",
            "",
        ),
    ];
    for (context, field, value, limit) in cases {
        let status = world.client.submit_task(with(context)).await.unwrap_err();
        assert_eq!((status.code(), reason(&status).as_deref()), (Code::InvalidArgument, Some("BAD_CONTEXT")), "{status:?}");
        assert!(status.message().contains(field) && status.message().len() < 500, "{status:?}");
        assert_eq!(status.get_details_bad_request().unwrap().field_violations[0].field, field);
        let metadata = metadata(&status);
        let get = |name: &str| metadata.get(name).map(String::as_str).unwrap_or_default();
        assert_eq!((get("field"), get("value"), get("limit")), (field, value, limit), "{status:?}");
    }
    // as much as may be said
    let most = |most: usize| "é".repeat(most / 2);
    let context = v1::TaskContext {
        task: Some(v1::TaskInfo { name: most(128), description: most(4096), answer_format: most(512) }),
        profile: Some(v1::Profile { name: most(128), bio: most(4096), audience: most(512) }),
        instructions: vec![most(512); 16],
        knowledge: vec!["k".repeat(64); 16],
        now: full().now,
        time_zone: "America/Argentina/Buenos_Aires".into(),
    };
    let submitted = world.client.submit_task(with(context.clone())).await.unwrap().into_inner().task.unwrap();
    assert_eq!(submitted.context, Some(context));
}

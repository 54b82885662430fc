//! The planning loop as a client sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::common::scripted::{Execute, Group, Script, reflections, steps};
use crate::common::*;
use autoact_testkit::poll;
use autoact_wire::v1::FinishReason;
use autoact_wire::v1::get_artifact_response::Part;
use autoact_wire::{agents_v1, v1};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Semaphore;

#[tokio::test]
async fn a_question_is_answered_and_approved() {
    let mut world = world(Group::start(Script::default()).await).await;
    let events = ask(&mut world.client, named("t", "Loire")).await;
    let expected = ["submitted", "started", "thought", "action", "observation", "thought", "action", "reflection", "finished"];
    assert_eq!(names(&events), expected);
    let finished = end(&events);
    assert!(finished.approved);
    assert_eq!((finished.answer.as_str(), finished.reason()), ("the answer to Loire", FinishReason::Approved));
    let usage = events[2].usage.as_ref().unwrap();
    assert_eq!(usage.completion_tokens, 5);
    assert!(usage.total.as_ref().unwrap().nanos > 0, "the gateway's own measure");
    assert_eq!((usage.log_prob, usage.scored_tokens), (Some(-2.5), 5));
    assert!(matches!(&events[7].body, Some(v1::trajectory_event::Body::Reflection(reflection)) if reflection.log_odds == Some(1.5)));

    let task = get(&mut world.client, "t").await;
    assert_eq!((task.state(), task.answer.as_str(), task.turns.len()), (v1::TaskState::Finished, "the answer to Loire", 3));
    let judged = task.turns.last().and_then(|turn| turn.turn.as_ref());
    assert!(matches!(judged, Some(v1::turn::Turn::Reflection(reflection)) if reflection.log_odds == Some(1.5)), "{judged:?}");
    assert_eq!(task.last_sequence, events.last().unwrap().sequence);
    let remembered = poll::until(LIMIT, async || world.group.inner.remembered.lock().unwrap().first().cloned()).await.unwrap();
    assert_eq!((remembered.task_id.as_str(), remembered.approved, remembered.steps), ("t", true, 2));
    let metrics = metrics(&world).await;
    for expected in [
        "autoact_agent_call_seconds_bucket{agent=\"plan\",phase=\"total\"",
        "autoact_agent_call_seconds_bucket{agent=\"tool\",phase=\"tool\"",
        "autoact_bus_append_seconds_bucket",
        "autoact_task_seconds_bucket{reason=\"approved\"",
    ] {
        assert!(metrics.contains(expected), "no `{expected}` in\n{metrics}");
    }
    // Other tests may count in this process too.
    for (counter, least) in [("autoact_tasks_total{reason=\"approved\"} ", 1), ("autoact_steps_total ", 2)] {
        let count = metrics.lines().find_map(|line| line.strip_prefix(counter)?.parse::<u64>().ok());
        assert!(count.is_some_and(|count| count >= least), "{counter}is {count:?} in\n{metrics}");
    }
    world.gateway.stop().await.unwrap();
}

async fn metrics(world: &World) -> String {
    let mut stream = tokio::net::TcpStream::connect(world.gateway.metrics_addr()).await.unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn a_wrong_answer_goes_back_to_planning() {
    let script = Script { right: Box::new(|trajectory| reflections(trajectory) == 1), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    let events = ask(&mut world.client, task("Loire")).await;
    let reflections = names(&events).iter().filter(|name| **name == "reflection").count();
    assert_eq!((reflections, end(&events).approved), (2, true));
}

#[tokio::test]
async fn every_bound_brings_the_best_answer_unapproved() {
    let script = Script { right: Box::new(|_| false), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    let limits = |limits| v1::SubmitTaskRequest { limits: Some(limits), ..task("Loire") };
    let cases = [
        (v1::Limits { max_steps: Some(1), ..Default::default() }, FinishReason::MaxSteps, ""),
        (v1::Limits { max_reflections: Some(1), ..Default::default() }, FinishReason::MaxReflections, "the answer to Loire"),
        (v1::Limits { max_tokens: Some(11), ..Default::default() }, FinishReason::MaxTokens, ""),
        (v1::Limits { max_steps: Some(0), ..Default::default() }, FinishReason::MaxSteps, ""),
        (v1::Limits { max_reflections: Some(0), ..Default::default() }, FinishReason::MaxReflections, "the answer to Loire"),
    ];
    for (bound, reason, answer) in cases {
        let events = ask(&mut world.client, limits(bound)).await;
        let finished = end(&events);
        assert_eq!((finished.reason(), finished.answer.as_str(), finished.approved), (reason, answer, false));
        assert!(finished.detail.contains("bound on"), "{finished:?}");
    }
    world.group.hold_after(1);
    let time = v1::Limits { max_time: Some(Duration::from_millis(300).try_into().unwrap()), ..Default::default() };
    let events = ask(&mut world.client, limits(time)).await;
    assert_eq!(end(&events).reason(), FinishReason::MaxTime);
    // the call that ran out of time was hung up
    let open = poll::until(LIMIT, async || (world.group.inner.open.load(Ordering::SeqCst) == 0).then_some(())).await;
    assert!(open.is_some());
}

#[tokio::test]
async fn a_repeated_action_is_told_to_the_group() {
    let script = Script {
        plan: Box::new(|trajectory| if steps(trajectory).len() < 2 { "Retrieve".into() } else { "Finish".into() }),
        ..Script::default()
    };
    let mut world = world(Group::start(script).await).await;
    let events = ask(&mut world.client, task("Loire")).await;
    let observations = observations(&events);
    assert_eq!((observations[0].repeated, observations[1].repeated), (false, true));
    assert!(observations[1].text.starts_with("(Same action as before; try another.) Loire"), "{observations:?}");
}

#[tokio::test]
async fn a_broken_tool_is_an_observation() {
    let script = Script {
        params: Box::new(|trajectory| match steps(trajectory).last() {
            Some(step) if step.tool == "Finish" => "it broke".into(),
            _ => "break".into(),
        }),
        ..Script::default()
    };
    let mut world = world(Group::start(script).await).await;
    let events = ask(&mut world.client, task("Loire")).await;
    let seen = observations(&events)[0];
    assert!(seen.is_error && seen.text.contains("the tool broke"), "{seen:?}");
    assert!(end(&events).approved);
}

#[tokio::test]
async fn a_busy_agent_is_asked_again() {
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.inner.busy.store(3, Ordering::SeqCst);
    let events = ask(&mut world.client, task("Loire")).await;
    assert!(end(&events).approved);
    assert_eq!(world.group.inner.plans.load(Ordering::SeqCst), 5);
}

#[tokio::test]
async fn a_task_is_cancelled_in_mid_call() {
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(1);
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    world.group.asked(2).await;
    let request = v1::CancelTaskRequest { task_id: "t".into() };
    let task = world.client.cancel_task(request.clone()).await.unwrap().into_inner().task.unwrap();
    assert_eq!((task.state(), task.reason()), (v1::TaskState::Finished, FinishReason::Cancelled));
    // whoever ran it hangs up at once, long before the call would have ended
    let open = poll::until(LIMIT, async || (world.group.inner.open.load(Ordering::SeqCst) == 0).then_some(())).await;
    assert!(open.is_some());
    let events = watch(&mut world.client, "t", 0).await;
    assert_eq!(end(&events).reason(), FinishReason::Cancelled);
    let again = world.client.cancel_task(request).await.unwrap().into_inner().task.unwrap();
    assert_eq!(again.last_sequence, task.last_sequence);
    world.group.go_on();
    assert!(end(&ask(&mut world.client, crate::common::task("next")).await).approved);
}

#[tokio::test]
async fn a_client_that_hangs_up_leaves_only_the_task() {
    use tokio_stream::StreamExt;
    let mut world = world(Group::start(Script::default()).await).await;
    world.group.hold_after(1);
    let request = v1::AskRequest { task: Some(named("t", "Loire")), ..Default::default() };
    let mut stream = world.client.ask(request).await.unwrap().into_inner();
    let first = stream.next().await.unwrap().unwrap().event.unwrap();
    assert_eq!(names(&[first]), ["submitted"]);
    drop(stream);
    world.group.go_on();
    let done = poll::until(LIMIT, async || {
        let task = get(&mut world.client.clone(), "t").await;
        (task.state() == v1::TaskState::Finished).then_some(task)
    });
    assert!(done.await.unwrap().approved);
    // a stream that was left open would hold the gateway for its grace period
    tokio::time::timeout(Duration::from_secs(5), world.gateway.stop()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_watcher_resumes_where_it_left() {
    let mut world = world(Group::start(Script::default()).await).await;
    let all = ask(&mut world.client, named("t", "Loire")).await;
    for seen in [0, 1, 4, all.len() - 1] {
        let after = if seen == 0 { 0 } else { all[seen - 1].sequence };
        assert_eq!(watch(&mut world.client, "t", after).await, all[seen..]);
    }
    assert!(watch(&mut world.client, "t", all.last().unwrap().sequence).await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_two_tasks_at_once() {
    let world = world(Group::start(Script::default()).await).await;
    let tasks = (0..32).map(|number| {
        let mut client = world.client.clone();
        tokio::spawn(async move {
            let question = format!("question {number}");
            (ask(&mut client, task(&question)).await, question)
        })
    });
    let mut ids = std::collections::HashSet::new();
    for task in tasks.collect::<Vec<_>>() {
        let (events, question) = task.await.unwrap();
        let id = &events[0].task_id;
        assert!(ids.insert(id.clone()));
        assert!(events.iter().all(|event| event.task_id == *id));
        assert_eq!(observations(&events)[0].text, format!("{question} in task {id}"));
        assert_eq!(end(&events).answer, format!("the answer to {question}"));
    }
}

#[tokio::test]
async fn words_arrive_before_their_event() {
    use tokio_stream::StreamExt;
    let held = Arc::new(Semaphore::new(0));
    let script = Script { after_words: Some(held.clone()), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    // also through a gateway that does not run the task
    let (second, mut other) = start(config(&world.nats, &world.group)).await;
    world.group.hold_after(0);
    world.client.submit_task(named("t", "Loire")).await.unwrap();
    world.group.asked(1).await;
    let request = v1::WatchTaskRequest { task_id: "t".into(), after_sequence: 0, deltas: true };
    let mut watched = other.watch_task(request).await.unwrap().into_inner();
    // the stream is open once its first event is here
    assert!(watched.next().await.unwrap().unwrap().event.is_some());
    world.group.go_on();
    let (mut words, mut events) = (Vec::new(), 0);
    while let Some(piece) = tokio::time::timeout(LIMIT, watched.next()).await.unwrap() {
        let piece = piece.unwrap();
        assert!(piece.event.is_some() != piece.delta.is_some(), "one of the two");
        events += usize::from(piece.event.is_some());
        // a thought ends once its first words are here
        held.add_permits(usize::from(piece.delta.is_some()));
        words.extend(piece.delta);
    }
    assert!(events > 5, "{events}");
    let first = words.iter().find(|delta| delta.call_id == "plan-1-0").expect("Plan-Agent's words");
    assert_eq!((first.text.as_str(), first.offset, first.attempt), ("…", 0, 1));
    second.stop().await.unwrap();
}

#[tokio::test]
async fn tools_are_listed_and_lists_are_filtered() {
    let mut world = world(Group::start(Script::default()).await).await;
    let tools = world.client.list_tools(v1::ListToolsRequest {}).await.unwrap().into_inner().tools;
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["Search", "Retrieve", "Send", "Finish"]);
    let labelled = |id: &str, team: &str| v1::SubmitTaskRequest { labels: [("team".into(), team.into())].into(), ..named(id, "q") };
    ask(&mut world.client, labelled("a", "red")).await;
    ask(&mut world.client, labelled("b", "blue")).await;
    world.group.hold_after(0);
    world.client.submit_task(labelled("c", "red")).await.unwrap();
    world.client.cancel_task(v1::CancelTaskRequest { task_id: "c".into() }).await.unwrap();
    let ids = |request: v1::ListTasksRequest| {
        let mut client = world.client.clone();
        async move {
            let tasks = client.list_tasks(request).await.unwrap().into_inner().tasks;
            tasks.into_iter().map(|task| task.task_id).collect::<Vec<_>>()
        }
    };
    let all = v1::ListTasksRequest::default();
    assert_eq!(ids(all.clone()).await, ["c", "b", "a"]);
    assert_eq!(ids(v1::ListTasksRequest { labels: [("team".into(), "red".into())].into(), ..all.clone() }).await, ["c", "a"]);
    let cancelled = v1::TaskOutcome::Cancelled as i32;
    assert_eq!(ids(v1::ListTasksRequest { outcome: cancelled, ..all.clone() }).await, ["c"]);
    assert_eq!(ids(v1::ListTasksRequest { page_size: 1, labels: [("team".into(), "blue".into())].into(), ..all }).await, ["b"]);
    let basic = v1::GetTaskRequest { task_id: "a".into(), view: v1::TaskView::Basic as i32 };
    let task = world.client.get_task(basic).await.unwrap().into_inner().task.unwrap();
    assert!(task.turns.is_empty() && task.outcome() == v1::TaskOutcome::Finished && task.completion_tokens > 0, "{task:?}");
}

#[tokio::test]
async fn a_library_that_is_known_is_not_sent_again() {
    // with a Tool-Agent that names its library by a digest, and with one of an earlier release
    for digest in [true, false] {
        let mut world = world(Group::start(Script { digest, ..Script::default() }).await).await;
        let (client, inner) = (world.client.clone(), world.group.inner.clone());
        let [listed, unchanged] = poll::until(LIMIT, async || {
            let tools = client.clone().list_tools(v1::ListToolsRequest {}).await.unwrap().into_inner().tools;
            assert_eq!(tools.len(), 4, "whether they were sent or not");
            let counts = [&inner.listed, &inner.unchanged].map(|count| count.load(Ordering::SeqCst));
            (counts.iter().sum::<usize>() >= 4).then_some(counts)
        })
        .await
        .unwrap();
        assert!(if digest { listed == 1 } else { unchanged == 0 }, "sent {listed} times, known {unchanged} times");
        assert!(ask(&mut world.client, named("q", "q")).await.len() > 3);
    }
}

#[tokio::test]
async fn an_artifact_is_told_to_the_group_and_can_be_fetched() {
    let data: Vec<u8> = (0..200_000).map(|at| (at % 251) as u8).collect();
    let table = agents_v1::NewArtifact {
        kind: "table".into(),
        media_type: "text/csv".into(),
        name: "rivers.csv".into(),
        text: "12 rivers".into(),
        data: data.clone(),
    };
    let execute: Execute = Box::new(move |_| agents_v1::ExecuteResponse {
        observation: "Here is a table.".into(),
        artifacts: vec![table.clone()],
        ..Default::default()
    });
    // the answer is what the agents were told of the artifact
    let params = |trajectory: &v1::Trajectory| match steps(trajectory).first().and_then(|step| step.artifacts.first()) {
        Some(artifact) => format!("{}: {}", artifact.name, artifact.text),
        None => "Loire".into(),
    };
    let script = Script { execute: Some(execute), params: Box::new(params), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    let events = ask(&mut world.client, named("t", "Loire")).await;
    assert_eq!(end(&events).answer, "rivers.csv: 12 rivers");
    let artifacts: Vec<_> = events.iter().flat_map(|event| &event.artifacts).collect();
    assert_eq!((artifacts.len(), artifacts[0].bytes), (1, 200_000));
    for step in [0, 1] {
        let request = v1::GetArtifactRequest { task_id: "t".into(), name: "rivers.csv".into(), step };
        let mut parts = world.client.get_artifact(request).await.unwrap().into_inner();
        let mut fetched = Vec::new();
        let mut first = None;
        while let Some(response) = parts.message().await.unwrap() {
            match response.part.unwrap() {
                Part::Artifact(artifact) => first = Some(artifact),
                Part::Data(piece) => fetched.extend(piece),
            }
        }
        assert_eq!((first.as_ref(), &fetched), (Some(artifacts[0]), &data));
    }
    for (task_id, name, step, expected) in
        [("t", "other", 0, "ARTIFACT_NOT_FOUND"), ("t", "rivers.csv", 2, "ARTIFACT_NOT_FOUND"), ("u", "rivers.csv", 0, "TASK_NOT_FOUND")]
    {
        let request = v1::GetArtifactRequest { task_id: task_id.into(), name: name.into(), step };
        let status = world.client.get_artifact(request).await.unwrap_err();
        assert_eq!((status.code(), autoact_wire::status::reason(&status).as_deref()), (tonic::Code::NotFound, Some(expected)));
    }
}

#[tokio::test]
async fn an_answer_comes_with_the_passages_it_rests_on() {
    let text = "The Loire is a river in France. It is 1,006 km long.";
    let source = v1::Source {
        collection: "atlas".into(),
        file: "rivers.pdf".into(),
        title: "Loire".into(),
        page: Some(3),
        start: 40,
        end: 40 + text.len() as u64,
        text: text.into(),
        ..v1::Source::default()
    };
    let shown = source.clone();
    let execute: Execute = Box::new(move |_| agents_v1::ExecuteResponse {
        observation: text.into(),
        // one that lies about its place is left out
        sources: vec![v1::Source { end: 41, ..shown.clone() }, shown.clone()],
        ..Default::default()
    });
    let params = |trajectory: &v1::Trajectory| {
        let sent = steps(trajectory).iter().map(|step| step.sources.len()).sum::<usize>();
        assert_eq!(sent, 0, "agents are not sent sources");
        match steps(trajectory).last() {
            Some(step) if step.tool == "Finish" => "1,006 km".into(),
            _ => "Loire".into(),
        }
    };
    let script = Script { execute: Some(execute), params: Box::new(params), ..Script::default() };
    let mut world = world(Group::start(script).await).await;
    let events = ask(&mut world.client, named("t", "How long is the Loire?")).await;
    let v1::Source { collection, file, title, heading, page, .. } = source.clone();
    let (start, end_of) = (40 + 32, 40 + 52);
    let citation = v1::Citation { step: 1, collection, file, title, heading, page, start, end: end_of, quote: text[32..].into() };
    assert_eq!((end(&events).answer.as_str(), &end(&events).citations), ("1,006 km", &vec![citation.clone()]));
    assert_eq!(observations(&events)[0].sources, std::slice::from_ref(&source));
    let task = get(&mut world.client, "t").await;
    let Some(v1::turn::Turn::Step(step)) = &task.turns[0].turn else { panic!("{task:?}") };
    assert_eq!((&task.citations, &step.sources), (&vec![citation], &vec![source]));
}

//! Conversations: what is recalled before the first plan, and what memory is told however long it is
//! away. The memory of these tests follows a script; `tests/` has the real one.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::common::scripted::{Group, MemoryIs, Script, steps};
use crate::common::*;
use autoact_testkit::poll;
use autoact_wire::v1::trajectory_event::Body;
use autoact_wire::v1::{self, RecalledKind};

/// Answers with what the agents were shown of earlier tasks.
fn script() -> Script {
    Script {
        params: Box::new(|trajectory| match steps(trajectory).last() {
            Some(step) if step.tool == "Finish" => {
                let earlier: Vec<&str> = trajectory.recalled.iter().map(|item| item.question.as_str()).collect();
                format!("after [{}]", earlier.join(", "))
            }
            _ => trajectory.question.clone(),
        }),
        ..Script::default()
    }
}

fn said(id: &str, conversation: &str, question: &str) -> v1::SubmitTaskRequest {
    v1::SubmitTaskRequest { conversation_id: conversation.into(), ..named(id, question) }
}

fn recalled(events: &[v1::TrajectoryEvent]) -> Vec<&v1::Recalled> {
    events.iter().filter_map(|event| if let Some(Body::Recalled(recalled)) = &event.body { Some(recalled) } else { None }).collect()
}

async fn told(world: &World, count: usize) {
    let inner = &world.group.inner;
    let told = async || (inner.turns.lock().unwrap().len() >= count && inner.remembered.lock().unwrap().len() >= count).then_some(());
    poll::until(LIMIT, told).await.expect("memory is told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_has_the_turn_before_it_however_soon_it_comes() {
    let mut world = world(Group::start(script()).await).await;
    let expected = ["submitted", "started", "recalled", "thought", "action", "observation", "thought", "action", "reflection", "finished"];
    for number in 0..6 {
        let events = ask(&mut world.client, said(&format!("t{number}"), "c", &format!("q{number}"))).await;
        assert_eq!(names(&events), expected);
        let [recalled] = recalled(&events)[..] else { panic!("{events:?}") };
        assert_eq!((recalled.left_out, recalled.failure.as_str()), (0, ""));
        // the same task as a turn and as a task: once, at its better rank
        let ids: Vec<&str> = recalled.items.iter().map(|item| item.task_id.as_str()).collect();
        assert_eq!(ids, (0..number).rev().map(|number| format!("t{number}")).collect::<Vec<_>>());
        assert!(recalled.items.iter().all(|item| item.kind() == RecalledKind::Turn && item.approved && item.finished_at.is_some()));
        let earlier: Vec<String> = (0..number).rev().map(|number| format!("q{number}")).collect();
        assert_eq!(end(&events).answer, format!("after [{}]", earlier.join(", ")));
    }
    // another conversation has nothing of it, and a task of none is not asked for
    let events = ask(&mut world.client, said("other", "d", "q")).await;
    assert!(recalled(&events)[0].items.is_empty());
    let recalls = world.group.inner.recalls.load(Ordering::SeqCst);
    let events = ask(&mut world.client, named("alone", "q")).await;
    assert!(recalled(&events).is_empty() && end(&events).answer == "after []");
    assert_eq!(world.group.inner.recalls.load(Ordering::SeqCst), recalls);
}

#[tokio::test]
async fn the_box_is_bounded_and_says_what_it_leaves_out() {
    let mut world = world_with(Group::start(script()).await, |config| config.recall.max_bytes = 300).await;
    for number in 0..4 {
        ask(&mut world.client, said(&format!("t{number}"), "c", &"q".repeat(60))).await;
        told(&world, number + 1).await;
    }
    let events = ask(&mut world.client, said("last", "c", "q")).await;
    let recalled = recalled(&events)[0];
    assert!(!recalled.items.is_empty() && recalled.left_out > 0, "{recalled:?}");
    assert_eq!(recalled.items.len() + recalled.left_out as usize, 4);
    let bytes: usize = recalled.items.iter().map(|item| item.question.len() + item.answer.len()).sum();
    assert!(bytes <= 300, "{recalled:?}");
}

#[tokio::test]
async fn a_memory_that_does_not_answer_is_not_waited_for() {
    for (memory, told) in [(MemoryIs::Silent, "did not answer within"), (MemoryIs::Away, "memory is away")] {
        let mut world = world_with(Group::start(script()).await, |config| config.recall.timeout = Duration::from_millis(300)).await;
        *world.group.inner.memory.lock().unwrap() = memory;
        let began = Instant::now();
        let events = ask(&mut world.client, said("t", "c", "q")).await;
        assert!(began.elapsed() < Duration::from_secs(10) && end(&events).approved);
        let [recalled] = recalled(&events)[..] else { panic!("{events:?}") };
        assert!(recalled.items.is_empty() && !recalled.failure.is_empty(), "{recalled:?}");
        assert!(recalled.failure.contains(told) || recalled.failure.contains("did not answer within"), "{recalled:?}");
    }
    let mut world = world_with(Group::start(script()).await, |config| config.memory = String::new()).await;
    let events = ask(&mut world.client, said("t", "c", "q")).await;
    assert_eq!(recalled(&events)[0].failure, "there is no memory here");
}

/// Memory is away while tasks end, and the gateway goes too: the next one tells memory of all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_memory_missed_it_hears_of_later() {
    let mut world = world(Group::start(script()).await).await;
    *world.group.inner.memory.lock().unwrap() = MemoryIs::Away;
    for number in 0..5 {
        let conversation = if number == 4 { "" } else { "c" };
        assert!(end(&ask(&mut world.client, said(&format!("t{number}"), conversation, "q")).await).approved);
    }
    world.gateway.stop().await.unwrap();
    assert!(world.group.inner.remembered.lock().unwrap().is_empty());
    let config = config(&world.nats, &world.group);
    let (gateway, client) = start(config).await;
    (world.gateway, world.client) = (gateway, client);
    tokio::time::sleep(Duration::from_secs(2)).await;
    *world.group.inner.memory.lock().unwrap() = MemoryIs::There;
    told(&world, 4).await;
    poll::until(LIMIT, async || (world.group.inner.remembered.lock().unwrap().len() >= 5).then_some(())).await.expect("the one without");
    let mut ids: Vec<String> = world.group.inner.remembered.lock().unwrap().iter().map(|task| task.task_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids, ["t0", "t1", "t2", "t3", "t4"]);
    assert_eq!(world.group.inner.turns.lock().unwrap().iter().filter(|turn| turn.conversation_id == "c").count(), 4);
}

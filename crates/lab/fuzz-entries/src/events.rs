//! Stored events: decoded and folded, as by a gateway that takes a task over.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use autoact_prompt::{Expect, Role, chat, most_bytes, transcript};
use autoact_trajectory::{Decision, Event, EventBody, FinishReason, Phase, Started, Task, Tenant, decide};
use autoact_wire::specs::decode_spec;
use autoact_wire::store::{decode, decode_without_tools, digest, encode, named_tools, version};

use crate::parts::parts;

/// More events than any seed has.
const MOST: usize = 64;

/// Stored tools and events, one after another, and what follows from each.
pub fn events(data: &[u8]) {
    let tenant = Tenant::default();
    let mut specs = BTreeMap::new();
    let mut task: Option<Task> = None;
    for (at, bytes) in (1..).zip(parts(data, MOST)) {
        if let Ok(spec) = decode_spec(bytes) {
            specs.insert(digest(bytes), spec);
        }
        let _ = (version(bytes), named_tools(bytes), decode_without_tools(&tenant, bytes, at));
        let Ok(event) = decode(&tenant, bytes, at, &specs) else { continue };
        written_again(&event);
        match &mut task {
            None => task = Task::begin(&event).ok(),
            Some(task) => {
                let before = task.clone();
                if task.apply(&event).is_err() {
                    assert!(*task == before, "an event that was refused changed the task");
                }
            }
        }
        if let Some(task) = &task {
            legal(task);
        }
    }
}

/// What is read can be written, and is then read as the same.
fn written_again(event: &Event) {
    // what this program does not know it does not write
    if matches!(event.body, EventBody::Unknown(_)) {
        return;
    }
    let Ok(bytes) = encode(event) else { return };
    let specs: BTreeMap<_, _> = match &event.body {
        EventBody::Submitted(submitted) => autoact_wire::specs::stored_specs(submitted)
            .filter_map(|(_, spec)| Some((spec.digest, decode_spec(&spec.bytes).ok()?)))
            .collect(),
        _ => BTreeMap::new(),
    };
    match decode(&event.tenant, &bytes, event.sequence, &specs) {
        // compared as bytes: a number that is none equals nothing
        Ok(again) => assert!(encode(&again).is_ok_and(|again| again == bytes), "an event changes when it is read and written: {event:?}"),
        Err(error) => panic!("what was written cannot be read: {error}: {event:?}"),
    }
}

/// Whatever the history, the task can be prompted, taken over, and ended.
fn legal(task: &Task) {
    let shown = task.shown();
    let _ = (transcript(&shown), most_bytes(&shown));
    for role in [Role::Plan, Role::Tool, Role::Reflect] {
        let _ = (Expect::next(role, &shown), chat(role, &shown));
    }
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let decision = decide(task, now);
    let can_follow = |body: EventBody| task.check(&task.next_event(now, "gateway-b", body));
    if task.phase() == Phase::Finished {
        assert!(decision == Decision::Done, "an ended task goes on: {decision:?}");
        return;
    }
    assert!(decision != Decision::Done, "a task stops without an end, in the phase {:?}", task.phase());
    if let Decision::Finish(finished) = decision {
        let followed = can_follow(EventBody::Finished(finished));
        assert!(followed.is_ok(), "the decided end cannot follow: {followed:?}");
    }
    let started = Started { gateway: "gateway-b".to_owned(), attempt: task.attempt().saturating_add(1) };
    for body in [EventBody::Started(started), EventBody::Finished(task.finish(FinishReason::Cancelled, ""))] {
        let followed = can_follow(body);
        assert!(followed.is_ok(), "a take-over or an end cannot follow: {followed:?}");
    }
}

//! The checker checked: a history that is as it must be passes, and each way to spoil one is named.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use autoact_trajectory::{
    Action, Claim, Digest, Effect, Event, EventBody, FinishReason, Finished, Limits, Observation, Outcome, Receipt, Receipts, Reflection,
    Started, Submitted, Task, TaskKey, Tenant, Thought, ToolSpec, UNKNOWN_OUTCOME, Verdict,
};
use autoact_wire::receipt::action_digest;
use autoact_wire::v1::TrajectoryEvent;
use proptest::prelude::*;

use crate::checker::{Counted, History, check};

/// What happens in one step of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// A read-only tool is run.
    Read,
    /// A side effect happens, and its outcome is read.
    Sent,
    /// A side effect happens, and nobody knows its outcome.
    Unknown,
    /// A side effect is claimed and does not happen.
    Nothing,
}

/// A run and what it left behind.
#[derive(Debug, Clone)]
struct Run {
    events: Vec<Event>,
    receipts: Receipts,
    told: Vec<TrajectoryEvent>,
    runs: BTreeMap<String, usize>,
}

/// What is done to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutation {
    DropEvent,
    DuplicateEvent,
    SwapEvents,
    /// An event of another holder in the place of one.
    Fork,
    /// An event by the holder before the one that took over.
    OlderHolder,
    EffectTwice,
    /// An effect of a step that the history does not have.
    StrangeEffect,
    /// The receipts of an effect are gone.
    NoReceipt,
    /// An effect whose outcome nobody knows is told as if it were known.
    UnknownNotTold,
    /// The run ends while an outcome is open, and does not say so.
    OpenNotTold,
    /// The client was told something that is not stored.
    ToldOther,
    ToldTwice,
    ToldLess,
    EndsTwice,
    Lost,
    NothingLeft,
}

const MUTATIONS: [Mutation; 16] = [
    Mutation::DropEvent,
    Mutation::DuplicateEvent,
    Mutation::SwapEvents,
    Mutation::Fork,
    Mutation::OlderHolder,
    Mutation::EffectTwice,
    Mutation::StrangeEffect,
    Mutation::NoReceipt,
    Mutation::UnknownNotTold,
    Mutation::OpenNotTold,
    Mutation::ToldOther,
    Mutation::ToldTwice,
    Mutation::ToldLess,
    Mutation::EndsTwice,
    Mutation::Lost,
    Mutation::NothingLeft,
];

fn at(index: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + index)
}

fn key() -> TaskKey {
    TaskKey::new(Tenant::default(), "task".parse().unwrap())
}

fn action(step: u32, tool: &str) -> Action {
    Action { tool: tool.to_owned(), params: format!("x{step}") }
}

/// What stands for the hash of an event's bytes.
fn digest_of(event: &Event) -> Digest {
    let params = format!("{} {} {:?}", event.index, event.epoch, event.body);
    action_digest(&Action { tool: event.writer.clone(), params })
}

fn tool(name: &str, effect: Effect) -> ToolSpec {
    ToolSpec { definition: format!("{name} does something."), effect, max_observation_bytes: 2048, ..ToolSpec::new(name) }
}

/// A run of these steps that is taken over after `taken_over` of its events.
fn run(steps: &[Step], taken_over: usize) -> Run {
    let tools = vec![tool("Read", Effect::ReadOnly), tool("Send", Effect::SideEffect), tool("Finish", Effect::ReadOnly)];
    let submitted = Submitted { question: "Which?".to_owned(), tools, limits: Limits::default(), ..Submitted::default() };
    let mut bodies = vec![EventBody::Submitted(submitted), started(1)];
    let (mut receipts, mut runs) = (Receipts::default(), BTreeMap::new());
    for (step, number) in steps.iter().zip(1..) {
        let name = if *step == Step::Read { "Read" } else { "Send" };
        let action = action(number, name);
        let text = match step {
            Step::Read | Step::Sent => "It is done.",
            Step::Unknown | Step::Nothing => UNKNOWN_OUTCOME,
        };
        let observation = Observation { text: text.to_owned(), is_error: text == UNKNOWN_OUTCOME, ..Observation::default() };
        if *step != Step::Read {
            let claim = Claim { step: number, epoch: 1, action: action_digest(&action), until: at(0), claimant: "a".to_owned() };
            receipts.apply(Receipt::Claim(claim));
        }
        if *step == Step::Sent {
            receipts.apply(Receipt::Outcome { step: number, outcome: Outcome { observation: observation.clone(), artifacts: Vec::new() } });
        }
        if matches!(step, Step::Sent | Step::Unknown) {
            runs.insert(format!("{}/{number}", key()), 1);
        }
        bodies.push(EventBody::Thought(Thought { thought: "So.".to_owned(), tool: name.to_owned() }));
        bodies.push(EventBody::Action(action));
        bodies.push(EventBody::Observation(observation));
    }
    bodies.push(EventBody::Thought(Thought { thought: "So.".to_owned(), tool: "Finish".to_owned() }));
    bodies.push(EventBody::Action(action(0, "Finish")));
    bodies.push(EventBody::Reflection(Reflection::new("Yes.", Verdict::Right)));
    // the second holder begins where the first one was
    bodies.insert(2 + taken_over % (bodies.len() - 2), started(2));
    let mut events = chained(bodies);
    let end = Finished { approved: true, ..Task::fold(&events).unwrap().finish(FinishReason::Approved, "") };
    append(&mut events, EventBody::Finished(end));
    let told = told(&events);
    Run { events, receipts, told, runs }
}

fn started(attempt: u32) -> EventBody {
    EventBody::Started(Started { gateway: format!("gateway-{attempt}"), attempt })
}

fn chained(bodies: Vec<EventBody>) -> Vec<Event> {
    let mut events = Vec::new();
    bodies.into_iter().for_each(|body| append(&mut events, body));
    events
}

/// Adds an event as its writer would, whatever the fold thinks of it.
fn append(events: &mut Vec<Event>, body: EventBody) {
    let index = events.len() as u64 + 1;
    let before = events.last();
    let epoch = match &body {
        EventBody::Started(started) => u64::from(started.attempt),
        _ => before.map_or(0, |event| event.epoch),
    };
    let previous = before.and_then(|event| event.digest);
    let mut event = Event { epoch, previous, sequence: index * 10, ..Event::new(&key(), index, at(index), "gateway", body) };
    event.digest = Some(digest_of(&event));
    events.push(event);
}

fn told(events: &[Event]) -> Vec<TrajectoryEvent> {
    events.iter().map(TrajectoryEvent::from).collect()
}

/// The body of one event replaced, and everything after it made to fit.
fn rewrite(run: &mut Run, place: usize, body: EventBody) {
    let mut bodies: Vec<EventBody> = run.events.iter().map(|event| event.body.clone()).collect();
    bodies[place] = body;
    run.events = chained(bodies);
    run.told = told(&run.events);
}

/// Spoils a run; false where it has nothing of the kind. The client was told what is stored, except
/// where that is what is spoilt.
fn spoil(run: &mut Run, mutation: Mutation, place: usize) -> bool {
    let (length, last) = (run.events.len(), run.events.len() - 1);
    let effects: Vec<String> = run.runs.keys().cloned().collect();
    let find = |run: &Run, wanted: fn(&EventBody) -> bool| {
        let found: Vec<usize> = (0..length).filter(|place| wanted(&run.events[*place].body)).collect();
        (!found.is_empty()).then(|| found[place % found.len()])
    };
    match mutation {
        Mutation::DropEvent => {
            run.events.remove(place % length);
            run.told = told(&run.events);
        }
        Mutation::DuplicateEvent => {
            let place = place % length;
            run.events.insert(place, run.events[place].clone());
            run.told = told(&run.events);
        }
        Mutation::SwapEvents => {
            let place = place % last;
            run.events.swap(place, place + 1);
            run.told = told(&run.events);
        }
        Mutation::Fork => {
            let place = place % length;
            let event = &mut run.events[place];
            event.writer = "another".to_owned();
            event.digest = Some(digest_of(event));
            // the chain says it, and of the last event its client
            if place < last {
                run.told = told(&run.events);
            }
        }
        Mutation::OlderHolder => {
            let Some(second) = run.events.iter().position(|event| event.epoch == 2) else { return false };
            let place = second + 1 + place % (last - second);
            run.events[place].epoch = 1;
            run.told = told(&run.events);
        }
        Mutation::EffectTwice => {
            let Some(effect) = effects.first() else { return false };
            run.runs.insert(effect.clone(), 2);
        }
        Mutation::StrangeEffect => {
            run.runs.insert(format!("{}/99", key()), 1);
        }
        Mutation::NoReceipt => {
            if effects.is_empty() {
                return false;
            }
            run.receipts = Receipts::default();
        }
        Mutation::UnknownNotTold => {
            let unknown = |body: &EventBody| matches!(body, EventBody::Observation(seen) if seen.text == UNKNOWN_OUTCOME);
            let Some(place) = find(run, unknown) else { return false };
            let step = run.events[..place].iter().filter(|event| matches!(event.body, EventBody::Thought(_))).count();
            // what did happen can have been told by the one who ran it, before the receipt was lost
            if run.runs.contains_key(&format!("{}/{step}", key())) {
                return false;
            }
            rewrite(run, place, EventBody::Observation(Observation { text: "It is done.".to_owned(), ..Observation::default() }));
        }
        Mutation::OpenNotTold => {
            let Some(place) = find(run, |body| matches!(body, EventBody::Action(action) if action.tool == "Send")) else { return false };
            run.events.truncate(place + 1);
            let end = Finished { open_effect: None, ..Task::fold(&run.events).unwrap().finish(FinishReason::MaxTime, "") };
            append(&mut run.events, EventBody::Finished(end));
            run.told = told(&run.events);
            // what came later is as if it had not been
            let kept: Vec<u32> =
                (1..).take(run.events.iter().filter(|event| matches!(event.body, EventBody::Thought(_))).count()).collect();
            run.runs.retain(|name, _| kept.iter().any(|step| *name == format!("{}/{step}", key())));
        }
        Mutation::ToldOther => run.told[place % length].writer = "another".to_owned(),
        Mutation::ToldTwice => {
            let place = place % length;
            run.told.insert(place, run.told[place].clone());
        }
        Mutation::ToldLess => drop(run.told.remove(place % length)),
        Mutation::EndsTwice => {
            let end = run.events[last].body.clone();
            append(&mut run.events, end);
            run.told = told(&run.events);
        }
        Mutation::Lost => {
            run.events.pop();
            run.told.pop();
        }
        Mutation::NothingLeft => {
            run.events.clear();
            run.told.clear();
        }
    }
    true
}

fn checked(run: &Run) -> (Vec<String>, Counted) {
    let Run { events, receipts, told, runs } = run.clone();
    let mut counted = Counted::default();
    (check(&History { events, receipts, told }, &runs, &mut counted), counted)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![Just(Step::Read), Just(Step::Sent), Just(Step::Unknown), Just(Step::Nothing)]
}

proptest! {
    #[test]
    fn a_run_as_it_must_be_passes(steps in proptest::collection::vec(step(), 0..6), taken_over in 0_usize..30) {
        let (wrong, counted) = checked(&run(&steps, taken_over));
        prop_assert_eq!(wrong, Vec::<String>::new());
        let unknown = steps.iter().filter(|step| matches!(step, Step::Unknown | Step::Nothing)).count();
        let effects = steps.iter().filter(|step| matches!(step, Step::Sent | Step::Unknown)).count();
        prop_assert_eq!((counted.effects, counted.unknown, counted.take_overs), (effects, unknown, 1));
    }

    #[test]
    fn a_run_that_is_spoilt_anywhere_is_named(
        steps in proptest::collection::vec(step(), 1..6),
        taken_over in 0_usize..30,
        mutation in proptest::sample::select(&MUTATIONS[..]),
        place in any::<usize>(),
    ) {
        let mut run = run(&steps, taken_over);
        if spoil(&mut run, mutation, place) {
            let (wrong, _) = checked(&run);
            prop_assert!(!wrong.is_empty(), "{:?} of {:#?}", mutation, run);
        }
    }
}

#[test]
fn every_way_to_spoil_a_run_is_tried() {
    let steps = [Step::Read, Step::Sent, Step::Unknown, Step::Nothing];
    for mutation in MUTATIONS {
        let mut run = run(&steps, 3);
        assert!(spoil(&mut run, mutation, 5), "{mutation:?}");
        assert!(!checked(&run).0.is_empty(), "{mutation:?} passes");
    }
}

//! What a bus may do to its messages, and gateways to each other: any duplication, loss and
//! reordering of messages, and any take-over, leaves every gateway with a state that the stored
//! history has, and the task still ends.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use crate::common::*;
use autoact_trajectory::*;
use proptest::prelude::*;

/// The stored messages of a task. A message is stored only after the one that its writer names, and
/// nothing else about the bus is to be relied on.
#[derive(Debug, Default)]
struct Bus(Vec<Event>);

impl Bus {
    /// Stores `event` if `after` is still the last sequence; the stored event.
    fn append(&mut self, event: Event, after: u64) -> Option<Event> {
        let last = self.0.len() as u64;
        if after != last {
            return None;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(format!("{event:?}")).to_le_bytes();
        let mut digest = [0; 32];
        digest[..8].copy_from_slice(&hash);
        let stored = Event { sequence: last + 1, digest: Some(Digest(digest)), ..event };
        self.0.push(stored.clone());
        Some(stored)
    }
}

/// What one gateway knows of the task; `None`: nothing, it has just started.
#[derive(Debug, Default)]
struct Gateway {
    name: String,
    task: Option<Task>,
}

impl Gateway {
    /// Takes in a message that came over the bus. One that does not fit is left alone.
    fn hear(&mut self, event: &Event) -> Result<(), FoldError> {
        match &mut self.task {
            None => {
                self.task = Some(Task::begin(event)?);
                Ok(())
            }
            Some(task) => task.apply(event),
        }
    }

    /// Reads the task from its beginning, as whoever takes the lease does.
    fn read(&mut self, bus: &Bus) {
        self.task = Some(Task::fold(&bus.0).unwrap());
    }

    /// Writes what follows by its own knowledge, which may be old.
    fn write(&mut self, bus: &mut Bus, clock: u64, body: EventBody) -> bool {
        let Some(task) = &mut self.task else { return false };
        let event = Event { time: at(clock), ..task.next_event(at(clock), &self.name, body) };
        if task.check(&event).is_err() {
            return false;
        }
        let Some(stored) = bus.append(event, task.last_sequence()) else { return false };
        task.apply(&stored).unwrap();
        true
    }

    /// Does what is next, if it knows of the task; whether that was stored.
    fn act(&mut self, bus: &mut Bus, clock: u64, reply: u8) -> bool {
        let Some(task) = &self.task else { return false };
        let body = match decide(task, at(clock)) {
            Decision::Recall => recalled(&["t-1"]),
            Decision::Plan => thought(["Retrieve", "Send", FINISH, NOT_FOUND][usize::from(reply % 4)]),
            Decision::Parameterize => action(&task.trajectory().open_step().unwrap().tool.clone(), ["a", "b"][usize::from(reply % 2)]),
            Decision::Execute { .. } => {
                EventBody::Observation(task.observe(Observation { text: "it is".into(), ..Observation::default() }))
            }
            Decision::Reflect => reflection(if reply.is_multiple_of(3) { Verdict::Right } else { Verdict::Wrong }),
            Decision::Finish(finished) => EventBody::Finished(finished),
            // no tool here needs a person, and nobody pauses
            Decision::Request(_) | Decision::Observe(_) | Decision::Hold | Decision::Done => return false,
        };
        self.write(bus, clock, body)
    }
}

/// One thing that happens.
#[derive(Debug, Clone)]
enum Move {
    /// A message of the bus reaches a gateway: an old one again, a later one before its turn, or
    /// the next. What is never delivered is lost to it.
    Deliver { to: usize, which: prop::sample::Index },
    /// A gateway goes on, whether it holds the lease or only believes it.
    Act { who: usize, reply: u8 },
    /// A gateway takes the task: it reads all of it, and says so.
    TakeOver { who: usize },
    /// A gateway gives the task back.
    Release { who: usize, may_have_run: bool },
    /// A gateway ends the task on request.
    Cancel { who: usize },
    /// A gateway dies, and starts with nothing.
    Die { who: usize },
}

const GATEWAYS: usize = 3;

fn moves() -> impl Strategy<Value = Move> {
    let who = 0..GATEWAYS;
    prop_oneof![
        8 => (who.clone(), any::<prop::sample::Index>()).prop_map(|(to, which)| Move::Deliver { to, which }),
        8 => (who.clone(), any::<u8>()).prop_map(|(who, reply)| Move::Act { who, reply }),
        3 => who.clone().prop_map(|who| Move::TakeOver { who }),
        2 => (who.clone(), any::<bool>()).prop_map(|(who, may_have_run)| Move::Release { who, may_have_run }),
        1 => who.clone().prop_map(|who| Move::Die { who }),
        1 => who.prop_map(|who| Move::Cancel { who }),
    ]
}

/// A task on the bus, and gateways that know nothing of it yet.
fn begin(conversation: &str) -> (Bus, Vec<Gateway>) {
    let limits = Limits { max_steps: 4, max_reflections: 2, max_tokens: 500, max_time: std::time::Duration::from_secs(10_000) };
    let EventBody::Submitted(first) = submitted_with_not_found(limits) else { unreachable!() };
    let first = Submitted { conversation: conversation.to_owned(), ..first };
    let mut bus = Bus::default();
    bus.append(event(1, EventBody::Submitted(first)), 0).unwrap();
    let gateways = (0..GATEWAYS).map(|at| Gateway { name: format!("gateway-{at}"), task: None }).collect();
    (bus, gateways)
}

fn happens(step: Move, clock: u64, bus: &mut Bus, gateways: &mut [Gateway]) {
    match step {
        Move::Deliver { to, which } => {
            let before = gateways[to].task.clone();
            if gateways[to].hear(which.get(&bus.0)).is_err() {
                assert_eq!(gateways[to].task, before, "a message that does not fit changed what a gateway knows");
            }
        }
        Move::Act { who, reply } => {
            gateways[who].act(bus, clock, reply);
        }
        Move::TakeOver { who } => {
            gateways[who].read(bus);
            let attempt = gateways[who].task.as_ref().unwrap().attempt() + 1;
            gateways[who].write(bus, clock, started(attempt));
        }
        Move::Release { who, may_have_run } => {
            let body = EventBody::Released(Released { reason: ReleaseReason::Waiting, detail: String::new(), may_have_run });
            gateways[who].write(bus, clock, body);
        }
        Move::Cancel { who } => {
            if let Some(task) = &gateways[who].task {
                let body = EventBody::Finished(task.finish(FinishReason::Cancelled, ""));
                gateways[who].write(bus, clock, body);
            }
        }
        Move::Die { who } => gateways[who].task = None,
    }
}

proptest! {
    #[test]
    fn whatever_the_bus_does_every_state_is_one_of_the_history(
        moves in prop::collection::vec(moves(), 1..120),
        conversation in "(c-1)?",
    ) {
        let (mut bus, mut gateways) = begin(&conversation);
        let mut attempts = 0;
        for (clock, step) in (10..).zip(moves) {
            happens(step, clock, &mut bus, &mut gateways);
            // nobody's history has a gap, a fork or a message that was refused
            for gateway in &gateways {
                let Some(task) = &gateway.task else { continue };
                let known = usize::try_from(task.next_index()).unwrap() - 1;
                prop_assert_eq!(&Task::fold(&bus.0[..known]).unwrap(), task);
            }
            let whole = Task::fold(&bus.0).unwrap();
            // a later holder is never taken for an earlier one
            prop_assert!(whole.attempt() >= attempts);
            attempts = whole.attempt();
            let ends = bus.0.iter().filter(|event| matches!(event.body, EventBody::Finished(_))).count();
            prop_assert!(ends <= 1 && (ends == 0 || whole.finished().is_some()));
            for (event, next) in bus.0.iter().zip(&bus.0[1..]) {
                prop_assert_eq!((next.index, next.previous), (event.index + 1, event.digest));
            }
        }
        // whoever comes last finds a task that can be brought to its end
        let last = &mut gateways[0];
        last.read(&bus);
        if last.task.as_ref().unwrap().finished().is_none() {
            prop_assert!(last.write(&mut bus, 1000, started(attempts + 1)));
        }
        for clock in 1001..1100 {
            last.act(&mut bus, clock, 2);
        }
        let whole = Task::fold(&bus.0).unwrap();
        prop_assert!(whole.finished().is_some(), "it goes on for ever: {:?}", decide(&whole, at(1100)));
        prop_assert_eq!(decide(&whole, at(1100)), Decision::Done);
        prop_assert!(whole.steps() <= whole.limits().max_steps);
    }

    /// The same messages in any order, any number of times: what is heard until nothing new comes is
    /// the whole history.
    #[test]
    fn a_reader_that_asks_again_reads_the_same(replies in prop::collection::vec(any::<u8>(), 1..30), order in prop::collection::vec(any::<prop::sample::Index>(), 0..200)) {
        let (mut bus, mut gateways) = begin("");
        gateways[0].read(&bus);
        gateways[0].write(&mut bus, 10, started(1));
        for (clock, reply) in (11..).zip(replies) {
            gateways[0].act(&mut bus, clock, reply);
        }
        let reader = &mut gateways[1];
        for which in order {
            let _ = reader.hear(which.get(&bus.0));
        }
        // what it lacks comes again, by its sequence
        let known = reader.task.as_ref().map_or(0, |task| usize::try_from(task.last_sequence()).unwrap());
        for event in &bus.0[known..] {
            reader.hear(event).unwrap();
        }
        prop_assert_eq!(&gateways[0].task, &gateways[1].task);
    }
}

//! The decisions of an audit against generated histories: nothing is found in a whole one, and any
//! single change is found, with the right task.

use std::time::{Duration, SystemTime};

use autoact_bus::{Audit, Kind, Message, Report};
use autoact_trajectory::{Digest, Event, EventBody, FinishReason, Finished, Started, Submitted, TaskKey, Thought};
use autoact_wire::store::{IndexEntry, IndexMark, IndexRecord, Mark, PurgeReason, digest, encode};
use proptest::prelude::*;
use proptest::sample::Index;

/// A message of a stream.
#[derive(Debug, Clone)]
struct Stored {
    sequence: u64,
    task: Option<TaskKey>,
    subject: String,
    payload: Vec<u8>,
    id: String,
    sha256: String,
}

impl Stored {
    fn message(&self) -> Message<'_> {
        Message { sequence: self.sequence, subject: &self.subject, payload: &self.payload, id: Some(&self.id), sha256: Some(&self.sha256) }
    }
}

/// What a bus holds.
#[derive(Debug, Clone, Default)]
struct World {
    events: Vec<Stored>,
    index: Vec<Stored>,
    queue: Vec<TaskKey>,
    /// The last event of each task, as a backup knows it.
    backup: Vec<(TaskKey, u64, Digest)>,
    last_record: Option<Digest>,
    /// Whether the audit is given the backup.
    with_backup: bool,
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    Ended,
    Purged,
    CutOff,
}

fn task(number: usize) -> TaskKey {
    let tenant = if number % 3 == 2 { "acme" } else { "default" };
    TaskKey::new(tenant.parse().unwrap(), format!("t-{number}").parse().unwrap())
}

fn at(second: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second)
}

fn body(index: u64, last: bool) -> EventBody {
    match (index, last) {
        (1, _) => EventBody::Submitted(Submitted { question: "q".into(), ..Submitted::default() }),
        (2, _) => EventBody::Started(Started { gateway: "g".into(), attempt: 1 }),
        (_, true) => EventBody::Finished(Finished {
            answer: "42".into(),
            approved: true,
            reason: FinishReason::Approved,
            detail: String::new(),
            citations: Vec::new(),
            open_effect: None,
            by: String::new(),
        }),
        (_, false) => EventBody::Thought(Thought { thought: format!("thought {index}"), tool: "Search".into() }),
    }
}

impl World {
    fn record(&mut self, task: &TaskKey, entry: IndexEntry) {
        let previous = self.index.last().map(|last| digest(&last.payload));
        let payload = IndexRecord { task: task.clone(), time: at(self.index.len() as u64), previous, entry }.encode();
        let subject = format!("autoact.{}.index.{}", task.tenant, task.id);
        self.push_record(Some(task.clone()), subject, payload);
    }

    fn push_record(&mut self, task: Option<TaskKey>, subject: String, payload: Vec<u8>) {
        let (sequence, sha256) = (self.index.len() as u64 + 1, digest(&payload));
        self.index.push(Stored { sequence, task, subject, payload, id: "x".into(), sha256: sha256.to_string() });
    }

    /// Stores the task's next event; the one before it is looked up.
    fn append(&mut self, task: &TaskKey, last: bool) {
        let before = self.events.iter().rev().find(|stored| stored.task.as_ref() == Some(task));
        let index = self.events.iter().filter(|stored| stored.task.as_ref() == Some(task)).count() as u64 + 1;
        let previous = before.map(|before| digest(&before.payload));
        let epoch = u64::from(index > 1);
        let event = Event { previous, epoch, ..Event::new(task, index, at(self.events.len() as u64), "g", body(index, last)) };
        let payload = encode(&event).unwrap();
        let (sequence, hash) = (self.events.len() as u64 + 1, digest(&payload));
        self.events.push(Stored {
            sequence,
            task: Some(task.clone()),
            subject: format!("autoact.{}.traj.{}", task.tenant, task.id),
            id: format!("{task}-{index}-{hash}"),
            payload,
            sha256: String::new(),
        });
    }

    /// Tasks with their numbers of events, their events mixed.
    fn build(tasks: &[(u64, Fate)], order: &[Index]) -> World {
        let mut world = World::default();
        let mut open: Vec<(usize, u64)> = Vec::new();
        for (number, (_, fate)) in tasks.iter().enumerate() {
            world.record(&task(number), IndexEntry::Submitted);
            if *fate != Fate::CutOff {
                world.append(&task(number), false);
                world.queue.push(task(number));
                open.push((number, 1));
            }
        }
        let mut order = order.iter().cycle();
        while !open.is_empty() {
            let at = order.next().map_or(0, |place| place.index(open.len()));
            let (number, stored) = open[at];
            let (events, fate) = tasks[number];
            let key = task(number);
            let ends = fate != Fate::Runs && stored + 1 == events;
            world.append(&key, ends);
            open[at].1 += 1;
            if stored + 1 < events {
                continue;
            }
            open.remove(at);
            if ends {
                let hash = digest(&world.events.last().unwrap().payload);
                world.record(&key, IndexEntry::Ended { index: events, hash: Some(hash) });
                world.queue.retain(|queued| *queued != key);
            }
        }
        for (number, (events, fate)) in tasks.iter().enumerate() {
            let key = task(number);
            match fate {
                Fate::Purged => {
                    world.record(&key, IndexEntry::Purged(PurgeReason::Age));
                    world.events.retain(|stored| stored.task.as_ref() != Some(&key));
                }
                Fate::CutOff => {}
                Fate::Runs | Fate::Ended => {
                    let last = world.events.iter().rev().find(|stored| stored.task.as_ref() == Some(&key)).unwrap();
                    world.backup.push((key, *events, digest(&last.payload)));
                }
            }
        }
        world.last_record = world.index.last().map(|last| digest(&last.payload));
        world
    }

    fn audit(&self) -> Report {
        let mut audit = Audit::new(None);
        if self.with_backup {
            for (task, index, hash) in &self.backup {
                audit.known(task, *index, Some(*hash));
            }
            audit.known_record(self.last_record.unwrap());
        }
        self.index.iter().for_each(|record| audit.record(&record.message()));
        self.events.iter().for_each(|event| {
            audit.event(&event.message());
        });
        audit.events_read();
        self.queue.iter().for_each(|task| audit.queued(task));
        audit.finish(at(1_000_000))
    }

    fn names(&self, task: &TaskKey) -> bool {
        self.audit().findings.iter().any(|finding| finding.task.as_ref() == Some(task))
    }
}

fn worlds() -> impl Strategy<Value = World> {
    let fate = prop_oneof![3 => Just(Fate::Ended), 2 => Just(Fate::Runs), 1 => Just(Fate::Purged), 1 => Just(Fate::CutOff)];
    let tasks = proptest::collection::vec((3u64..8, fate), 1..7);
    (tasks, proptest::collection::vec(any::<Index>(), 1..20), any::<bool>())
        .prop_map(|(tasks, order, with_backup)| World { with_backup, ..World::build(&tasks, &order) })
}

/// The index of an event in its task, by its id.
fn index_of(stored: &Stored) -> u64 {
    stored.id.rsplit('-').nth(1).unwrap().parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_whole_history_has_no_findings(world in worlds()) {
        let report = world.audit();
        prop_assert_eq!(report.findings, vec![]);
        prop_assert_eq!(report.events, world.events.len() as u64);
    }

    #[test]
    fn one_flipped_bit_of_an_event_is_named(world in worlds(), which: Index, byte: Index, bit in 0u8..8) {
        prop_assume!(!world.events.is_empty());
        let mut world = world;
        let at = which.index(world.events.len());
        let stored = &mut world.events[at];
        let byte = byte.index(stored.payload.len());
        stored.payload[byte] ^= 1 << bit;
        let (task, index) = (stored.task.clone(), index_of(stored));
        let findings = world.audit().findings;
        let named = findings.iter().any(|finding| finding.task == task && finding.index == Some(index) && finding.kind == Kind::Changed);
        prop_assert!(named, "{findings:?}");
    }

    #[test]
    fn one_flipped_bit_of_an_event_stored_without_a_digest_is_named(world in worlds(), which: Index, byte: Index, bit in 0u8..8) {
        let mut world = world;
        world.events.iter_mut().for_each(|stored| stored.id = "moved".into());
        // the last event of a task that runs is known to nobody else but a backup
        world.with_backup = true;
        prop_assume!(!world.events.is_empty());
        let at = which.index(world.events.len());
        let stored = &mut world.events[at];
        let byte = byte.index(stored.payload.len());
        stored.payload[byte] ^= 1 << bit;
        let task = stored.task.clone().unwrap();
        prop_assert!(world.names(&task), "{:?}", world.audit().findings);
    }

    #[test]
    fn one_flipped_bit_of_the_index_is_named(world in worlds(), which: Index, byte: Index, bit in 0u8..8) {
        let mut world = world;
        let at = which.index(world.index.len());
        let stored = &mut world.index[at];
        let byte = byte.index(stored.payload.len());
        stored.payload[byte] ^= 1 << bit;
        let task = stored.task.clone().unwrap();
        // what was removed is not judged by its events, but its record is
        prop_assert!(world.names(&task), "{:?}", world.audit().findings);
    }

    #[test]
    fn a_deleted_event_is_named(world in worlds(), which: Index) {
        prop_assume!(!world.events.is_empty());
        let mut world = World { with_backup: true, ..world };
        let deleted = world.events.remove(which.index(world.events.len()));
        let (task, index) = (deleted.task.clone(), index_of(&deleted));
        let findings = world.audit().findings;
        let named = findings.iter().any(|finding| finding.task == task && finding.index == Some(index));
        prop_assert!(named, "{findings:?}");
    }

    #[test]
    fn a_dropped_tail_is_named(world in worlds(), keep: Index) {
        prop_assume!(!world.events.is_empty());
        let mut world = World { with_backup: true, ..world };
        let dropped = world.events.split_off(keep.index(world.events.len()));
        for event in &dropped {
            prop_assert!(world.names(event.task.as_ref().unwrap()), "{:?}", world.audit().findings);
        }
    }

    #[test]
    fn two_swapped_events_are_named(world in worlds(), one: Index, other: Index) {
        prop_assume!(world.events.len() > 1);
        let mut world = world;
        let (one, other) = (one.index(world.events.len()), other.index(world.events.len()));
        prop_assume!(one != other && world.events[one].task == world.events[other].task);
        world.events.swap(one, other);
        let task = world.events[one].task.clone().unwrap();
        prop_assert!(world.names(&task), "{:?}", world.audit().findings);
    }

    #[test]
    fn contents_swapped_between_tasks_are_named(world in worlds(), one: Index, other: Index) {
        prop_assume!(world.events.len() > 1);
        let mut world = world;
        let (one, other) = (one.index(world.events.len()), other.index(world.events.len()));
        prop_assume!(world.events[one].task != world.events[other].task);
        let (first, second) = (world.events[one].clone(), world.events[other].clone());
        (world.events[one].payload, world.events[one].id) = (second.payload, second.id);
        (world.events[other].payload, world.events[other].id) = (first.payload, first.id);
        for at in [one, other] {
            let task = world.events[at].task.clone().unwrap();
            prop_assert!(world.names(&task), "{:?}", world.audit().findings);
        }
    }

    #[test]
    fn a_repeated_event_is_named(world in worlds(), which: Index, place: Index) {
        prop_assume!(!world.events.is_empty());
        let mut world = world;
        let from = which.index(world.events.len());
        let repeated = world.events[from].clone();
        let task = repeated.task.clone().unwrap();
        // anywhere after itself
        let at = from + 1 + place.index(world.events.len() - from);
        world.events.insert(at, repeated);
        prop_assert!(world.names(&task), "{:?}", world.audit().findings);
    }

    #[test]
    fn a_removed_task_is_named(world in worlds(), which: Index) {
        prop_assume!(!world.events.is_empty());
        let mut world = world;
        let task = world.events[which.index(world.events.len())].task.clone().unwrap();
        world.events.retain(|event| event.task.as_ref() != Some(&task));
        let findings = world.audit().findings;
        let named = findings.iter().any(|finding| finding.task.as_ref() == Some(&task) && finding.kind == Kind::TaskMissing);
        prop_assert!(named, "{findings:?}");
    }

    #[test]
    fn a_deleted_record_of_the_index_is_found(world in worlds(), which: Index, renumbered: bool) {
        let mut world = World { with_backup: true, ..world };
        let at = which.index(world.index.len());
        let deleted = world.index.remove(at);
        if renumbered {
            world.index.iter_mut().skip(at).for_each(|record| record.sequence -= 1);
        }
        let report = world.audit();
        prop_assert!(!report.findings.is_empty(), "{deleted:?}");
    }

    #[test]
    fn a_swapped_or_repeated_record_of_the_index_is_named(world in worlds(), one: Index, other: Index, swap: bool) {
        prop_assume!(world.index.len() > 1);
        let mut world = world;
        let (one, other) = (one.index(world.index.len()), other.index(world.index.len()));
        prop_assume!(one != other);
        if swap {
            world.index.swap(one, other);
        } else {
            let copy = world.index[one].clone();
            world.index.insert(other.max(one) + 1, copy);
        }
        world.index.iter_mut().zip(1..).for_each(|(record, sequence)| record.sequence = sequence);
        let task = world.index[one.max(other) + usize::from(!swap)].task.clone().unwrap();
        prop_assert!(world.names(&task), "{:?}", world.audit().findings);
    }
}

#[test]
fn what_retention_and_deletion_recorded_is_no_finding() {
    let ended = [(4, Fate::Ended), (4, Fate::Purged), (5, Fate::Runs)];
    let mut world = World::build(&ended, &[]);
    // an index whose older half was removed
    let previous = world.index.last().map(|last| digest(&last.payload));
    let cut = IndexRecord::decode(&world.index[2].payload).unwrap().previous;
    let payload = IndexMark { time: at(9), previous, mark: Mark::Trimmed { previous: cut } }.encode();
    world.push_record(None, "autoact.=.index.=".into(), payload);
    let missing = world.index.drain(..2).map(|record| record.task.unwrap()).collect::<Vec<_>>();
    assert_eq!(missing, [task(0), task(1)]);
    assert_eq!(world.audit().findings, []);
    // the same without the record that says so
    world.index.pop();
    assert!(world.audit().findings.iter().any(|finding| finding.kind == Kind::IndexHeadMissing));
}

#[test]
fn a_task_that_nobody_goes_on_with_is_named() {
    let mut world = World::build(&[(4, Fate::Runs)], &[]);
    world.queue.clear();
    let kinds: Vec<Kind> = world.audit().findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [Kind::NotQueued]);
}

#[test]
fn events_whose_end_was_recorded_meanwhile_are_no_finding() {
    let world = World::build(&[(4, Fate::Ended), (4, Fate::Ended)], &[]);
    let mut audit = Audit::new(None);
    let (before, meanwhile) = world.index.split_at(2);
    before.iter().for_each(|record| audit.record(&record.message()));
    // the last event of each came later than those that were read
    world.events.iter().filter(|event| index_of(event) < 4).for_each(|event| {
        audit.event(&event.message());
    });
    audit.events_read();
    meanwhile.iter().for_each(|record| audit.record(&record.message()));
    assert_eq!(audit.finish(at(1_000_000)).findings, []);
}

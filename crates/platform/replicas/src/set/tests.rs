use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

fn options() -> Options {
    Options { failures: 3, retry_share: 0.2, connection_age: Duration::from_secs(300) }
}

fn address(number: u8) -> Address {
    Address { target: 0, socket: SocketAddr::from(([10, 0, 0, number], 7401)), reserve: false }
}

fn addresses(count: u8) -> Vec<Address> {
    (1..=count).map(address).collect()
}

fn set(count: u8) -> (Set, Instant) {
    let now = Instant::now();
    let mut set = Set::new(options(), 7, now);
    assert_eq!(set.update(&addresses(count), now).added.len(), usize::from(count));
    (set, now)
}

/// A call that is answered at once.
fn call(set: &mut Set, key: u64, now: Instant) -> Id {
    let id = set.choose(key, &[], now).unwrap().id;
    set.ended(id, Outcome::Answered, now);
    id
}

fn open(set: &mut Set, id: Id, now: Instant) {
    for _ in 0..3 {
        set.ended(id, Outcome::Failed, now);
    }
    assert_eq!(set.views().find(|view| view.id == id).unwrap().state, State::Open);
}

fn state(set: &Set, id: Id) -> State {
    set.views().find(|view| view.id == id).unwrap().state
}

proptest! {
    /// 300 tasks of 1 to 8 calls, some of them at a time, on three replicas: each gets 25 to 42% of
    /// the calls, whatever the tasks are called.
    #[test]
    fn calls_are_shared(seed: u64, at_a_time in 1usize..40) {
        let (mut set, now) = set(3);
        let mut random = SplitMix64::new(seed);
        let mut tasks: Vec<(u64, u32)> = (0..300).map(|_| (random.next_u64(), 4 + u32::try_from(random.below(3)).unwrap())).collect();
        let mut shares: HashMap<Id, u32> = HashMap::new();
        let mut running: Vec<Id> = Vec::new();
        let (mut calls, mut moved) = (0u32, 0u32);
        let mut homes: HashMap<u64, Id> = HashMap::new();
        while !tasks.is_empty() {
            let next = random.below(tasks.len().min(at_a_time));
            let (key, left) = &mut tasks[next];
            let id = set.choose(*key, &[], now).unwrap().id;
            moved += u32::from(homes.insert(*key, id).is_some_and(|home| home != id));
            running.push(id);
            *shares.entry(id).or_default() += 1;
            calls += 1;
            *left -= 1;
            if *left == 0 {
                tasks.swap_remove(next);
            }
            if running.len() >= at_a_time {
                let id = running.swap_remove(random.below(running.len()));
                set.ended(id, Outcome::Answered, now);
            }
        }
        for share in shares.values() {
            prop_assert!(100 * share >= 25 * calls && 100 * share <= 42 * calls, "{share} of {calls}");
        }
        prop_assert_eq!(shares.len(), 3);
        prop_assert!(20 * moved <= calls, "affinity: {moved} of {calls} calls moved");
    }

    /// A replica that goes takes its own keys with it, and no others move; one that comes moves none
    /// of those that have a home.
    #[test]
    fn only_the_keys_of_what_goes_move(seed: u64, count in 2u8..8, gone in 0usize..8) {
        let (mut set, now) = set(count);
        let mut random = SplitMix64::new(seed);
        let keys: Vec<u64> = (0..200).map(|_| random.next_u64()).collect();
        let before: Vec<Id> = keys.iter().map(|key| call(&mut set, *key, now)).collect();
        let mut left = addresses(count);
        let gone = left.remove(gone % usize::from(count));
        let removed = set.update(&left, now).removed;
        prop_assert_eq!((removed.len(), removed[0].address), (1, gone));
        let after: Vec<Id> = keys.iter().map(|key| call(&mut set, *key, now)).collect();
        for (before, after) in before.iter().zip(&after) {
            prop_assert_eq!(before != after, *before == removed[0].id);
        }
        set.update(&addresses(count), now);
        let again: Vec<Id> = keys.iter().map(|key| call(&mut set, *key, now)).collect();
        prop_assert_eq!(&again, &after);
        // and what is new finds it
        let fresh: Vec<Id> = (0..400).map(|_| call(&mut set, random.next_u64(), now)).collect();
        let share = fresh.iter().filter(|id| !after.contains(id)).count();
        prop_assert!(share * usize::from(count) >= 400 / 2, "{share} of 400 on one of {count}");
    }

    /// Gateways that know nothing of each other choose the same for most keys, and a replica that
    /// goes moves its share alone.
    #[test]
    fn the_first_choice_is_the_keys_own(seed: u64) {
        let mut random = SplitMix64::new(seed);
        let keys: Vec<u64> = (0..300).map(|_| random.next_u64()).collect();
        let first = |count: u8| {
            keys.iter().map(|key| {
                let (mut set, now) = set(count);
                set.choose(*key, &[], now).unwrap().address.socket
            }).collect::<Vec<_>>()
        };
        let (four, three) = (first(4), first(3));
        prop_assert!(four.iter().zip(&three).all(|(four, three)| four == three || *four == address(4).socket));
    }

    /// Whatever happens: an open replica gets no call while a closed one is there, the outstanding
    /// calls are counted right, and the budget is kept.
    #[test]
    fn any_order_of_events_is_legal(events in prop::collection::vec((0u8..8, any::<u64>()), 0..300)) {
        let (mut set, mut now) = set(4);
        let mut running: Vec<Id> = Vec::new();
        let (mut calls, mut repeated) = (0u32, 0u32);
        for (event, number) in events {
            match event {
                0..=2 => {
                    let choice = set.choose(number % 20, &[], now).unwrap();
                    calls += 1;
                    let closed = set.views().any(|view| view.state == State::Closed);
                    prop_assert!(!closed || state(&set, choice.id) == State::Closed);
                    running.push(choice.id);
                }
                3 | 4 if !running.is_empty() => {
                    let index = usize::try_from(number).unwrap() % running.len();
                    let id = running.swap_remove(index);
                    let tried = [id];
                    set.ended(id, if event == 3 { Outcome::Failed } else { Outcome::Answered }, now);
                    if event == 3 && set.may_move(&tried) {
                        repeated += 1;
                        let choice = set.choose(number % 20, &tried, now).unwrap();
                        prop_assert!(choice.id != id && state(&set, choice.id) == State::Closed);
                        running.push(choice.id);
                    }
                }
                5 => {
                    now += Duration::from_millis(number % 4000);
                    for view in set.probes(now) {
                        set.probed(view.id, number % 2 == 0, now);
                    }
                }
                6 => {
                    let some = addresses(4).into_iter().enumerate().filter(|(index, _)| number >> index & 1 == 1);
                    let some: Vec<Address> = some.map(|(_, address)| address).collect();
                    let some = if some.is_empty() { addresses(1) } else { some };
                    let removed = set.update(&some, now).removed;
                    running.retain(|id| removed.iter().all(|view| view.id != *id));
                }
                _ => {
                    if let Some(id) = running.pop() {
                        set.dropped(id);
                    }
                }
            }
            let outstanding: u32 = set.views().map(|view| view.outstanding).sum();
            prop_assert_eq!(outstanding as usize, running.len());
            prop_assert!(5 * repeated <= 5 * BURST + calls);
        }
    }
}

#[test]
fn a_key_stays_until_its_replica_is_overloaded() {
    let (mut set, now) = set(3);
    let home = set.choose(1, &[], now).unwrap().id;
    for _ in 1..FEW_CALLS {
        assert_eq!(set.choose(1, &[], now).unwrap().id, home);
    }
    let other = set.choose(1, &[], now).unwrap().id;
    assert_ne!(other, home);
    assert_eq!(set.choose(1, &[], now).unwrap().id, other, "its prompts are there now");
}

#[test]
fn what_was_tried_is_tried_last_and_open_ones_after_it() {
    let (mut set, now) = set(3);
    let first = set.choose(1, &[], now).unwrap().id;
    let second = set.choose(1, &[first], now).unwrap().id;
    let third = set.choose(1, &[first, second], now).unwrap().id;
    assert!(first != second && second != third && first != third);
    assert!(!set.all_tried(&[first, second]) && set.all_tried(&[first, second, third]));
    open(&mut set, third, now);
    assert!(set.may_move(&[first]));
    assert!(!set.may_move(&[first, second]), "the third is open");
    assert_ne!(set.choose(1, &[first, second], now).unwrap().id, third);
    open(&mut set, first, now);
    open(&mut set, second, now);
    assert_eq!(set.choose(1, &[first, second], now).unwrap().id, third, "nothing else is left");
}

#[test]
fn an_open_replica_comes_back_by_a_probe() {
    let (mut set, now) = set(2);
    let id = set.choose(1, &[], now).unwrap().id;
    open(&mut set, id, now);
    assert!(set.probes(now).is_empty());
    let due = set.next_probe().unwrap();
    assert_eq!(set.probes(due).len(), 1);
    assert!(set.probes(due).is_empty(), "one probe at a time");
    assert_eq!(set.probed(id, false, due), None);
    let due = set.next_probe().unwrap();
    assert_eq!(set.probes(due).len(), 1);
    assert_eq!(set.probed(id, true, due).map(|view| view.state), Some(State::Closed));
    assert_eq!(set.next_probe(), None);
}

#[test]
fn reserves_are_called_when_nothing_else_is_left() {
    let now = Instant::now();
    let mut set = Set::new(options(), 7, now);
    let reserve = Address { reserve: true, ..address(2) };
    set.update(&[address(1), reserve], now);
    let (first, second) = (set.views().next().unwrap().id, set.views().nth(1).unwrap().id);
    assert!((0..50).all(|key| call(&mut set, key, now) == first));
    open(&mut set, first, now);
    assert!((0..50).all(|key| call(&mut set, key, now) == second));
}

#[test]
fn connections_are_renewed_with_jitter() {
    let (mut set, now) = set(1);
    assert!(!set.choose(1, &[], now).unwrap().renew);
    assert!(!set.choose(1, &[], now + Duration::from_secs(149)).unwrap().renew);
    let later = now + Duration::from_secs(300);
    assert!(set.choose(1, &[], later).unwrap().renew);
    assert!(!set.choose(1, &[], later).unwrap().renew, "once");
}

#[test]
fn slots_are_used_again_and_have_a_bound() {
    let (mut set, now) = set(3);
    set.update(&[address(1), address(3)], now);
    let added = set.update(&[address(1), address(3), address(9)], now).added;
    assert_eq!((added.len(), added[0].slot), (1, 1));
    let many: Vec<Address> = (0..=200).map(address).collect();
    let changes = set.update(&many, now);
    assert_eq!((set.views().count(), changes.left_out), (MAX_REPLICAS, 201 - MAX_REPLICAS));
    assert!(set.views().all(|view| view.slot < MAX_REPLICAS));
}

#[test]
fn an_empty_set_chooses_nothing() {
    let (mut set, now) = set(1);
    set.update(&[], now);
    assert_eq!(set.choose(1, &[], now), None);
    assert!(!set.may_move(&[]) && set.all_tried(&[]));
}

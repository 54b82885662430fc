//! The replicas of one service and the choice among them. Plain code without clocks, sockets or
//! tasks: whoever calls it says what time it is.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use autoact_base::random::{SplitMix64, mix, stable_hash};

use crate::breaker::{Breaker, Outcome, State, jittered};
use crate::budget::Budget;
use crate::homes::Homes;

/// The most replicas of a set; what is beyond is not called.
pub const MAX_REPLICAS: usize = 64;
/// Repetitions that are allowed whatever the share: what a set's first calls may need.
const BURST: u32 = 20;
/// How many more calls than the mean one replica may have: above it, calls go elsewhere.
const MOST_CALLS: f64 = 2.0;
/// Calls that a replica may always have: it answers several at once.
const FEW_CALLS: u32 = 8;
/// How many more new keys than the mean one replica may get.
const MOST_KEYS: f64 = 1.1;

/// One broken connection may be chance; a replica that is down fails these within a moment.
const FAILURES: u32 = 3;
/// Enough for what runs on a replica that dies, and too little to double a load.
const RETRY_SHARE: f64 = 0.2;
/// Behind a name with one address, a new pod gets traffic after this long.
const CONNECTION_AGE: Duration = Duration::from_secs(5 * 60);

/// A replica of a set, for as long as it is in it; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

/// Where a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// Which of the configured names it was resolved from.
    pub target: usize,
    /// Its address; two replicas have never the same.
    pub socket: SocketAddr,
    /// Called only while no other is there: another address of the same machines.
    pub reserve: bool,
}

/// What the choice depends on.
#[derive(Debug, Clone)]
pub struct Options {
    /// Failures in a row after which a replica is left alone.
    pub failures: u32,
    /// Calls that may be repeated elsewhere at once, as a share of all (0 to 1).
    pub retry_share: f64,
    /// How long a connection is used; then a new one is made. Half of it at least.
    pub connection_age: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { failures: FAILURES, retry_share: RETRY_SHARE, connection_age: CONNECTION_AGE }
    }
}

/// One replica.
#[derive(Debug)]
struct Replica {
    id: Id,
    /// A small number that is used again: a label of metrics.
    slot: usize,
    address: Address,
    /// Of its address.
    hash: u64,
    breaker: Breaker,
    outstanding: u32,
    /// Keys that came here since the set changed.
    keys: u32,
    /// When its connection is to be a new one.
    renew: Instant,
}

/// A chosen replica. Every choice is followed by [`Set::ended`] or [`Set::dropped`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// Which one.
    pub id: Id,
    /// Its small number.
    pub slot: usize,
    /// Where it is.
    pub address: Address,
    /// Its connection is old: this call takes a new one.
    pub renew: bool,
}

/// A replica as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Which one.
    pub id: Id,
    /// Its small number.
    pub slot: usize,
    /// Where it is.
    pub address: Address,
    /// Whether it is called.
    pub state: State,
    /// Calls that have not ended.
    pub outstanding: u32,
}

/// What [`Set::update`] changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// New replicas.
    pub added: Vec<View>,
    /// Those that are gone. Their calls may still run.
    pub removed: Vec<View>,
    /// Addresses beyond [`MAX_REPLICAS`].
    pub left_out: usize,
}

/// The replicas of one service.
#[derive(Debug)]
pub struct Set {
    options: Options,
    replicas: Vec<Replica>,
    homes: Homes,
    budget: Budget,
    random: SplitMix64,
    last_id: u64,
}

impl Set {
    /// An empty set. The seed decides about jitter alone.
    pub fn new(options: Options, seed: u64, now: Instant) -> Set {
        let budget = Budget::new(options.retry_share, BURST);
        Set { options, replicas: Vec::new(), homes: Homes::new(now), budget, random: SplitMix64::new(seed), last_id: 0 }
    }

    /// From now on these are the replicas. Those that were there before stay as they are.
    pub fn update(&mut self, addresses: &[Address], now: Instant) -> Changes {
        let mut changes = Changes::default();
        let stays = |replica: &Replica| addresses.iter().any(|address| address.socket == replica.address.socket);
        changes.removed = self.replicas.iter().filter(|replica| !stays(replica)).map(Replica::view).collect();
        self.replicas.retain(stays);
        for address in addresses {
            if self.replicas.iter().any(|replica| replica.address.socket == address.socket) {
                continue;
            }
            let Some(slot) = (0..MAX_REPLICAS).find(|slot| self.replicas.iter().all(|replica| replica.slot != *slot)) else {
                changes.left_out += 1;
                continue;
            };
            self.last_id += 1;
            let replica = Replica {
                id: Id(self.last_id),
                slot,
                address: *address,
                hash: stable_hash(&address.socket.to_string()),
                breaker: Breaker::new(self.options.failures, now),
                outstanding: 0,
                keys: 0,
                renew: now + jittered(self.options.connection_age, &mut self.random),
            };
            changes.added.push(replica.view());
            self.replicas.push(replica);
        }
        if !changes.added.is_empty() || !changes.removed.is_empty() {
            self.count_keys_anew();
        }
        changes
    }

    /// Chooses a replica for a call of `key`, and counts the call.
    ///
    /// The one that the key went to last, while its breaker is closed and it is not overloaded.
    /// Else the first of the key's own order (rendezvous hashing) that is neither, and that did not
    /// get more keys than the others. One of `tried` is chosen, or one whose breaker is open, only
    /// if there is no other. `None`: the set is empty.
    pub fn choose(&mut self, key: u64, tried: &[Id], now: Instant) -> Option<Choice> {
        let open = |replica: &Replica| replica.breaker.state() != State::Closed;
        let worth = |replica: &Replica| (open(replica), tried.contains(&replica.id), replica.address.reserve);
        let best = self.replicas.iter().map(worth).min()?;
        let mut among: Vec<usize> = (0..self.replicas.len()).filter(|index| worth(&self.replicas[*index]) == best).collect();
        among.sort_by_key(|index| std::cmp::Reverse(mix(self.replicas[*index].hash ^ key)));

        let sum = |count: fn(&Replica) -> u32| among.iter().map(|index| count(&self.replicas[*index])).sum::<u32>();
        let (calls, keys) = (sum(|replica| replica.outstanding), sum(|replica| replica.keys));
        let most_calls = bound(MOST_CALLS, calls, among.len()).max(FEW_CALLS);
        let most_keys = bound(MOST_KEYS, keys, among.len());
        let has_room = |index: &usize| self.replicas[*index].outstanding < most_calls;
        let few_keys = |index: &usize| self.replicas[*index].keys < most_keys;

        let last = self.homes.of(key);
        let home = among.iter().copied().find(|index| Some(self.replicas[*index].id) == last);
        let index = home
            .filter(has_room)
            .or_else(|| among.iter().copied().find(|index| has_room(index) && few_keys(index)))
            .or_else(|| among.iter().copied().find(has_room))
            // unreachable: not all can be above the mean
            .or_else(|| among.first().copied())?;

        let replica = &mut self.replicas[index];
        replica.outstanding += 1;
        if last != Some(replica.id) {
            replica.keys += 1;
        }
        let renew = now >= replica.renew;
        if renew {
            replica.renew = now + jittered(self.options.connection_age, &mut self.random);
        }
        self.homes.set(key, replica.id, now);
        if tried.is_empty() {
            self.budget.called();
        }
        Some(Choice { id: replica.id, slot: replica.slot, address: replica.address, renew })
    }

    /// Whether a call that failed on `tried` may be made on another replica at once: there is one
    /// whose breaker is closed, and the budget allows it. Then the repetition is counted.
    pub fn may_move(&mut self, tried: &[Id]) -> bool {
        let other = |replica: &Replica| replica.breaker.state() == State::Closed && !tried.contains(&replica.id);
        self.replicas.iter().any(other) && self.budget.take()
    }

    /// Whether `tried` names every replica.
    pub fn all_tried(&self, tried: &[Id]) -> bool {
        self.replicas.iter().all(|replica| tried.contains(&replica.id))
    }

    /// A call has ended. The replica, if its breaker opened or closed.
    pub fn ended(&mut self, id: Id, outcome: Outcome, now: Instant) -> Option<View> {
        let replica = self.replicas.iter_mut().find(|replica| replica.id == id)?;
        replica.outstanding = replica.outstanding.saturating_sub(1);
        let changed = replica.breaker.ended(outcome, now, &mut self.random).then(|| replica.view());
        self.noted(changed)
    }

    /// A call was given up by the caller, which says nothing about the replica.
    pub fn dropped(&mut self, id: Id) {
        if let Some(replica) = self.replicas.iter_mut().find(|replica| replica.id == id) {
            replica.outstanding = replica.outstanding.saturating_sub(1);
        }
    }

    /// The replicas that are to be probed now; each probe ends with [`Set::probed`].
    pub fn probes(&mut self, now: Instant) -> Vec<View> {
        self.replicas.iter_mut().filter_map(|replica| replica.breaker.begin_probe(now).then(|| replica.view())).collect()
    }

    /// When the next probe is due.
    pub fn next_probe(&self) -> Option<Instant> {
        self.replicas.iter().filter_map(|replica| replica.breaker.due()).min()
    }

    /// A probe has ended. The replica, if it is called again.
    pub fn probed(&mut self, id: Id, answered: bool, now: Instant) -> Option<View> {
        let replica = self.replicas.iter_mut().find(|replica| replica.id == id)?;
        let changed = replica.breaker.probed(answered, now, &mut self.random).then(|| replica.view());
        self.noted(changed)
    }

    /// All replicas.
    pub fn views(&self) -> impl Iterator<Item = View> {
        self.replicas.iter().map(Replica::view)
    }

    fn noted(&mut self, changed: Option<View>) -> Option<View> {
        if changed.is_some() {
            self.count_keys_anew();
        }
        changed
    }

    /// Who is there has changed: one that is new must not get all keys until it has as many as the
    /// others.
    fn count_keys_anew(&mut self) {
        self.replicas.iter_mut().for_each(|replica| replica.keys = 0);
    }
}

impl Replica {
    fn view(&self) -> View {
        View { id: self.id, slot: self.slot, address: self.address, state: self.breaker.state(), outstanding: self.outstanding }
    }
}

/// What one of `count` may have of `sum` and one more.
fn bound(factor: f64, sum: u32, count: usize) -> u32 {
    let mean = f64::from(sum + 1) / count as f64;
    // a float becomes the nearest whole number in range
    (factor * mean).ceil() as u32
}

#[cfg(test)]
mod tests;

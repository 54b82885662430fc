//! Fair queueing between owners: whose waiting request starts next, and whose sequences take part
//! in a pass.
//!
//! Each owner has an account of the model's time that it has had. A pass belongs to the owners that
//! have had least; the others take part as far as that makes it hardly longer. An owner that comes
//! back after a pause is a little ahead of those that were here all the time (start-time fair
//! queueing, as schedulers of processes do it), so that whoever asks seldom hardly waits, and whoever
//! asks all the time gets an equal part. With one owner nothing changes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// By how much an owner's account may exceed the lowest one without giving way: owners with equal
/// needs share their passes, which costs less than a pass for each.
const LEAD: f64 = 0.010;
/// How far ahead of the others an owner is when it comes back after a pause. So long may another
/// owner's streams stand still for it.
const CREDIT: f64 = 1.0;
/// Maximum number of owners whose accounts are kept while they have no requests here.
const ACCOUNTS: usize = 1_024;

/// An owner's number, valid while it has requests here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(usize);

#[derive(Debug)]
struct Account {
    name: String,
    /// Seconds of the model's time, plus what its absences were worth.
    spent: f64,
    /// Number of its requests that wait or run.
    here: usize,
    /// Number of them that run.
    running: usize,
}

/// The accounts of all owners, and the requests that wait.
#[derive(Debug)]
pub struct Fairness<T> {
    accounts: Vec<Account>,
    numbers: BTreeMap<String, OwnerId>,
    waiting: BTreeMap<OwnerId, VecDeque<T>>,
    /// The lowest account of the owners that had requests here last.
    floor: f64,
}

impl<T> Default for Fairness<T> {
    fn default() -> Self {
        Self { accounts: Vec::new(), numbers: BTreeMap::new(), waiting: BTreeMap::new(), floor: 0.0 }
    }
}

impl<T> Fairness<T> {
    /// A request of `owner` waits.
    pub fn push(&mut self, owner: &str, request: T) {
        let id = self.number(owner);
        let floor = self.floor;
        let account = &mut self.accounts[id.0];
        if account.here == 0 {
            account.spent = account.spent.max(floor - CREDIT);
        }
        account.here += 1;
        self.waiting.entry(id).or_default().push_back(request);
    }

    /// The request that starts next, if one may start beside those that run: `places` of them, and
    /// up to `most` if their owners have less than their part of the places. Owners with few
    /// requests that run come first, then those that have had least.
    pub fn pop(&mut self, places: usize, most: usize) -> Option<(OwnerId, T)> {
        if self.waiting.is_empty() {
            return None;
        }
        let running: usize = self.accounts.iter().map(|account| account.running).sum();
        let part = if running < places {
            usize::MAX
        } else if running < most {
            (places / self.accounts.iter().filter(|account| account.here > 0).count().max(1)).max(1)
        } else {
            return None;
        };
        let account = |id: &OwnerId| &self.accounts[id.0];
        let next = self.waiting.keys().filter(|id| account(id).running < part);
        let next = next.min_by(|a, b| {
            let (a, b) = (account(a), account(b));
            a.running.cmp(&b.running).then(a.spent.total_cmp(&b.spent))
        });
        let id = *next?;
        let queue = self.waiting.get_mut(&id)?;
        let request = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&id);
        }
        self.accounts[id.0].running += 1;
        Some((id, request))
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A request of this owner that ran has ended. Returns the owner's name.
    pub fn ended(&mut self, id: OwnerId) -> &str {
        let account = &mut self.accounts[id.0];
        account.here = account.here.saturating_sub(1);
        account.running = account.running.saturating_sub(1);
        &account.name
    }

    /// `took` was spent for one owner alone.
    pub fn charge(&mut self, id: OwnerId, took: Duration) {
        self.charge_shared(took, std::iter::once((id, 1)));
    }

    /// `took` was spent for several owners, as many parts for each as it says, such as the rows of a
    /// pass.
    pub fn charge_shared(&mut self, took: Duration, parts: impl Iterator<Item = (OwnerId, usize)> + Clone) {
        let all: usize = parts.clone().map(|(_, parts)| parts).sum();
        for (id, parts) in parts {
            self.accounts[id.0].spent += took.as_secs_f64() * parts as f64 / all.max(1) as f64;
        }
        let here = self.accounts.iter().filter(|account| account.here > 0);
        if let Some(lowest) = here.map(|account| account.spent).min_by(f64::total_cmp) {
            self.floor = self.floor.max(lowest);
        }
    }

    /// Which of the running sequences the next pass belongs to: those of the owners that have had
    /// least. `None`: to all.
    pub fn first(&self, running: impl Iterator<Item = OwnerId> + Clone) -> Option<Vec<bool>> {
        let spent = |id: OwnerId| self.accounts[id.0].spent;
        let least = running.clone().map(spent).min_by(f64::total_cmp)?;
        let first: Vec<bool> = running.map(|id| spent(id) <= least + LEAD).collect();
        if first.iter().all(|first| *first) { None } else { Some(first) }
    }

    fn number(&mut self, owner: &str) -> OwnerId {
        if let Some(id) = self.numbers.get(owner) {
            return *id;
        }
        let new = Account { name: owner.to_owned(), spent: f64::NEG_INFINITY, here: 0, running: 0 };
        let idle = if self.accounts.len() < ACCOUNTS { None } else { self.accounts.iter().position(|account| account.here == 0) };
        let id = match idle {
            Some(at) => {
                let old = std::mem::replace(&mut self.accounts[at], new);
                self.numbers.remove(&old.name);
                OwnerId(at)
            }
            None => {
                self.accounts.push(new);
                OwnerId(self.accounts.len() - 1)
            }
        };
        self.numbers.insert(owner.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An owner's requests, each of so many passes, and a pause in seconds after each.
    #[derive(Debug, Clone)]
    struct Load {
        at_once: usize,
        passes: usize,
        pause: f64,
    }

    /// What an owner had: seconds of the model, and the longest request in seconds.
    #[derive(Debug, Default, Clone, PartialEq)]
    struct Had {
        time: f64,
        longest: f64,
        done: usize,
    }

    /// Each pass takes a millisecond for each sequence in it. Returns what each owner had in so many
    /// seconds, and how often more ran than may.
    fn run(loads: &[Load], batch: usize, seconds: f64) -> Vec<Had> {
        struct Request {
            owner: usize,
            since: f64,
            left: usize,
        }
        let mut fairness = Fairness::default();
        let mut had = vec![Had::default(); loads.len()];
        let mut now = 0.0;
        // when each client asks next; infinity: it waits for an answer
        let mut clients: Vec<(usize, f64)> = loads.iter().enumerate().flat_map(|(owner, load)| vec![(owner, 0.0); load.at_once]).collect();
        let mut running: Vec<(OwnerId, Request)> = Vec::new();
        while now < seconds {
            for (owner, next) in clients.iter_mut().filter(|(_, next)| *next <= now) {
                fairness.push(&owner.to_string(), Request { owner: *owner, since: now, left: loads[*owner].passes });
                *next = f64::INFINITY;
            }
            while let Some((id, request)) = fairness.pop(batch, 2 * batch) {
                running.push((id, request));
            }
            assert!(running.len() <= 2 * batch);
            if running.is_empty() {
                assert!(fairness.is_empty());
                now = clients.iter().map(|(_, next)| *next).fold(f64::INFINITY, f64::min);
                continue;
            }
            let first = fairness.first(running.iter().map(|(id, _)| *id)).unwrap_or_else(|| vec![true; running.len()]);
            assert!(first.iter().any(|first| *first));
            let rows = first.iter().filter(|first| **first).count();
            let took = 0.001 * rows as f64;
            now += took;
            let parts: Vec<_> = running.iter().zip(&first).map(|((id, _), first)| (*id, usize::from(*first))).collect();
            fairness.charge_shared(Duration::from_secs_f64(took), parts.into_iter());
            for ((_, request), _) in running.iter_mut().zip(&first).filter(|(_, first)| **first) {
                request.left -= 1;
                had[request.owner].time += took / rows as f64;
            }
            for (id, request) in running.extract_if(.., |(_, request)| request.left == 0) {
                assert_eq!(fairness.ended(id), request.owner.to_string());
                let had = &mut had[request.owner];
                had.longest = had.longest.max(now - request.since);
                had.done += 1;
                let client = clients.iter_mut().find(|(owner, next)| *owner == request.owner && next.is_infinite());
                client.unwrap().1 = now + loads[request.owner].pause;
            }
        }
        had
    }

    proptest! {
        #[test]
        fn whoever_asks_all_the_time_gets_an_equal_part(
            loads in proptest::collection::vec((1_usize..40, 1_usize..60), 1..5),
        ) {
            let loads: Vec<Load> = loads.into_iter().map(|(at_once, passes)| Load { at_once, passes, pause: 0.0 }).collect();
            let had = run(&loads, 16, 20.0);
            let even = had.iter().map(|had| had.time).sum::<f64>() / had.len() as f64;
            for had in &had {
                prop_assert!((had.time - even).abs() < 0.05 * even + CREDIT, "{had:?}");
            }
        }

        #[test]
        fn nobody_is_left_out(
            loads in proptest::collection::vec((1_usize..40, 1_usize..60, 0.0_f64..0.5), 1..8),
        ) {
            let loads: Vec<Load> = loads.into_iter().map(|(at_once, passes, pause)| Load { at_once, passes, pause }).collect();
            for had in run(&loads, 8, 20.0) {
                prop_assert!(had.done > 0, "{had:?}");
            }
        }
    }

    #[test]
    fn who_asks_seldom_hardly_waits_for_who_floods() {
        let flood = Load { at_once: 100, passes: 50, pause: 0.0 };
        let seldom = Load { at_once: 1, passes: 20, pause: 0.04 };
        let alone = run(std::slice::from_ref(&seldom), 16, 20.0);
        let beside = run(&[flood, seldom], 16, 20.0);
        // at most the pass that runs when it comes
        assert!(beside[1].longest <= alone[0].longest + 0.032, "{beside:?}, {alone:?}");
        assert!(beside[1].done * 2 > alone[0].done, "{beside:?}, {alone:?}");
        assert!(beside[0].time > 10.0, "the other has the rest: {beside:?}");
    }

    #[test]
    fn an_owner_that_comes_back_has_no_more_than_its_credit() {
        let mut fairness = Fairness::default();
        fairness.push("here", ());
        let (here, ()) = fairness.pop(1, 2).unwrap();
        fairness.charge(here, Duration::from_secs(1_000));
        fairness.push("back", ());
        let (back, ()) = fairness.pop(1, 2).unwrap();
        let both = || [here, back].into_iter();
        assert_eq!(fairness.first(both()), Some(vec![false, true]));
        fairness.charge(back, Duration::from_secs_f64(CREDIT));
        assert_eq!(fairness.first(both()), None, "they share");
        fairness.charge(back, Duration::from_secs_f64(2.0 * LEAD));
        assert_eq!(fairness.first(both()), Some(vec![true, false]));
    }

    #[test]
    fn the_accounts_are_bounded() {
        let mut fairness = Fairness::default();
        for owner in 0..3 * ACCOUNTS {
            fairness.push(&owner.to_string(), ());
            let (id, ()) = fairness.pop(1, 1).unwrap();
            assert_eq!(fairness.ended(id), owner.to_string());
        }
        assert_eq!((fairness.accounts.len(), fairness.numbers.len()), (ACCOUNTS, ACCOUNTS));
    }
}

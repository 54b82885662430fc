//! The places of a queue: a bound on the requests that wait or run.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A bound on the requests that wait or run, of all owners together. An owner that takes all places
/// does not keep the others out: one with less than its part of them finds as many places again.
#[derive(Debug)]
pub struct Places {
    limit: usize,
    here: Mutex<HashMap<String, usize>>,
}

impl Places {
    /// Room for `limit` requests, or for one.
    pub fn new(limit: usize) -> Places {
        Places { limit: limit.max(1), here: Mutex::default() }
    }

    /// Takes a place for a request of `owner`; the empty name is an owner too. `Err`: there is none;
    /// the number of requests that are here.
    pub fn enter(&self, owner: &str) -> Result<(), usize> {
        let mut here = self.lock();
        let all: usize = here.values().sum();
        let own = here.get(owner).copied();
        let owners = here.len() + usize::from(own.is_none());
        let own = own.unwrap_or(0);
        if all >= self.limit && (own >= self.limit / owners || all >= self.limit.saturating_mul(2)) {
            return Err(all);
        }
        here.insert(owner.to_owned(), own + 1);
        Ok(())
    }

    /// Gives a place back.
    pub fn leave(&self, owner: &str) {
        let mut here = self.lock();
        if let Some(own) = here.get_mut(owner) {
            *own = own.saturating_sub(1);
            if *own == 0 {
                here.remove(owner);
            }
        }
    }

    /// Maximum number of requests that are here at once.
    pub fn most(&self) -> usize {
        self.limit.saturating_mul(2)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_owner_has_all_places_and_no_more() {
        let places = Places::new(3);
        assert_eq!([(); 4].map(|()| places.enter("a")), [Ok(()), Ok(()), Ok(()), Err(3)]);
        places.leave("a");
        assert_eq!([places.enter("a"), places.enter("a")], [Ok(()), Err(3)]);
    }

    #[test]
    fn an_owner_that_takes_all_places_keeps_nobody_out() {
        let places = Places::new(4);
        assert!((0..4).all(|_| places.enter("greedy").is_ok()));
        assert_eq!([(); 3].map(|()| places.enter("b")), [Ok(()), Ok(()), Err(6)], "half of them");
        assert_eq!(places.enter("c"), Ok(()), "a third");
        assert_eq!([places.enter("d"), places.enter("e")], [Ok(()), Err(8)], "twice as many in all");
        places.leave("nobody");
        (0..4).for_each(|_| places.leave("greedy"));
        assert_eq!([places.enter("greedy"), places.enter("greedy")], [Ok(()), Err(5)], "a quarter, like the others");
    }
}

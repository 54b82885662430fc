//! Short calls overtake long ones: a query does not wait for documents that are indexed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The longest that a long call waits at one place, so that it goes on under any number of queries.
const LONGEST: Duration = Duration::from_millis(100);

/// How many short calls run.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    short: Mutex<usize>,
    none: Condvar,
}

/// A short call that runs.
pub(crate) struct Short<'a>(&'a Turns);

impl Turns {
    /// Registers a short call until the value is dropped.
    pub(crate) fn short(&self) -> Short<'_> {
        *self.count() += 1;
        Short(self)
    }

    /// Called by a long call between its parts: waits until no short call runs.
    pub(crate) fn give_way(&self) {
        let waited = self.none.wait_timeout_while(self.count(), LONGEST, |short| *short > 0);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.short.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Short<'_> {
    fn drop(&mut self) {
        let mut short = self.0.count();
        *short -= 1;
        if *short == 0 {
            self.0.none.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_long_call_waits_for_short_ones_but_not_for_ever() {
        let turns = Turns::default();
        turns.give_way();
        let (one, other) = (turns.short(), turns.short());
        drop(one);
        let begun = Instant::now();
        turns.give_way();
        assert!(begun.elapsed() >= LONGEST);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| turns.give_way());
            drop(other);
            waiting.join().unwrap();
        });
        assert_eq!(*turns.count(), 0);
    }
}

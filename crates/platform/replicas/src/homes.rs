//! Where the calls of each key went last: a key stays with its replica, because the replica's
//! prefix cache knows the key's prompts.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::set::Id;

/// Keys in one generation: some megabytes at most.
const MOST: usize = 16 * 1024;
/// How long a key that is not called is remembered at least; twice this at most.
const AGE: Duration = Duration::from_secs(15 * 60);

/// The homes of the keys of late. Two generations, so that forgetting the old costs nothing.
#[derive(Debug)]
pub(crate) struct Homes {
    new: HashMap<u64, Id>,
    old: HashMap<u64, Id>,
    since: Instant,
}

impl Homes {
    pub(crate) fn new(now: Instant) -> Homes {
        Homes { new: HashMap::new(), old: HashMap::new(), since: now }
    }

    /// Where the key's last call went.
    pub(crate) fn of(&self, key: u64) -> Option<Id> {
        self.new.get(&key).or_else(|| self.old.get(&key)).copied()
    }

    /// The key's call goes there.
    pub(crate) fn set(&mut self, key: u64, home: Id, now: Instant) {
        if self.new.len() >= MOST || now.duration_since(self.since) >= AGE {
            self.old = std::mem::take(&mut self.new);
            self.since = now;
        }
        self.new.insert(key, home);
    }
}

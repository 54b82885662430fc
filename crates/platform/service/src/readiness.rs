//! What a service waits for before it says that it is ready. It is ready when nothing is waited for
//! and it is not draining.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<u64, &'static str>,
    next: u64,
    draining: bool,
}

/// The sum of all latches and conditions; cheap to clone.
#[derive(Debug, Clone)]
pub struct Readiness {
    state: Arc<watch::Sender<State>>,
}

impl Default for Readiness {
    fn default() -> Self {
        Readiness { state: Arc::new(watch::Sender::new(State::default())) }
    }
}

impl Readiness {
    /// Not ready until the latch is released.
    pub fn latch(&self, name: &'static str) -> Latch {
        Latch { condition: self.condition(name) }
    }

    /// Something that comes and goes; it starts as not there.
    pub fn condition(&self, name: &'static str) -> Condition {
        let mut id = 0;
        self.state.send_modify(|state| {
            id = state.next;
            state.next += 1;
            state.waiting.insert(id, name);
        });
        Condition { id, name, readiness: self.clone() }
    }

    /// Whether calls are welcome.
    pub fn is_ready(&self) -> bool {
        self.waiting().is_empty()
    }

    /// What is waited for.
    pub fn waiting(&self) -> Vec<String> {
        let state = self.state.borrow();
        let mut waiting: Vec<String> = state.waiting.values().map(|name| (*name).to_owned()).collect();
        if state.draining {
            waiting.push("draining".to_owned());
        }
        waiting
    }

    /// Returns when the service is ready: for tests and for tasks that must not begin earlier.
    pub async fn ready(&self) {
        let mut changes = self.state.subscribe();
        // the sender lives as long as `self`
        let _ = changes.wait_for(|state| state.waiting.is_empty() && !state.draining).await;
    }

    pub(crate) fn drain(&self) {
        self.state.send_modify(|state| state.draining = true);
    }

    pub(crate) fn changes(&self) -> Changes {
        Changes { receiver: self.state.subscribe() }
    }
}

/// Tells when readiness may have changed.
pub(crate) struct Changes {
    receiver: watch::Receiver<State>,
}

impl Changes {
    pub(crate) async fn next(&mut self) {
        if self.receiver.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Holds readiness back until [`Latch::release`]. A latch that is dropped unreleased holds it back
/// for ever: what it stood for failed.
#[derive(Debug)]
#[must_use = "a dropped latch keeps the service from ever being ready"]
pub struct Latch {
    condition: Condition,
}

impl Latch {
    /// What was waited for is there.
    pub fn release(self) {
        self.condition.set(true);
    }
}

/// Holds readiness back while it does not hold.
#[derive(Debug)]
pub struct Condition {
    id: u64,
    name: &'static str,
    readiness: Readiness,
}

impl Condition {
    /// Says whether it holds now.
    pub fn set(&self, holds: bool) {
        self.readiness.state.send_if_modified(|state| {
            if holds { state.waiting.remove(&self.id).is_some() } else { state.waiting.insert(self.id, self.name).is_none() }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_latches_must_be_released() {
        let readiness = Readiness::default();
        assert!(readiness.is_ready());
        let (model, bus) = (readiness.latch("model"), readiness.condition("bus"));
        assert_eq!(readiness.waiting(), ["model", "bus"]);
        model.release();
        bus.set(true);
        assert!(readiness.is_ready());
        bus.set(false);
        assert_eq!(readiness.waiting(), ["bus"]);
        bus.set(true);
        readiness.drain();
        assert_eq!(readiness.waiting(), ["draining"]);
    }

    #[test]
    fn a_dropped_latch_is_never_ready() {
        let readiness = Readiness::default();
        drop(readiness.latch("model"));
        assert!(!readiness.is_ready());
    }
}

//! What a service waits for before it says that it is ready. It is ready when nothing is waited for
//! and it is not draining.

use std::collections::BTreeMap;
use std::sync::Arc;

use autoact_base::progress::Progress;
use tokio::sync::watch;

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<u64, Missing>,
    next: u64,
    draining: bool,
}

/// Something that is not there yet.
#[derive(Debug, Clone)]
struct Missing {
    name: &'static str,
    /// Of the work that brings it.
    progress: Option<Progress>,
}

impl Missing {
    /// The name, and how far the work is: `model (31 of 152 bytes in 2.5 s)`.
    fn told(&self) -> String {
        match self.progress.as_ref().and_then(Progress::look) {
            Some(look) => format!("{} ({} of {} bytes in {:.1} s)", self.name, look.done, look.total, look.elapsed.as_secs_f64()),
            None => self.name.to_owned(),
        }
    }
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
        self.missing(Missing { name, progress: None })
    }

    /// Something that comes by work with progress, which is told as long as it lasts.
    pub(crate) fn worked_on(&self, name: &'static str, progress: Progress) -> Condition {
        self.missing(Missing { name, progress: Some(progress) })
    }

    fn missing(&self, what: Missing) -> Condition {
        let mut id = 0;
        self.state.send_modify(|state| {
            id = state.next;
            state.next += 1;
            state.waiting.insert(id, what.clone());
        });
        Condition { id, what, readiness: self.clone() }
    }

    /// Whether calls are welcome.
    pub fn is_ready(&self) -> bool {
        let state = self.state.borrow();
        state.waiting.is_empty() && !state.draining
    }

    /// What is waited for, and how far it is.
    pub fn waiting(&self) -> Vec<String> {
        let state = self.state.borrow();
        let mut waiting: Vec<String> = state.waiting.values().map(Missing::told).collect();
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
    what: Missing,
    readiness: Readiness,
}

impl Condition {
    /// Says whether it holds now.
    pub fn set(&self, holds: bool) {
        self.readiness.state.send_if_modified(|state| {
            if holds { state.waiting.remove(&self.id).is_some() } else { state.waiting.insert(self.id, self.what.clone()).is_none() }
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
    fn work_tells_how_far_it_is() {
        let (readiness, progress) = (Readiness::default(), Progress::default());
        let model = readiness.worked_on("model", progress.clone());
        assert_eq!(readiness.waiting(), ["model"]);
        progress.begin(152);
        progress.add(31);
        let told = readiness.waiting().remove(0);
        assert!(told.starts_with("model (31 of 152 bytes in 0.") && told.ends_with(" s)"), "{told}");
        progress.end();
        assert_eq!(readiness.waiting(), ["model"]);
        model.set(true);
        assert!(readiness.is_ready());
    }

    #[test]
    fn a_dropped_latch_is_never_ready() {
        let readiness = Readiness::default();
        drop(readiness.latch("model"));
        assert!(!readiness.is_ready());
    }
}

//! Background tasks: each has a name, is waited for at shutdown and says what its end means.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::error::RunError;

/// The background tasks of a service; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stopping: CancellationToken,
    failed: CancellationToken,
    failure: Arc<Mutex<Option<RunError>>>,
    holds: Arc<Mutex<Holds>>,
}

/// What must not be cut off, by the numbers of the holds.
#[derive(Debug, Default)]
struct Holds {
    next: u64,
    until: BTreeMap<u64, Instant>,
}

/// Keeps a service that stops from ending before its tasks have, up to a time; given up when
/// dropped.
#[derive(Debug)]
pub struct Hold {
    number: u64,
    holds: Arc<Mutex<Holds>>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).until.remove(&self.number);
    }
}

impl Tasks {
    /// Runs a task that may be dropped at any of its awaits when the service stops.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        let task = async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = task => {}
            }
        };
        self.tracker.spawn(task.instrument(tracing::debug_span!("task", name)));
    }

    /// Runs a task without which the service is useless: its error ends the service. It is dropped
    /// when the service stops.
    pub fn spawn_critical<E: Display>(&self, name: &'static str, task: impl Future<Output = Result<(), E>> + Send + 'static) {
        let tasks = self.clone();
        self.spawn(name, async move {
            if let Err(error) = task.await {
                tasks.fail(name, &error);
            }
        });
    }

    /// Runs a task that ends by itself soon after the token it gets is cancelled: it has something
    /// to put away.
    pub fn spawn_until_stopped<F>(&self, name: &'static str, task: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let task = task(self.stopping.clone());
        self.tracker.spawn(task.instrument(tracing::debug_span!("task", name)));
    }

    /// For work that must not be cut off: a service that stops waits for its tasks until this time,
    /// however much sooner its grace period is over. The pod's own has to be longer.
    pub fn hold(&self, until: Instant) -> Hold {
        let mut holds = self.holds.lock().unwrap_or_else(PoisonError::into_inner);
        let number = holds.next;
        holds.next += 1;
        holds.until.insert(number, until);
        Hold { number, holds: Arc::clone(&self.holds) }
    }

    /// When the last of what must not be cut off has ended.
    fn held(&self) -> Option<Instant> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner).until.values().max().copied()
    }

    /// Cancelled when in-flight calls are done and background work is to end.
    pub fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }

    fn fail(&self, name: &'static str, error: &dyn Display) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| RunError::Task { name, cause: error.to_string() });
        self.failed.cancel();
    }

    /// Returns when a critical task has failed.
    pub(crate) async fn failed(&self) {
        self.failed.cancelled().await;
    }

    pub(crate) fn take_failure(&self) -> Option<RunError> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends all tasks and waits for them, up to `deadline`, and longer for what must not be cut off;
    /// false when some are still there.
    pub(crate) async fn stop(&self, deadline: Instant) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        let mut until = deadline;
        loop {
            if tokio::time::timeout_at(until, self.tracker.wait()).await.is_ok() {
                return true;
            }
            match self.held().filter(|held| *held > until) {
                Some(held) => {
                    tracing::info!(left = ?held.duration_since(until), "waiting for work that must not be cut off");
                    until = held;
                }
                None => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const GRACE: Duration = Duration::from_secs(2);
    const EFFECT: Duration = Duration::from_secs(60);

    /// Work of a minute that says that it must not be cut off for `held`.
    fn work(tasks: &Tasks, held: Duration) {
        let hold = tasks.hold(Instant::now() + held);
        tasks.spawn_until_stopped("effect", |_| async move {
            tokio::time::sleep(EFFECT).await;
            drop(hold);
        });
    }

    #[tokio::test(start_paused = true)]
    async fn what_must_not_be_cut_off_ends_by_itself_and_not_later_than_it_said() {
        let (tasks, began) = (Tasks::default(), Instant::now());
        work(&tasks, EFFECT + GRACE);
        assert!(tasks.stop(began + GRACE).await);
        assert_eq!(began.elapsed().as_secs(), EFFECT.as_secs());

        let (tasks, began) = (Tasks::default(), Instant::now());
        work(&tasks, EFFECT / 2);
        assert!(!tasks.stop(began + GRACE).await, "it takes longer than it said");
        assert_eq!(began.elapsed().as_secs(), EFFECT.as_secs() / 2);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_no_more_is_not_waited_for() {
        let (tasks, began) = (Tasks::default(), Instant::now());
        drop(tasks.hold(began + EFFECT));
        tasks.spawn_until_stopped("slow", |_| tokio::time::sleep(EFFECT));
        assert!(!tasks.stop(began + GRACE).await);
        assert_eq!(began.elapsed().as_secs(), GRACE.as_secs());
    }
}

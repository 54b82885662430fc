//! Background tasks: each has a name, is waited for at shutdown and says what its end means.

use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

    /// Ends all tasks and waits for them, up to `limit`; false when some are still there.
    pub(crate) async fn stop(&self, limit: Duration) -> bool {
        self.stopping.cancel();
        self.tracker.close();
        tokio::time::timeout(limit, self.tracker.wait()).await.is_ok()
    }
}

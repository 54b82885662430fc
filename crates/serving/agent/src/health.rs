//! What the calls of a model say of its health.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// What is known of the model's health.
#[derive(Debug, Default)]
pub(crate) struct Health {
    last_success: Mutex<Option<Instant>>,
    doubted: Notify,
}

impl Health {
    pub(crate) fn worked(&self) {
        *self.last_success.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// A call failed in a way that is the model's own fault: look again now.
    pub(crate) fn doubt(&self) {
        *self.last_success.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.doubted.notify_one();
    }

    /// Until a call fails like that.
    pub(crate) async fn doubted(&self) {
        self.doubted.notified().await;
    }

    pub(crate) fn worked_within(&self, span: Duration) -> bool {
        self.last_success.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|at| at.elapsed() <= span)
    }
}

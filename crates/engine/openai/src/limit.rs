//! Waiting with a time limit: until the deadline, or until the stream is dropped.

use std::pin::pin;
use std::time::Duration;

use autoact_model::{GenerateError, GenerateSender};
use tokio::time::Instant;

/// Interval at which a dropped stream is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// The time limit of a completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeLimit {
    end: Instant,
    /// Whether `end` is the caller's deadline or the time limit of all completions.
    deadline: bool,
    timeout: Duration,
}

impl TimeLimit {
    pub(crate) fn new(deadline: Option<std::time::Instant>, timeout: Duration) -> TimeLimit {
        let own = Instant::now() + timeout;
        match deadline.map(Instant::from_std) {
            Some(end) if end <= own => TimeLimit { end, deadline: true, timeout },
            _ => TimeLimit { end: own, deadline: false, timeout },
        }
    }

    /// Whether more than `pause` is left.
    pub(crate) fn allows(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.end
    }

    /// Waits for `work` until the time limit, or until the stream is dropped. Either drops the work
    /// and thus its request.
    pub(crate) async fn wait<T>(&self, sender: &GenerateSender, work: impl Future<Output = T>) -> Result<T, GenerateError> {
        let mut work = pin!(work);
        loop {
            if sender.is_cancelled() {
                return Err(GenerateError::Cancelled);
            }
            let now = Instant::now();
            if now >= self.end {
                return Err(self.over());
            }
            if let Ok(done) = tokio::time::timeout_at(self.end.min(now + LOOK), &mut work).await {
                return Ok(done);
            }
        }
    }

    fn over(&self) -> GenerateError {
        if self.deadline {
            GenerateError::DeadlineExceeded
        } else {
            GenerateError::engine(format!("the server did not complete the request within `{:?}`", self.timeout))
        }
    }
}

//! How long a completion is worth waiting for: until its deadline, and while somebody reads it.

use std::pin::pin;
use std::time::Duration;

use autoact_model::{GenerateError, GenerateSender};
use tokio::time::Instant;

/// How soon a reader that has gone is noticed.
const LOOK: Duration = Duration::from_millis(20);

/// When a completion ends, done or not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    end: Instant,
    /// Whether the end is the caller's deadline or our own bound.
    deadline: bool,
    timeout: Duration,
}

impl Patience {
    pub(crate) fn new(deadline: Option<std::time::Instant>, timeout: Duration) -> Patience {
        let own = Instant::now() + timeout;
        match deadline.map(Instant::from_std) {
            Some(end) if end <= own => Patience { end, deadline: true, timeout },
            _ => Patience { end: own, deadline: false, timeout },
        }
    }

    /// Whether there are `pause` and more left.
    pub(crate) fn allows(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.end
    }

    /// `work`, unless time runs out or nobody reads any more. Either drops the work, and a request with it.
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

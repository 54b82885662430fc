//! When a server that failed is tried again.

use std::time::Duration;

use tokio::time::Instant;

/// The pause after the second failure in a row; it doubles with each one.
const FIRST: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(60);

/// Failures in a row, and when the next attempt may be.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    /// How long to wait for the next attempt.
    pub(crate) fn wait(&self) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// The server failed: the first time it may be tried again at once.
    pub(crate) fn failed(&mut self) {
        let doubled = FIRST.saturating_mul(2_u32.saturating_pow(self.failures.saturating_sub(1)));
        let pause = if self.failures == 0 { Duration::ZERO } else { doubled.min(LONGEST) };
        self.failures = self.failures.saturating_add(1);
        self.until = Some(Instant::now() + pause);
    }

    /// A call was answered.
    pub(crate) fn worked(&mut self) {
        *self = Backoff::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_up_to_a_bound() {
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            backoff.failed();
            pauses.push(backoff.wait().as_millis());
        }
        assert_eq!(pauses[..5], [0, 500, 1000, 2000, 4000]);
        assert_eq!(pauses[11], 60_000);
        backoff.worked();
        assert!(backoff.wait().is_zero());
    }
}

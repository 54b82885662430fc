//! Trying again while the bus does not answer.

use std::time::Duration;

use tokio::time::Instant;

use crate::connect::Bus;
use crate::error::BusError;
use crate::refusal::Refusals;

/// The longest pause between attempts: short, because a server that restarts is back within a
/// second.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Grows from a tenth of a second to [`MAX_PAUSE`].
pub(crate) fn pause(attempt: u32) -> Duration {
    Duration::from_millis(100).saturating_mul(attempt.clamp(1, 10)).min(MAX_PAUSE)
}

/// How long one operation has been trying, and how long it may.
pub(crate) struct Patience<'a> {
    what: &'static str,
    deadline: Instant,
    attempt: u32,
    bus: Option<&'a Bus>,
    refusals: &'a Refusals,
    /// How many refusals there were when it began.
    refused: u64,
}

impl<'a> Patience<'a> {
    /// For one operation: `what` completes the sentence "the bus cannot … now".
    pub(crate) fn new(what: &'static str, limit: Duration, refusals: &'a Refusals) -> Patience<'a> {
        Patience { what, deadline: Instant::now() + limit, attempt: 0, bus: None, refusals, refused: refusals.count() }
    }

    /// The same for an operation on a bus whose streams may vanish: then there is nothing to wait
    /// for.
    pub(crate) fn of(bus: &'a Bus, what: &'static str) -> Patience<'a> {
        Patience { bus: Some(bus), ..Patience::new(what, bus.config.patience, &bus.refusals) }
    }

    /// What the server refused over the connection.
    pub(crate) fn refusals(&self) -> &'a Refusals {
        self.refusals
    }

    /// Takes a failure: pauses before the next attempt, or gives up with it. What the server refuses
    /// it refuses again.
    pub(crate) async fn after(&mut self, error: impl Into<async_nats::Error>) -> Result<(), BusError> {
        let error = error.into();
        self.attempt += 1;
        self.refusals.since(self.refused)?;
        if let Some(bus) = self.bus {
            Box::pin(bus.check_streams()).await?;
        }
        let pause = pause(self.attempt);
        if Instant::now() + pause >= self.deadline {
            return Err(BusError::unavailable(self.what, error));
        }
        tracing::debug!(what = self.what, attempt = self.attempt, %error, "the bus did not answer; trying again");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}

//! What time it is: the server's clock is the same for all who are connected, whatever the clocks of
//! their machines say.

use std::sync::{PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use async_nats::datetime::parse_rfc3339;
use tokio::time::Instant;

use crate::connect::Bus;
use crate::error::BusError;

/// An answer that took longer says too little: the server may have looked at its clock at its
/// beginning or at its end.
const PRECISE: Duration = Duration::from_secs(1);

/// The part of an answer about a stream that says when it was given, in RFC 3339.
#[derive(serde::Deserialize)]
struct Told {
    ts: Option<String>,
}

/// The server's clock as it was asked last. It goes on by this machine's steady clock, which nobody
/// sets.
#[derive(Debug, Default)]
pub(crate) struct Clock(RwLock<Option<(SystemTime, Instant)>>);

impl Clock {
    /// The server answered with `told` between `asked` and `now`.
    fn told(&self, told: SystemTime, asked: Instant, now: Instant) {
        let took = now.saturating_duration_since(asked);
        let mut clock = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if clock.is_none() || took <= PRECISE {
            *clock = Some((told + took / 2, now));
        }
    }

    /// The server's time at `now`; this machine's if the server was never asked.
    fn at(&self, now: Instant) -> SystemTime {
        let clock = *self.0.read().unwrap_or_else(PoisonError::into_inner);
        clock.map_or_else(SystemTime::now, |(told, since)| told + now.saturating_duration_since(since))
    }
}

impl Bus {
    /// What time it is for the server, as far as this process knows: it asks when it connects, and in
    /// [`time`](Self::time).
    pub fn now(&self) -> SystemTime {
        self.clock.at(Instant::now())
    }

    /// Asks the server what time it is. A server before 2.10 does not say; then it is this machine's,
    /// which the log says once.
    ///
    /// # Errors
    /// The bus did not answer in time.
    pub async fn time(&self) -> Result<SystemTime, BusError> {
        let mut patience = self.patience("say what time it is");
        let subject = format!("STREAM.INFO.{}", self.streams.queue.cached_info().config.name);
        loop {
            let asked = Instant::now();
            match self.context.request::<_, _, Told>(subject.clone(), &()).await {
                Ok(Told { ts }) => {
                    match ts.and_then(|ts| parse_rfc3339(&ts).ok()) {
                        Some(told) => self.clock.told(told.into(), asked, Instant::now()),
                        None => SAID.call_once(|| tracing::warn!("the server does not say what time it is; this machine's clock counts")),
                    }
                    return Ok(self.now());
                }
                Err(error) => patience.after(error).await?,
            }
        }
    }
}

/// Whether it was said that the server's time is unknown.
static SAID: std::sync::Once = std::sync::Once::new();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_time_goes_on_and_is_not_taken_from_a_late_answer() {
        let (clock, start) = (Clock::default(), Instant::now());
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let told = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(clock.at(start).duration_since(SystemTime::UNIX_EPOCH).unwrap() > Duration::from_secs(1_700_000_000));
        // the first answer counts in any case
        clock.told(told(1000), start, at(4));
        assert_eq!(clock.at(at(10)), told(1008));
        clock.told(told(5000), at(10), at(14));
        assert_eq!(clock.at(at(20)), told(1018), "it came too late to say much");
        clock.told(told(5000), at(20), at(20));
        assert_eq!(clock.at(at(25)), told(5005));
        // a moment before it was asked
        assert_eq!(clock.at(at(3)), told(5000));
    }
}

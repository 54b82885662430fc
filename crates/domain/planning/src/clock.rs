//! What time it is for a task, and where its time goes between two of its events.

use std::time::{Duration, Instant, SystemTime};

use autoact_trajectory::Timing;

/// The time of day, as it was at the start and has gone on since: a machine's clock that is set while
/// the task runs neither ends the task nor gives it more time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wall {
    began: SystemTime,
    since: Instant,
}

impl Wall {
    /// A clock that says `now` now.
    pub(crate) fn at(now: SystemTime) -> Wall {
        Wall { began: now, since: Instant::now() }
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.began + self.since.elapsed()
    }
}

/// Counts from the lease, or from the moment the last event was written.
pub(crate) struct Clock {
    since: Instant,
    bus: Duration,
    call: Duration,
    retry: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { since: Instant::now(), bus: Duration::ZERO, call: Duration::ZERO, retry: Duration::ZERO }
    }

    /// Waits for the bus.
    pub(crate) async fn bus<T>(&mut self, work: impl Future<Output = T>) -> T {
        let begun = Instant::now();
        let done = work.await;
        self.bus += begun.elapsed();
        done
    }

    /// A call was over, and an event that was being stored beside it took this much longer.
    pub(crate) fn waited(&mut self, bus: Duration) {
        self.bus += bus;
    }

    /// The task was read from the log for this long before the clock was started.
    pub(crate) fn read(&mut self, reading: Duration) {
        self.since -= reading;
        self.bus += reading;
    }

    /// An agent answered, after attempts that failed.
    pub(crate) fn called(&mut self, call: Duration, retry: Duration) {
        self.call += call;
        self.retry += retry;
    }

    /// What an event that is written now says. From here on, time is the next event's.
    pub(crate) fn lap(&mut self) -> Timing {
        let Clock { since, bus, call, retry } = std::mem::replace(self, Clock::start());
        Timing { own: since.elapsed().saturating_sub(bus + call + retry), bus, retry }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_counted_once() {
        let mut clock = Clock::start();
        clock.read(Duration::from_millis(5));
        clock.called(Duration::from_millis(3), Duration::from_millis(1));
        clock.since -= Duration::from_millis(4);
        let first = clock.lap();
        assert!(first.bus >= Duration::from_millis(5) && first.retry == Duration::from_millis(1), "{first:?}");
        assert!(first.own < Duration::from_millis(5), "{first:?}");
        let second = clock.lap();
        assert!(second.bus.is_zero() && second.retry.is_zero(), "{second:?}");
    }
}

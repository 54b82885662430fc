//! Whether a replica is called: a circuit breaker.
//!
//! ```text
//!            failures in a row, or too large a share of the last calls
//!   closed ───────────────────────────────────────────────────────────► open
//!     ▲                                                                 │ ▲
//!     │ a call or a probe is answered            the pause is over      │ │ the probe fails:
//!     └────────────────────────────────── half open ◄───────────────────┘ │ a longer pause
//!                                              └──────────────────────────┘
//! ```
//!
//! An open breaker closes as soon as anything is answered: when no other replica is left, open ones
//! are called too.

use std::time::{Duration, Instant};

use autoact_base::random::SplitMix64;

/// Calls that the share of failures is counted over.
const WINDOW: u32 = 20;
/// Fewer calls than these say nothing about a share.
const LEAST: u32 = 10;
/// The first pause before a probe.
pub const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest one: how late a replica that is back is noticed.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After this a probe that never ended is made again; longer than any probe takes.
const PROBE_LIMIT: Duration = Duration::from_secs(10);

/// How a call ended, as far as it says something about the replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The replica said something, be it an error.
    Answered,
    /// It could not be reached, did not take the call, or its connection broke.
    Failed,
    /// It said nothing for as long as a call may take.
    Silent,
}

/// What a breaker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Calls go there.
    Closed,
    /// They do not, while others are there.
    Open,
    /// One probe is on its way.
    HalfOpen,
}

/// The breaker of one replica.
#[derive(Debug, Clone)]
pub struct Breaker {
    /// Failures in a row that open it.
    failures: u32,
    state: State,
    in_a_row: u32,
    /// The last calls, the newest in the lowest bit; set: no answer.
    last: u32,
    /// How many of the bits count.
    known: u32,
    /// Pauses since it was closed.
    pauses: u32,
    /// When the next probe is due, unless it is closed.
    due: Instant,
}

impl Breaker {
    /// A closed one that opens after so many failures in a row.
    pub fn new(failures: u32, now: Instant) -> Breaker {
        Breaker { failures: failures.max(1), state: State::Closed, in_a_row: 0, last: 0, known: 0, pauses: 0, due: now }
    }

    /// What it says now.
    pub fn state(&self) -> State {
        self.state
    }

    /// When the next probe is due; `None` while it is closed.
    pub fn due(&self) -> Option<Instant> {
        (self.state != State::Closed).then_some(self.due)
    }

    /// Counts the end of a call. True if the state changed.
    pub fn ended(&mut self, outcome: Outcome, now: Instant, random: &mut SplitMix64) -> bool {
        if outcome == Outcome::Answered {
            self.in_a_row = 0;
            self.count(false);
            return self.close();
        }
        if self.state != State::Closed {
            // what failed late says nothing new
            return false;
        }
        self.count(true);
        if outcome == Outcome::Failed {
            self.in_a_row += 1;
        }
        let mostly = self.known >= LEAST && 2 * self.last.count_ones() >= self.known;
        if self.in_a_row < self.failures && !mostly {
            return false;
        }
        self.open(now, random);
        true
    }

    /// Whether a probe has to be made now; then it counts as begun.
    pub fn begin_probe(&mut self, now: Instant) -> bool {
        let due = self.state != State::Closed && now >= self.due;
        if due {
            self.state = State::HalfOpen;
            self.due = now + PROBE_LIMIT;
        }
        due
    }

    /// A probe has ended. True if the breaker closed.
    pub fn probed(&mut self, answered: bool, now: Instant, random: &mut SplitMix64) -> bool {
        if answered {
            return self.close();
        }
        if self.state == State::HalfOpen {
            self.open(now, random);
        }
        false
    }

    fn count(&mut self, failed: bool) {
        self.last = ((self.last << 1) | u32::from(failed)) & ((1 << WINDOW) - 1);
        self.known = (self.known + 1).min(WINDOW);
    }

    fn open(&mut self, now: Instant, random: &mut SplitMix64) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.pauses.min(10)).min(LONGEST_PAUSE);
        self.pauses += 1;
        self.state = State::Open;
        self.due = now + jittered(pause, random);
    }

    fn close(&mut self) -> bool {
        let opened = self.state != State::Closed;
        if opened {
            *self = Breaker { state: State::Closed, in_a_row: 0, last: 0, known: 0, pauses: 0, ..*self };
        }
        opened
    }
}

/// Half of a time to all of it, so that what broke together does not come back together.
pub(crate) fn jittered(time: Duration, random: &mut SplitMix64) -> Duration {
    time.mul_f64(0.5 + random.unit() / 2.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fresh() -> (Breaker, Instant, SplitMix64) {
        let now = Instant::now();
        (Breaker::new(3, now), now, SplitMix64::new(7))
    }

    #[test]
    fn failures_in_a_row_open_it_and_any_answer_closes_it() {
        let (mut breaker, now, mut random) = fresh();
        for outcome in [Outcome::Failed, Outcome::Failed, Outcome::Answered, Outcome::Failed, Outcome::Failed] {
            assert!(!breaker.ended(outcome, now, &mut random));
        }
        assert!(breaker.ended(Outcome::Failed, now, &mut random));
        assert_eq!(breaker.state(), State::Open);
        assert!(breaker.ended(Outcome::Answered, now, &mut random));
        assert_eq!((breaker.state(), breaker.due()), (State::Closed, None));
    }

    #[test]
    fn silence_opens_it_by_its_share_alone() {
        let (mut breaker, now, mut random) = fresh();
        for _ in 0..LEAST / 2 {
            breaker.ended(Outcome::Answered, now, &mut random);
        }
        let opened = (0..LEAST).position(|_| breaker.ended(Outcome::Silent, now, &mut random));
        assert_eq!(opened, Some(4), "half of ten calls");
    }

    #[test]
    fn probes_come_after_longer_and_longer_pauses() {
        let (mut breaker, mut now, mut random) = fresh();
        (0..3).for_each(|_| {
            breaker.ended(Outcome::Failed, now, &mut random);
        });
        let mut pause = FIRST_PAUSE;
        for _ in 0..8 {
            let wait = breaker.due().unwrap() - now;
            assert!(wait >= pause / 2 && wait <= pause, "{wait:?} of {pause:?}");
            assert!(!breaker.begin_probe(now));
            now = breaker.due().unwrap();
            assert!(breaker.begin_probe(now) && breaker.state() == State::HalfOpen);
            assert!(!breaker.begin_probe(now), "one at a time");
            assert!(!breaker.probed(false, now, &mut random));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        now = breaker.due().unwrap();
        assert!(breaker.begin_probe(now) && breaker.probed(true, now, &mut random));
        assert_eq!(breaker.state(), State::Closed);
    }

    proptest! {
        /// It opens at the latest with the failures in a row, is never stuck, and an answer closes it.
        #[test]
        fn any_order_of_events_is_legal(events in prop::collection::vec(0u8..6, 0..200), seed: u64) {
            let (mut breaker, mut now, _) = fresh();
            let mut random = SplitMix64::new(seed);
            let mut failed = 0;
            for event in events {
                let before = breaker.state();
                match event {
                    0 => { breaker.ended(Outcome::Answered, now, &mut random); failed = 0; }
                    1 => { breaker.ended(Outcome::Failed, now, &mut random); failed += 1; }
                    2 => { breaker.ended(Outcome::Silent, now, &mut random); }
                    3 => now += FIRST_PAUSE,
                    4 => { breaker.begin_probe(now); }
                    _ => if breaker.probed(seed % 3 == 0, now, &mut random) { failed = 0 },
                }
                prop_assert!(failed < 3 || breaker.state() != State::Closed);
                prop_assert!(event != 0 || breaker.state() == State::Closed);
                prop_assert!(before != State::Closed || breaker.state() != State::HalfOpen);
                if let Some(due) = breaker.due() {
                    prop_assert!(due <= now + PROBE_LIMIT.max(LONGEST_PAUSE));
                }
            }
        }
    }
}

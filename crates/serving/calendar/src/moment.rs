//! Moments as days from 2000-01-01 12:00 UT, which the sun is computed for.

use jiff::Timestamp;

/// 2000-01-01T12:00:00Z
const J2000_SECONDS: f64 = 946_728_000.0;
const SECONDS_PER_DAY: f64 = 86_400.0;

pub(crate) fn days(time: Timestamp) -> f64 {
    (time.as_duration().as_secs_f64() - J2000_SECONDS) / SECONDS_PER_DAY
}

/// The moment to the millisecond; the nearest that can be written, if it is out of range.
pub(crate) fn timestamp(days: f64) -> Timestamp {
    let milliseconds = ((days * SECONDS_PER_DAY + J2000_SECONDS) * 1000.0).round();
    let milliseconds = milliseconds as i64; // saturates, and what is out of range is bounded below
    let bound = if milliseconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
    Timestamp::from_millisecond(milliseconds).unwrap_or(bound)
}

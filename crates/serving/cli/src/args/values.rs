//! Times and points in time, as people write them.

use std::time::Duration;

/// What is waited for at most; longer is a mistyped unit.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A point in time.
pub(super) fn timestamp(text: &str) -> Result<prost_types::Timestamp, String> {
    text.trim().parse().map_err(|_| "expected RFC 3339, such as `2026-11-22T07:30:00Z` or `2026-11-22T08:30:00+01:00`".to_owned())
}

/// A time, or a plain number of seconds.
pub(super) fn patience(text: &str) -> Result<Duration, String> {
    let seconds = || text.trim().parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = autoact_config::duration::parse(text).ok().or_else(seconds).filter(|time| *time <= LONGEST);
    time.ok_or_else(|| "expected seconds, or a time such as `500ms`, `30s` or `5m`, at most a week".to_owned())
}

/// The same, and not nothing.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    patience(text).and_then(|time| if time.is_zero() { Err("expected more than nothing".to_owned()) } else { Ok(time) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_units() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(time("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(patience("0s"), Ok(Duration::ZERO));
        for wrong in ["", "-1", "nan", "inf", "1e300", "soon", "1000h", "5 fortnights"] {
            assert!(patience(wrong).is_err(), "{wrong}");
        }
        assert!(time("0").is_err() && time("0s").is_err());
    }

    #[test]
    fn points_in_time_have_an_offset() {
        assert_eq!(timestamp("2026-11-22T08:30:00+01:00"), timestamp("2026-11-22T07:30:00Z"));
        for wrong in ["", "now", "tomorrow at nine", "2026-13-01T00:00:00Z"] {
            assert!(timestamp(wrong).is_err(), "{wrong}");
        }
    }
}

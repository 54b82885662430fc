//! A point in time as a date of the Gregorian calendar, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: i64 = 86_400;
/// 0001-01-01T00:00:00Z
const FIRST: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z
const LAST: i64 = 253_402_300_799;

/// RFC 3339 in UTC with whole seconds, such as `2026-11-22T07:30:00Z`.
pub fn rfc3339(time: SystemTime) -> String {
    let seconds = seconds(time);
    let (days, rest) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", rest / 3600, rest / 60 % 60, rest % 60)
}

/// Whether the time is in the years 1 to 9999, which RFC 3339 can write.
pub(crate) fn is_in_calendar(time: SystemTime) -> bool {
    (FIRST..=LAST).contains(&seconds(time))
}

/// Whole seconds since 1970, rounded down.
fn seconds(time: SystemTime) -> i64 {
    let whole = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => whole(after.as_secs()),
        Err(error) => {
            let before = error.duration();
            -whole(before.as_secs()) - i64::from(before.subsec_nanos() > 0)
        }
    }
}

/// Year, month and day of a number of days since 1970-01-01. The algorithm is `civil_from_days` of
/// Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms": eras of 400 years whose years
/// begin in March.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let after = |seconds| rfc3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(after(0), "1970-01-01T00:00:00Z");
        assert_eq!(after(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(after(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(after(1_795_332_600), "2026-11-22T07:30:00Z");
        assert_eq!(after(253_402_300_799), "9999-12-31T23:59:59Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_millis(500)), "1969-12-31T23:59:59Z");
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(62_135_596_800)), "0001-01-01T00:00:00Z");
    }
}

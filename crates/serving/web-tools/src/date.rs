//! Days of the Gregorian calendar, as numbers from 1970-01-01.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS: u64 = 86_400;

/// A day, counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(pub(crate) i64);

impl Day {
    /// Today in UTC.
    pub(crate) fn today() -> Day {
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Day(i64::try_from(seconds / SECONDS).unwrap_or_default())
    }

    /// Reads `2024-05-01`.
    pub(crate) fn parse(text: &str) -> Option<Day> {
        let parts: Vec<&str> = text.split('-').collect();
        let [year, month, day] = parts[..] else { return None };
        let digits = |text: &str, length: usize| {
            (text.len() == length && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i64>().ok())
        };
        let (year, month, day) = (digits(year, 4)??, digits(month, 2)??, digits(day, 2)??);
        let found = (1..=12).contains(&month).then(|| Day::of(year, month, day))?;
        // 30 February is another day
        (found.civil() == (year, month, day)).then_some(found)
    }

    /// Years begin in March, so that the day that some have more comes last.
    fn of(year: i64, month: i64, day: i64) -> Day {
        let year = if month <= 2 { year - 1 } else { year };
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        Day(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
    }

    fn civil(self) -> (i64, i64, i64) {
        let days = self.0 + 719_468;
        let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        (year + era * 400 + i64::from(month <= 2), month, day)
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `date -u -d DATE +%s` divided by 86400.
    #[test]
    fn days_are_counted_as_by_date() {
        for (text, number) in
            [("1970-01-01", 0), ("2000-02-29", 11016), ("2024-03-01", 19783), ("1940-01-01", -10958), ("2100-03-01", 47541)]
        {
            assert_eq!(Day::parse(text), Some(Day(number)), "{text}");
        }
        for wrong in
            ["2023-02-29", "2024-13-01", "2024-00-01", "2024-1-1", "24-01-01", "2024-01-00", "2024-01-32", "2024/01/01", "", "+024-01-01"]
        {
            assert_eq!(Day::parse(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_day_is_read_as_it_is_written(number in -700_000_i64..2_900_000) {
            prop_assert_eq!(Day::parse(&Day(number).to_string()), Some(Day(number)));
        }
    }
}

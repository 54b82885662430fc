//! Dates and times as people and models write them.

use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use crate::zone::{UnknownZone, zone};

const MONTHS: [&str; 12] =
    ["january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"];
/// Shorter beginnings of a month's name are not taken for it.
const SHORTEST_MONTH: usize = 3;
/// Digits of a second's fraction that count: microseconds.
const FRACTION_DIGITS: usize = 6;

/// A date as it was written, maybe with a time and a time zone.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenTime {
    /// The day.
    pub date: Date,
    /// The time of day, if one was written.
    pub time: Option<Time>,
    /// The time zone, if one was written.
    pub zone: Option<TimeZone>,
}

/// A text that is no date and no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTime {
    /// No date can be read.
    #[error("`{}` is not a date; expected one such as 1987-06-24 or 1987-06-24 10:00:00", shown(.0))]
    Unreadable(String),
    /// The year is not first, so the day and the month could be exchanged.
    #[error("`{}` does not say which number is the day; write the year first, such as 1987-06-24", shown(.0))]
    Ambiguous(String),
    /// A day that no calendar has.
    #[error("there is no {year:04}-{month:02}-{day:02}; {expected}", expected = days_of(*year, *month))]
    NoSuchDay {
        /// The year.
        year: i16,
        /// The month.
        month: i8,
        /// The day.
        day: i8,
    },
    /// What follows the date is no time of day.
    #[error("`{}` is not a time of day; expected one such as 10:00 or 23:59:59", shown(.0))]
    Time(String),
    /// What follows the time is no time zone.
    #[error(transparent)]
    Zone(#[from] UnknownZone),
    /// Where only a date is wanted, there is more.
    #[error("`{}` is more than a date; expected one such as 1987-06-24", shown(.0))]
    MoreThanDate(String),
}

/// What mistakes show of a text.
fn shown(text: &str) -> String {
    text.trim().chars().take(40).flat_map(char::escape_debug).collect()
}

fn days_of(year: i16, month: i8) -> String {
    match Date::new(year, month, 1) {
        Ok(first) if year > 0 => format!("that month has {} days", first.days_in_month()),
        _ if (1..=12).contains(&month) => "expected a year from 1 to 9999".to_owned(),
        _ => "a year has 12 months, and the month stands in the middle".to_owned(),
    }
}

/// Reads a date: `1987-06-24`, `1987/6/24`, `19870624`, `24 June 1987`, `June 24, 1987` or
/// `1987年6月24日`.
///
/// # Errors
/// The text is something else, or there is no such day.
pub fn written_date(text: &str) -> Result<Date, InvalidTime> {
    let (date, rest) = date(text)?;
    if rest.trim().is_empty() { Ok(date) } else { Err(InvalidTime::MoreThanDate(text.to_owned())) }
}

/// Reads a date as [`written_date`] does, maybe with a time of day (`10:00`, `10:00:00.5`,
/// `10:00 pm`) and then a time zone: `Z`, an offset such as `+02:00`, or a name of the IANA
/// database, also in square brackets. Fractions count to the microsecond.
///
/// # Errors
/// The text is something else, or there is no such day.
pub fn written_time(text: &str) -> Result<WrittenTime, InvalidTime> {
    let (date, rest) = date(text)?;
    let rest = rest.strip_prefix(['T', 't', ',']).unwrap_or(rest).trim();
    if rest.is_empty() {
        return Ok(WrittenTime { date, time: None, zone: None });
    }
    if !rest.starts_with(|c: char| c.is_ascii_digit()) {
        return match zone(unbracketed(rest)) {
            Ok(zone) => Ok(WrittenTime { date, time: None, zone: Some(zone) }),
            Err(_) => Err(InvalidTime::Time(rest.to_owned())),
        };
    }
    let (time, rest) = time(rest)?;
    // `+02:00[Europe/Paris]` says the offset twice, and an hour that clocks show twice only once
    let place = match rest.find('[') {
        Some(at) if rest[..at].trim().is_empty() => unbracketed(&rest[at..]),
        Some(at) => rest[..at].trim(),
        None => rest.trim(),
    };
    let zone = if place.is_empty() { None } else { Some(zone(place)?) };
    Ok(WrittenTime { date, time: Some(time), zone })
}

fn unbracketed(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text)
}

/// A date and what follows it.
fn date(text: &str) -> Result<(Date, &str), InvalidTime> {
    let trimmed = text.trim();
    let unreadable = || InvalidTime::Unreadable(text.to_owned());
    let (digits, rest) = number(trimmed);
    let (year, month, day, rest) = match digits.len() {
        8 => (&digits[..4], small(&digits[4..6]), &digits[6..], rest),
        4 => {
            let (month, day, rest) = after_year(rest).ok_or_else(unreadable)?;
            (digits, small(month), day, rest)
        }
        1 | 2 if numbers(trimmed) => return Err(InvalidTime::Ambiguous(text.to_owned())),
        1 | 2 => {
            let rest = ["st", "nd", "rd", "th"].iter().find_map(|ending| rest.strip_prefix(ending)).unwrap_or(rest);
            let rest = rest.trim_start_matches([' ', '.', '-']);
            let (month, rest) = month(rest.strip_prefix("of ").unwrap_or(rest)).ok_or_else(unreadable)?;
            let (year, rest) = number(rest.trim_start_matches([' ', ',', '.', '-']));
            (year, Some(month), digits, rest)
        }
        0 => {
            let (month, rest) = month(trimmed).ok_or_else(unreadable)?;
            let (day, rest) = number(rest.trim_start_matches([' ', '.', '-']));
            let rest = ["st", "nd", "rd", "th"].iter().find_map(|ending| rest.strip_prefix(ending)).unwrap_or(rest);
            let (year, rest) = number(rest.trim_start_matches([' ', ',']));
            (year, Some(month), day, rest)
        }
        _ => return Err(unreadable()),
    };
    if year.len() != 4 {
        return Err(unreadable());
    }
    let (year, Some(month), Some(day)) = (year.parse().unwrap_or_default(), month, small(day)) else { return Err(unreadable()) };
    match Date::new(year, month, day) {
        Ok(date) if year > 0 => Ok((date, rest)),
        _ => Err(InvalidTime::NoSuchDay { year, month, day }),
    }
}

/// The leading digits and the rest.
fn number(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A number of one or two digits.
fn small(digits: &str) -> Option<i8> {
    if (1..=2).contains(&digits.len()) { digits.parse().ok() } else { None }
}

/// Month and day after a year, with the same separator twice.
fn after_year(rest: &str) -> Option<(&str, &str, &str)> {
    for (first, second, last) in [("-", "-", ""), ("/", "/", ""), (".", ".", ""), ("年", "月", "日")] {
        let Some(rest) = rest.strip_prefix(first) else { continue };
        let (month, rest) = number(rest);
        let (day, rest) = number(rest.strip_prefix(second)?);
        return Some((month, day, rest.strip_prefix(last).unwrap_or(rest)));
    }
    None
}

/// Whether a text is three numbers, such as `06/24/1987`.
fn numbers(text: &str) -> bool {
    let mut parts = text.splitn(3, ['/', '.', '-']).map(|part| number(part).0);
    [parts.next(), parts.next(), parts.next()].iter().all(|part| part.is_some_and(|digits| !digits.is_empty()))
}

/// A month by its English name or a beginning of it.
fn month(text: &str) -> Option<(i8, &str)> {
    let (word, rest) = text.split_at(text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let word = word.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| word.len() >= SHORTEST_MONTH && month.starts_with(&word))?;
    Some((i8::try_from(at + 1).ok()?, rest))
}

/// A time of day and what follows it.
fn time(text: &str) -> Result<(Time, &str), InvalidTime> {
    let invalid = || InvalidTime::Time(text.to_owned());
    let (hour, rest) = number(text);
    let mut hour = small(hour).ok_or_else(invalid)?;
    let (minute, rest) = match rest.strip_prefix(':') {
        Some(rest) => two(rest).ok_or_else(invalid)?,
        None => (0, rest),
    };
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => two(rest).ok_or_else(invalid)?,
        None => (0, rest),
    };
    let (fraction, rest) = rest.strip_prefix(['.', ',']).map_or(("", rest), number);
    let counted = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let nanoseconds = format!("{counted:0<9}").parse().map_err(|_| invalid())?;
    let named = rest.trim_start();
    // not the beginning of `America`
    let word = named.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
    let lower = word.to_ascii_lowercase();
    let rest = match lower.as_str() {
        "am" | "pm" if (1..=12).contains(&hour) => {
            hour = hour % 12 + if lower == "pm" { 12 } else { 0 };
            &named[2..]
        }
        // an hour alone is no time, so that `2024-01-01 5` is a mistake
        _ if text.as_bytes().get(1..3).is_some_and(|after| after.contains(&b':')) => named,
        _ => return Err(invalid()),
    };
    Ok((Time::new(hour, minute, second, nanoseconds).map_err(|_| invalid())?, rest))
}

/// A number of two digits and what follows it.
fn two(text: &str) -> Option<(i8, &str)> {
    let (digits, rest) = number(text);
    if digits.len() == 2 { Some((digits.parse().ok()?, rest)) } else { None }
}

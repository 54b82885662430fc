//! The time between two moments: as a calendar counts it, and exactly.

use std::fmt;

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{Span, Timestamp};

use crate::lunar::days_between;
use crate::words::{clock, words};
use crate::written::WrittenTime;

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// The time from a start to an end. All its numbers are negative or 0, if the end is before the
/// start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// As a calendar counts it.
    pub calendar: Calendar,
    /// Exactly.
    pub exact: Exact,
    /// What was assumed, for the reader.
    pub notes: Vec<String>,
}

/// Whole years, then whole months, then whole days from the start, and what is left. A month goes
/// to the same day of the next month, or to its last day where it has no such day: from 31 January
/// to 28 February is one month in a common year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Calendar {
    /// Whole years.
    pub years: i64,
    /// Whole months beside the years.
    pub months: i64,
    /// Whole days beside the months.
    pub days: i64,
    /// Microseconds beside the days.
    pub microseconds: i64,
}

/// Microseconds; a day is 24 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Exact(pub i64);

/// Two times without a difference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoDelta {
    /// One of two times alone has a time zone.
    #[error("the {with} has a time zone and the {without} has none; name the time zone of both")]
    OneZone {
        /// `start` or `end`.
        with: &'static str,
        /// The other one.
        without: &'static str,
    },
    /// In the last days of the year 9999, or before the year 1 of UTC.
    #[error("`{0}` is too close to the end of the calendar to have a time zone; expected a year from 2 to 9998")]
    Range(DateTime),
}

/// The time from `start` to `end`. Days without times are counted as days. A day beside a time
/// means its midnight. Without time zones, days have 24 hours; with them, the calendar is that of
/// the start's time zone.
///
/// # Errors
/// One of two times has a time zone and the other has none, or a time zone cannot hold a time.
pub fn delta(start: &WrittenTime, end: &WrittenTime) -> Result<Delta, NoDelta> {
    let mut notes = Vec::new();
    let days_alone = start.time.is_none() && end.time.is_none();
    for (side, written) in [("start", start), ("end", end)] {
        if written.time.is_none() && !days_alone {
            notes.push(format!("the {side} has no time of day, so 00:00 was taken"));
        }
    }
    let (line, date, last) = match (&start.zone, &end.zone) {
        _ if days_alone => (Line { zone: None, time: Time::midnight() }, start.date, end.date.to_datetime(Time::midnight())),
        (None, None) => (Line { zone: None, time: clock_of(start) }, start.date, end.date.to_datetime(clock_of(end))),
        (Some(_), None) => return Err(NoDelta::OneZone { with: "start", without: "end" }),
        (None, Some(_)) => return Err(NoDelta::OneZone { with: "end", without: "start" }),
        (Some(zone), Some(other)) => {
            // where the start's clock skips its time, the moment after the gap is the start
            let first = zone.to_datetime(resolve(start, zone, &mut notes)?);
            let line = Line { zone: Some(zone.clone()), time: first.time() };
            let last = resolve(end, other, &mut notes)?;
            return Ok(line.delta(first.date(), zone.to_datetime(last), last.as_microsecond(), notes));
        }
    };
    let end = line.moment(last.date(), 0, 0) + microseconds(line.time, last.time());
    Ok(line.delta(date, last, end, notes))
}

/// The moments at which the start's clock shows the start's time, in microseconds.
struct Line {
    zone: Option<TimeZone>,
    time: Time,
}

impl Line {
    /// The moment so many months, then days after a day.
    fn moment(&self, date: Date, months: i64, days: i64) -> i64 {
        let date = date.saturating_add(Span::new().months(months)).saturating_add(Span::new().days(days));
        match &self.zone {
            // only what is beyond the end can be out of range
            Some(zone) => zone.to_timestamp(date.to_datetime(self.time)).unwrap_or(Timestamp::MAX).as_microsecond(),
            None => days_between(Date::ZERO, date) * MICROSECONDS_PER_DAY + microseconds(Time::midnight(), self.time),
        }
    }

    /// From the start on a day to a moment, which the start's clock shows as `last`.
    fn delta(&self, date: Date, last: DateTime, end: i64, notes: Vec<String>) -> Delta {
        let start = self.moment(date, 0, 0);
        let sign = if end < start { -1 } else { 1 };
        let beyond = |moment: i64| if sign < 0 { moment < end } else { moment > end };
        let mut months = i64::from(last.year() - date.year()) * 12 + i64::from(last.month() - date.month());
        while months != 0 && beyond(self.moment(date, months, 0)) {
            months -= sign;
        }
        let mut days = days_between(date.saturating_add(Span::new().months(months)), last.date());
        while days * sign > 0 && beyond(self.moment(date, months, days)) {
            days -= sign;
        }
        if days * sign < 0 {
            days = 0; // clocks that were set back over midnight
        }
        let microseconds = end - self.moment(date, months, days);
        let calendar = Calendar { years: months / 12, months: months % 12, days, microseconds };
        Delta { calendar, exact: Exact(end - start), notes }
    }
}

fn clock_of(written: &WrittenTime) -> Time {
    written.time.unwrap_or_else(Time::midnight)
}

fn microseconds(from: Time, to: Time) -> i64 {
    i64::try_from(from.duration_until(to).as_micros()).unwrap_or_default()
}

/// The moment that a clock shows: the first of two, and after a gap by as much as the time is in
/// it. Says so where it is shown never or twice.
fn resolve(written: &WrittenTime, zone: &TimeZone, notes: &mut Vec<String>) -> Result<Timestamp, NoDelta> {
    let civil = written.date.to_datetime(clock_of(written));
    let taken = zone.to_timestamp(civil).map_err(|_| NoDelta::Range(civil))?;
    let name = zone.iana_name().unwrap_or("its time zone");
    let shown = |time: DateTime| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Gap { .. } => {
            notes.push(format!("the clocks of {name} skip {}, so {} was taken", shown(civil), shown(zone.to_datetime(taken))));
        }
        AmbiguousOffset::Fold { .. } => notes.push(format!("the clocks of {name} show {} twice; the first was taken", shown(civil))),
        AmbiguousOffset::Unambiguous { .. } => {}
    }
    Ok(taken)
}

impl fmt::Display for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Calendar { years, months, days, microseconds } = *self;
        said(f, &[(years, "year"), (months, "month"), (days, "day")], microseconds)
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        said(f, &[(self.0 / MICROSECONDS_PER_DAY, "day")], self.0 % MICROSECONDS_PER_DAY)
    }
}

fn said(f: &mut fmt::Formatter<'_>, days: &[(i64, &str)], microseconds: i64) -> fmt::Result {
    let clock = clock(microseconds);
    if clock.is_empty() {
        return f.write_str(&words(days));
    }
    let days = if days.iter().all(|(number, _)| *number == 0) { None } else { Some(words(days)) };
    f.write_str(&days.into_iter().chain(clock).collect::<Vec<_>>().join(" "))
}

impl fmt::Display for Delta {
    /// Such as `8 months 2 days = 247 days`; once, where both are the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calendar, exact) = (self.calendar.to_string(), self.exact.to_string());
        f.write_str(&calendar)?;
        if calendar == exact { Ok(()) } else { write!(f, " = {exact}") }
    }
}

//! Days with all that a calendar says of them.

use jiff::civil::{Date, Weekday};

use crate::festivals::{self, Festival};
use crate::lunar::{LunarDate, days_between};
use crate::signs::{Sign, sign};
use crate::terms::{self, Term};
use crate::{OutOfRange, YEARS};

/// A longer range is refused.
pub const MOST_DAYS: i64 = 101;

/// A day of the Gregorian calendar, and what it is in others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    /// The day.
    pub date: Date,
    /// Its weekday.
    pub weekday: Weekday,
    /// The day of the Chinese lunar calendar.
    pub lunar: LunarDate,
    /// Its western sign.
    pub sign: Sign,
    /// The solar term that falls on it in Beijing.
    pub term: Option<Term>,
    /// What is celebrated.
    pub festivals: Vec<Festival>,
}

impl Day {
    /// A day.
    ///
    /// # Errors
    /// The year is not in [`YEARS`].
    pub fn of(date: Date) -> Result<Day, OutOfRange> {
        let lunar = LunarDate::of(date).ok_or(OutOfRange::Year(i64::from(date.year())))?;
        let festivals = festivals::on(date, lunar);
        Ok(Day { date, weekday: date.weekday(), lunar, sign: sign(date), term: terms::on(date), festivals })
    }
}

/// The days from `start` to `end`, both included.
///
/// # Errors
/// The end is before the start, there are more than [`MOST_DAYS`], or a year is not in [`YEARS`].
pub fn days(start: Date, end: Date) -> Result<Vec<Day>, OutOfRange> {
    for date in [start, end] {
        if !YEARS.contains(&date.year()) {
            return Err(OutOfRange::Year(i64::from(date.year())));
        }
    }
    let count = days_between(start, end) + 1;
    if count < 1 {
        return Err(OutOfRange::Order { start, end });
    }
    if count > MOST_DAYS {
        return Err(OutOfRange::Days(count));
    }
    let all = std::iter::successors(Some(start), |date| date.tomorrow().ok());
    all.take_while(|date| *date <= end).map(Day::of).collect()
}

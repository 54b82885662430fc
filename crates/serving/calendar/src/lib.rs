//! Dates and times for tools, computed and not looked up: differences between two dates or times,
//! days of the Gregorian and the Chinese calendar, the 24 solar terms, sunrise and sunset. Legal
//! holidays are the exception: people decide them, so they are a table with the source of each row.
//!
//! Nothing here reads a clock, a file or a network. The IANA time zone database is in the program.

use std::ops::RangeInclusive;

use jiff::tz::Offset;

mod day;
mod delta;
mod festivals;
mod holidays;
mod lunar;
mod lunar_years;
mod moment;
mod rise;
mod signs;
mod sun;
mod sun_terms;
mod terms;
mod words;
mod written;
mod zone;

pub use day::{Day, MOST_DAYS, days};
pub use delta::{Calendar, Delta, Exact, NoDelta, delta};
pub use festivals::Festival;
pub use holidays::{Holiday, HolidayTable, HolidayYear, TableError, china};
pub use jiff::Timestamp;
pub use jiff::civil::{Date, DateTime, Time, Weekday};
pub use jiff::tz::TimeZone;
pub use lunar::{LunarDate, YearName};
pub use rise::{SunDay, sun_day};
pub use signs::{Sign, sign};
pub use terms::{TERMS, Term, solar_terms};
pub use written::{InvalidTime, WrittenTime, written_date, written_time};
pub use zone::{UnknownZone, zone};

/// The years for which the sun and the Chinese calendar are computed.
pub const YEARS: RangeInclusive<i16> = 1900..=2100;

/// Input that nothing is computed for.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum OutOfRange {
    /// A year.
    #[error("the year {0} is not covered; expected {first} to {last}", first = YEARS.start(), last = YEARS.end())]
    Year(i64),
    /// A range of days that begins after its end.
    #[error("the end {end} is before the start {start}; expected the earlier day first")]
    Order {
        /// The first day.
        start: Date,
        /// The last one.
        end: Date,
    },
    /// Too many days.
    #[error("{0} days are too many; expected at most {MOST_DAYS}, so ask for the rest in another call")]
    Days(i64),
    /// A day that a time zone does not have, because its clocks went over the date line.
    #[error("the clocks of that time zone skip {0}; ask for the day before or after it")]
    Skipped(Date),
    /// A latitude.
    #[error("the latitude {0} is not on the globe; expected -90 (south) to 90 (north) degrees")]
    Latitude(f64),
    /// A longitude.
    #[error("the longitude {0} is not on the globe; expected -180 (west) to 180 (east) degrees")]
    Longitude(f64),
}

/// The standard time of China, UTC+8, by which the days of its calendar have begun since 1929.
const BEIJING: Offset = Offset::constant(8);

/// A moment by the clock of Beijing without summer time.
pub fn beijing(time: Timestamp) -> DateTime {
    BEIJING.to_datetime(time)
}

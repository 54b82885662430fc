//! Legal holidays, by tables: people decide them, and nothing here guesses them.

use std::collections::BTreeSet;

use autoact_base::error::line;
use jiff::civil::Date;
use serde::Deserialize;

use crate::lunar::days_between;

/// Mainland China's table.
const CHINA: &str = include_str!("../data/holidays-cn.toml");
/// Of a table's file.
const MOST_BYTES: usize = 256 * 1024;
/// No holiday is longer, and none reaches further into another year.
const MOST_DAYS: i64 = 31;
/// Of a name, in bytes.
const MOST_NAME_BYTES: usize = 120;

/// The legal holidays of a country.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HolidayTable {
    /// Whose holidays they are, such as `mainland China`.
    pub region: String,
    /// Years, in any order.
    #[serde(default, rename = "year")]
    pub years: Vec<HolidayYear>,
}

/// The holidays of a year.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HolidayYear {
    /// The year.
    pub year: i16,
    /// Where the dates are from.
    pub source: String,
    /// The holidays, by date.
    pub holidays: Vec<Holiday>,
}

/// Days in a row that are free.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Holiday {
    /// In English.
    pub name: String,
    /// In the language of the country.
    pub local: Option<String>,
    /// The first free day.
    #[serde(deserialize_with = "day")]
    pub from: Date,
    /// The last free day; without it there is one.
    #[serde(default, deserialize_with = "maybe_day")]
    to: Option<Date>,
    /// Days of a weekend that are worked in return.
    #[serde(default, deserialize_with = "each_day")]
    pub work: Vec<Date>,
}

/// A table that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// It is too large.
    #[error("the table has {0} bytes; expected at most {MOST_BYTES}")]
    Size(usize),
    /// It is not TOML, or has other keys.
    #[error("not a table of holidays: {0}")]
    Form(String),
    /// A year stands there twice.
    #[error("the year {0} stands there twice; join its entries")]
    Twice(i16),
    /// A holiday has an impossible date.
    #[error("`{name}` of {year}: {mistake}")]
    Holiday {
        /// The year that it stands under.
        year: i16,
        /// Its name.
        name: String,
        /// What is wrong.
        mistake: String,
    },
}

impl Holiday {
    /// The last free day.
    pub fn to(&self) -> Date {
        self.to.unwrap_or(self.from)
    }

    /// How many days are free.
    pub fn days(&self) -> i64 {
        days_between(self.from, self.to()) + 1
    }

    fn mistake(&self, year: i16) -> Option<String> {
        let near = |date: &Date| {
            let (first, last) = (Date::new(year, 1, 1), Date::new(year, 12, 31));
            first.is_ok_and(|first| days_between(*date, first) <= MOST_DAYS)
                && last.is_ok_and(|last| days_between(last, *date) <= MOST_DAYS)
        };
        if self.name.trim().is_empty() || self.name.len() > MOST_NAME_BYTES || self.name.contains(char::is_control) {
            return Some(format!("its name is not one line of 1 to {MOST_NAME_BYTES} bytes"));
        }
        if !(1..=MOST_DAYS).contains(&self.days()) {
            return Some(format!("from {} to {} are {} days; expected 1 to {MOST_DAYS}", self.from, self.to(), self.days()));
        }
        let far = [self.from, self.to()].into_iter().chain(self.work.iter().copied()).find(|date| !near(date));
        far.map(|date| format!("{date} is not in that year"))
    }
}

impl HolidayTable {
    /// Reads a table: TOML with `region` and entries `[[year]]`, such as `data/holidays-cn.toml`.
    ///
    /// # Errors
    /// Names the first mistake.
    pub fn parse(text: &str) -> Result<HolidayTable, TableError> {
        if text.len() > MOST_BYTES {
            return Err(TableError::Size(text.len()));
        }
        let mut table: HolidayTable = toml::from_str(text).map_err(|error| TableError::Form(line(&error)))?;
        let mut seen = BTreeSet::new();
        for year in &mut table.years {
            if !seen.insert(year.year) {
                return Err(TableError::Twice(year.year));
            }
            for holiday in &year.holidays {
                if let Some(mistake) = holiday.mistake(year.year) {
                    return Err(TableError::Holiday { year: year.year, name: holiday.name.clone(), mistake });
                }
            }
            year.holidays.sort_by_key(|holiday| holiday.from);
        }
        table.years.sort_by_key(|year| year.year);
        Ok(table)
    }

    /// The holidays of a year; `None`, if the table does not have it.
    pub fn year(&self, year: i16) -> Option<&HolidayYear> {
        self.years.iter().find(|entry| entry.year == year)
    }

    /// The holidays with a free or a worked day in a range of days, and the years of the range
    /// that the table does not have.
    pub fn between(&self, start: Date, end: Date) -> (Vec<&Holiday>, Vec<i16>) {
        let inside = |date: &Date| (start..=end).contains(date);
        let meets = |holiday: &&Holiday| holiday.from <= end && holiday.to() >= start || holiday.work.iter().any(inside);
        let holidays = self.years.iter().flat_map(|year| &year.holidays).filter(meets).collect();
        (holidays, (start.year()..=end.year()).filter(|year| self.year(*year).is_none()).collect())
    }

    /// The years of the table, such as `2004 to 2006, 2008`.
    pub fn covered(&self) -> String {
        let years: Vec<i16> = self.years.iter().map(|year| year.year).collect();
        let runs = years.chunk_by(|left, right| left.checked_add(1) == Some(*right));
        let said: Vec<String> = runs
            .filter_map(|run| match run {
                [] => None,
                [year] => Some(year.to_string()),
                [first, .., last] => Some(format!("{first} to {last}")),
            })
            .collect();
        if said.is_empty() { "no year".to_owned() } else { said.join(", ") }
    }
}

/// The legal holidays of mainland China.
///
/// # Errors
/// Never: a test reads the table.
pub fn china() -> Result<HolidayTable, TableError> {
    HolidayTable::parse(CHINA)
}

/// A date of TOML, which is not in quotation marks.
struct Day(Date);

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Day, D::Error> {
        let written = toml::value::Datetime::deserialize(deserializer)?;
        let date = match (written.date, written.time, written.offset) {
            (Some(date), None, None) => date,
            _ => return Err(serde::de::Error::custom(format!("`{written}` is not a day; expected one such as 2026-01-01"))),
        };
        let parts = i16::try_from(date.year).ok().zip(i8::try_from(date.month).ok()).zip(i8::try_from(date.day).ok());
        let date = parts.and_then(|((year, month), day)| Date::new(year, month, day).ok());
        date.map(Day).ok_or_else(|| serde::de::Error::custom(format!("there is no {written}")))
    }
}

fn day<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Date, D::Error> {
    Day::deserialize(deserializer).map(|day| day.0)
}

fn maybe_day<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Date>, D::Error> {
    day(deserializer).map(Some)
}

fn each_day<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<Date>, D::Error> {
    Vec::<Day>::deserialize(deserializer).map(|days| days.into_iter().map(|day| day.0).collect())
}

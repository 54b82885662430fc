//! Dates of the Chinese lunar calendar.

use std::fmt;

use jiff::civil::Date;

use crate::lunar_years::{FIRST_YEAR, YEARS};

/// The twelve animals, in English and in Chinese, from the year 4.
const ANIMALS: [(&str, &str); 12] = [
    ("Rat", "鼠"),
    ("Ox", "牛"),
    ("Tiger", "虎"),
    ("Rabbit", "兔"),
    ("Dragon", "龙"),
    ("Snake", "蛇"),
    ("Horse", "马"),
    ("Goat", "羊"),
    ("Monkey", "猴"),
    ("Rooster", "鸡"),
    ("Dog", "狗"),
    ("Pig", "猪"),
];
const STEMS: [&str; 10] = ["甲", "乙", "丙", "丁", "戊", "己", "庚", "辛", "壬", "癸"];
const BRANCHES: [&str; 12] = ["子", "丑", "寅", "卯", "辰", "巳", "午", "未", "申", "酉", "戌", "亥"];
const MONTHS: [&str; 12] = ["正", "二", "三", "四", "五", "六", "七", "八", "九", "十", "冬", "腊"];
const DIGITS: [&str; 11] = ["", "一", "二", "三", "四", "五", "六", "七", "八", "九", "十"];

/// A day of the Chinese lunar calendar. Displayed as `2025-06L-01`, where `L` marks a leap month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LunarDate {
    /// The year of the Gregorian calendar in which the lunar year begins.
    pub year: i16,
    /// 1 to 12.
    pub month: u8,
    /// Whether the month is the second one of this number.
    pub leap: bool,
    /// 1 to 30.
    pub day: u8,
}

/// What a lunar year is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YearName {
    /// Its animal in English.
    pub animal: &'static str,
    /// Its animal in Chinese.
    pub animal_chinese: &'static str,
    /// Its heavenly stem.
    pub stem: &'static str,
    /// Its earthly branch.
    pub branch: &'static str,
}

impl LunarDate {
    /// The lunar date of a day, from 1900-01-01 to 2100-12-31.
    pub fn of(date: Date) -> Option<LunarDate> {
        if !crate::YEARS.contains(&date.year()) {
            return None;
        }
        let this = date.year();
        let after = |year: i16| Some(days_between(new_year(year)?, date));
        let (year, mut days) = match after(this)? {
            days if days >= 0 => (this, days),
            _ => (this - 1, after(this - 1)?),
        };
        let row = row(year)?;
        let doubled = row >> 13 & 15;
        let months = 12 + u32::from(doubled > 0);
        for at in 0..months {
            let length = 29 + i64::from(row >> at & 1);
            if days < length {
                // the doubled month is followed by its leap month
                let leap = doubled > 0 && at == doubled;
                let month = at + u32::from(doubled == 0 || at < doubled);
                return Some(LunarDate { year, month: u8::try_from(month).ok()?, leap, day: u8::try_from(days + 1).ok()? });
            }
            days -= length;
        }
        None
    }

    /// What its year is called. The year begins with the lunar new year.
    pub fn year_name(&self) -> YearName {
        let since = |cycle: i16| usize::try_from((self.year - 4).rem_euclid(cycle)).unwrap_or_default();
        let (animal, animal_chinese) = ANIMALS[since(12)];
        YearName { animal, animal_chinese, stem: STEMS[since(10)], branch: BRANCHES[since(12)] }
    }

    /// Month and day in Chinese, such as `闰六月初一`.
    pub fn chinese(&self) -> String {
        let month = MONTHS.get(usize::from(self.month).wrapping_sub(1)).copied().unwrap_or_default();
        let day = usize::from(self.day);
        let tens = match day {
            ..=10 => "初",
            11..=19 => "十",
            20 => "二十",
            21..=29 => "廿",
            _ => "三十",
        };
        let digit = if day == 10 { 10 } else { day % 10 };
        format!("{}{month}月{tens}{}", if self.leap { "闰" } else { "" }, DIGITS[digit])
    }

    /// Whether it is the last day of its year.
    pub(crate) fn is_last(&self, date: Date) -> bool {
        self.month == 12 && date.tomorrow().ok().is_some_and(|tomorrow| new_year(self.year + 1) == Some(tomorrow))
    }
}

impl fmt::Display for LunarDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:02}{}-{:02}", self.year, self.month, if self.leap { "L" } else { "" }, self.day)
    }
}

fn row(year: i16) -> Option<u32> {
    YEARS.get(usize::try_from(year - FIRST_YEAR).ok()?).copied()
}

/// The first day of a lunar year.
fn new_year(year: i16) -> Option<Date> {
    let days = row(year)? >> 17;
    let first = Date::new(year, 1, 1).ok()?;
    first.checked_add(jiff::Span::new().days(i64::from(days))).ok()
}

/// Days from one date to another; negative, if it is earlier.
pub(crate) fn days_between(from: Date, to: Date) -> i64 {
    from.duration_until(to).as_hours() / 24
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lunar(year: i16, month: i8, day: i8) -> LunarDate {
        LunarDate::of(Date::constant(year, month, day)).unwrap()
    }

    #[test]
    fn known_days_have_their_lunar_dates() {
        assert_eq!(lunar(1900, 1, 1).to_string(), "1899-12-01");
        assert_eq!(lunar(2025, 7, 25).to_string(), "2025-06L-01");
        assert_eq!(lunar(2025, 7, 25).chinese(), "闰六月初一");
        assert_eq!(lunar(2026, 2, 16).chinese(), "腊月廿九");
        assert_eq!(lunar(2026, 2, 17).chinese(), "正月初一");
        assert_eq!(lunar(2033, 12, 22).to_string(), "2033-11L-01", "the leap month that older tables had as the 7th");
        assert_eq!(lunar(1984, 2, 2).year_name(), YearName { animal: "Rat", animal_chinese: "鼠", stem: "甲", branch: "子" });
        assert_eq!(LunarDate::of(Date::constant(1899, 12, 31)), None);
        assert_eq!(LunarDate::of(Date::constant(2101, 1, 1)), None);
    }

    #[test]
    fn days_have_their_chinese_names() {
        let names: Vec<String> =
            [1, 10, 11, 19, 20, 21, 29, 30].map(|day| LunarDate { year: 2025, month: 12, leap: false, day }.chinese()).to_vec();
        assert_eq!(names, ["腊月初一", "腊月初十", "腊月十一", "腊月十九", "腊月二十", "腊月廿一", "腊月廿九", "腊月三十"]);
    }
}

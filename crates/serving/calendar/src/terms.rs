//! The 24 solar terms.

use jiff::Timestamp;
use jiff::civil::Date;

use crate::moment;
use crate::sun::Sun;
use crate::{OutOfRange, YEARS, beijing};

/// From one term to the next the sun passes so many degrees.
const DEGREES: f64 = 15.0;
/// Of the year's first term, Xiaohan.
const FIRST_DEGREES: f64 = 285.0;
/// Degrees of longitude in a day, on average.
const DEGREES_PER_DAY: f64 = 360.0 / 365.2422;
/// When Xiaohan is, in days after 1 January 0h UT, to within two days.
const FIRST_DAYS: f64 = 4.7;
/// Newton's method doubles the exact digits in each step; from 2 days away 4 steps leave nothing.
const STEPS: usize = 5;

/// One of the 24 points of the sun's yearly way, 15 degrees from the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term {
    /// In pinyin, without tones.
    pub pinyin: &'static str,
    /// In English.
    pub english: &'static str,
    /// In Chinese.
    pub chinese: &'static str,
}

/// The terms in the order of a year of the Gregorian calendar.
pub const TERMS: [Term; 24] = [
    term("Xiaohan", "Minor Cold", "小寒"),
    term("Dahan", "Major Cold", "大寒"),
    term("Lichun", "Start of Spring", "立春"),
    term("Yushui", "Rain Water", "雨水"),
    term("Jingzhe", "Awakening of Insects", "惊蛰"),
    term("Chunfen", "Spring Equinox", "春分"),
    term("Qingming", "Clear and Bright", "清明"),
    term("Guyu", "Grain Rain", "谷雨"),
    term("Lixia", "Start of Summer", "立夏"),
    term("Xiaoman", "Grain Buds", "小满"),
    term("Mangzhong", "Grain in Ear", "芒种"),
    term("Xiazhi", "Summer Solstice", "夏至"),
    term("Xiaoshu", "Minor Heat", "小暑"),
    term("Dashu", "Major Heat", "大暑"),
    term("Liqiu", "Start of Autumn", "立秋"),
    term("Chushu", "End of Heat", "处暑"),
    term("Bailu", "White Dew", "白露"),
    term("Qiufen", "Autumn Equinox", "秋分"),
    term("Hanlu", "Cold Dew", "寒露"),
    term("Shuangjiang", "Frost's Descent", "霜降"),
    term("Lidong", "Start of Winter", "立冬"),
    term("Xiaoxue", "Minor Snow", "小雪"),
    term("Daxue", "Major Snow", "大雪"),
    term("Dongzhi", "Winter Solstice", "冬至"),
];

const fn term(pinyin: &'static str, english: &'static str, chinese: &'static str) -> Term {
    Term { pinyin, english, chinese }
}

/// When the terms of a year are, in the order of [`TERMS`].
///
/// # Errors
/// The year is not in [`YEARS`].
pub fn solar_terms(year: i16) -> Result<[(Term, Timestamp); 24], OutOfRange> {
    if !YEARS.contains(&year) {
        return Err(OutOfRange::Year(i64::from(year)));
    }
    let mut terms = TERMS.map(|term| (term, Timestamp::UNIX_EPOCH));
    for (at, term) in (0_u8..).zip(&mut terms) {
        term.1 = moment::timestamp(when(year, at));
    }
    Ok(terms)
}

/// The term on a day, by the clock of Beijing; `None` also outside of [`YEARS`].
pub(crate) fn on(date: Date) -> Option<Term> {
    // a month has two terms, on its 3rd to 9th and on its 18th to 24th day
    let first = u8::try_from(2 * (date.month() - 1)).ok()?;
    let at = first + u8::from(date.day() > 13);
    let day = YEARS.contains(&date.year()).then(|| beijing(moment::timestamp(when(date.year(), at))).date())?;
    (day == date).then(|| TERMS[usize::from(at)])
}

/// Days from 2000-01-01 12:00 UT to a term of a year.
fn when(year: i16, at: u8) -> f64 {
    let target = (FIRST_DEGREES + DEGREES * f64::from(at)).rem_euclid(360.0);
    let mut days = f64::from(year - 2000) * 365.2425 - 0.5 + FIRST_DAYS + DEGREES * f64::from(at) / DEGREES_PER_DAY;
    for _ in 0..STEPS {
        let beyond = (Sun::at(days).longitude - target + 180.0).rem_euclid(360.0) - 180.0;
        days -= beyond / DEGREES_PER_DAY;
    }
    days
}

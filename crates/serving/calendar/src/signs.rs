//! The western signs.

use jiff::civil::Date;

/// A sign of the western zodiac.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// In English.
    pub english: &'static str,
    /// In Chinese.
    pub chinese: &'static str,
}

/// The last day of each sign's first month, and the sign that begins on the next: from January.
const BEGINNINGS: [(i8, Sign); 12] = [
    (19, of("Aquarius", "水瓶座")),
    (18, of("Pisces", "双鱼座")),
    (20, of("Aries", "白羊座")),
    (19, of("Taurus", "金牛座")),
    (20, of("Gemini", "双子座")),
    (21, of("Cancer", "巨蟹座")),
    (22, of("Leo", "狮子座")),
    (22, of("Virgo", "处女座")),
    (22, of("Libra", "天秤座")),
    (23, of("Scorpio", "天蝎座")),
    (22, of("Sagittarius", "射手座")),
    (21, of("Capricorn", "摩羯座")),
];

const fn of(english: &'static str, chinese: &'static str) -> Sign {
    Sign { english, chinese }
}

/// The sign of a day, by the dates that are in common use (Aries from 21 March). They are the same
/// in every year, so on the first or last day of a sign others may count otherwise.
pub fn sign(date: Date) -> Sign {
    let month = usize::try_from(date.month() - 1).unwrap_or_default();
    let (last, begins) = BEGINNINGS[month];
    if date.day() > last { begins } else { BEGINNINGS[(month + 11) % 12].1 }
}

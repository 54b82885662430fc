//! Days that are celebrated, whether or not they are free.

use jiff::civil::{Date, Weekday};

use crate::lunar::LunarDate;

/// A day that is celebrated in China, by its own calendar or as an international day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Festival {
    /// In English.
    pub english: &'static str,
    /// In Chinese.
    pub chinese: &'static str,
    on: On,
    /// The first year that has it; days of old have none.
    since: i16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum On {
    /// Month and day of the lunar calendar, not of a leap month.
    Lunar(u8, u8),
    /// The last day of the lunar year.
    LunarEve,
    /// Month and day.
    Day(i8, i8),
    /// The nth such weekday of a month.
    Weekday(i8, Weekday, i8),
}

const FESTIVALS: [Festival; 30] = [
    festival("Spring Festival", "春节", On::Lunar(1, 1), 0),
    festival("Lantern Festival", "元宵节", On::Lunar(1, 15), 0),
    festival("Dragon Raises Its Head", "龙头节", On::Lunar(2, 2), 0),
    festival("Dragon Boat Festival", "端午节", On::Lunar(5, 5), 0),
    festival("Qixi Festival", "七夕节", On::Lunar(7, 7), 0),
    festival("Ghost Festival", "中元节", On::Lunar(7, 15), 0),
    festival("Mid-Autumn Festival", "中秋节", On::Lunar(8, 15), 0),
    festival("Double Ninth Festival", "重阳节", On::Lunar(9, 9), 0),
    festival("Laba Festival", "腊八节", On::Lunar(12, 8), 0),
    festival("Lunar New Year's Eve", "除夕", On::LunarEve, 0),
    festival("New Year's Day", "元旦节", On::Day(1, 1), 1912),
    festival("Valentine's Day", "情人节", On::Day(2, 14), 0),
    festival("International Women's Day", "妇女节", On::Day(3, 8), 1924),
    festival("Arbor Day", "植树节", On::Day(3, 12), 1979),
    festival("World Consumer Rights Day", "消费者权益日", On::Day(3, 15), 1983),
    festival("April Fools' Day", "愚人节", On::Day(4, 1), 0),
    festival("Labour Day", "劳动节", On::Day(5, 1), 1920),
    festival("Youth Day", "青年节", On::Day(5, 4), 1950),
    festival("Mother's Day", "母亲节", On::Weekday(5, Weekday::Sunday, 2), 1914),
    festival("Children's Day", "儿童节", On::Day(6, 1), 1950),
    festival("Father's Day", "父亲节", On::Weekday(6, Weekday::Sunday, 3), 1972),
    festival("CPC Founding Day", "建党节", On::Day(7, 1), 1941),
    festival("Army Day", "建军节", On::Day(8, 1), 1949),
    festival("Teachers' Day", "教师节", On::Day(9, 10), 1985),
    festival("National Day", "国庆节", On::Day(10, 1), 1949),
    festival("Halloween", "万圣节前夜", On::Day(10, 31), 0),
    festival("All Saints' Day", "万圣节", On::Day(11, 1), 0),
    festival("Thanksgiving (US)", "感恩节", On::Weekday(11, Weekday::Thursday, 4), 1942),
    festival("Christmas Eve", "平安夜", On::Day(12, 24), 0),
    festival("Christmas Day", "圣诞节", On::Day(12, 25), 0),
];

const fn festival(english: &'static str, chinese: &'static str, on: On, since: i16) -> Festival {
    Festival { english, chinese, on, since }
}

/// The festivals of a day: those of the lunar calendar first.
pub(crate) fn on(date: Date, lunar: LunarDate) -> Vec<Festival> {
    let falls = |festival: &&Festival| {
        date.year() >= festival.since
            && match festival.on {
                On::Lunar(month, day) => (lunar.month, lunar.day, lunar.leap) == (month, day, false),
                On::LunarEve => lunar.is_last(date),
                On::Day(month, day) => (date.month(), date.day()) == (month, day),
                On::Weekday(month, weekday, nth) => date.month() == month && date.weekday() == weekday && (date.day() - 1) / 7 + 1 == nth,
            }
    };
    FESTIVALS.iter().filter(falls).copied().collect()
}

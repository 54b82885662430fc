//! Against other implementations: the files in `golden/` are made by the scripts in `make/`, which
//! name their sources.
#![allow(clippy::unwrap_used)] // tests

use std::fmt::Write;

use autoact_calendar::{Date, Day, TimeZone, Timestamp, china, days, delta, solar_terms, sun_day, written_date, written_time};
use sha2::{Digest, Sha256};

fn day(text: &str) -> Date {
    written_date(text).unwrap()
}

fn fields(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn year(number: i16) -> Vec<Day> {
    let all = std::iter::successors(Some(Date::constant(number, 1, 1)), |date| date.tomorrow().ok());
    all.take_while(|date| date.year() == number).map(|date| Day::of(date).unwrap()).collect()
}

/// A day as `make/days.py` writes it.
fn line(day: &Day) -> String {
    let (lunar, name) = (day.lunar, day.lunar.year_name());
    let month = i16::from(lunar.month) * if lunar.leap { -1 } else { 1 };
    let sign = day.sign.chinese.trim_end_matches('座');
    let term = day.term.map_or("-", |term| term.chinese);
    format!("{} {} {month} {} {} {}{} {sign} {term}", day.date, lunar.year, lunar.day, name.animal_chinese, name.stem, name.branch)
}

fn festivals(day: &Day) -> String {
    let mut names: Vec<&str> = day.festivals.iter().map(|festival| festival.chinese).collect();
    names.sort_unstable();
    format!("{} {}", day.date, names.join(" ")).trim_end().to_owned()
}

fn beginning(lines: Vec<String>) -> String {
    let hash = Sha256::digest(lines.join("\n").as_bytes());
    hash.iter().take(8).fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Every day from 1900 to 2100: where one differs, `make/days.py --days YEAR` shows the days of its
/// year.
#[test]
fn every_day_is_that_of_lunar_python() {
    let mut differing = Vec::new();
    for golden in include_str!("golden/days.txt").lines() {
        let [number, of_days, of_festivals] = fields(golden)[..] else { panic!("{golden}") };
        let all = year(number.parse().unwrap());
        if beginning(all.iter().map(line).collect()) != of_days {
            differing.push(number.to_owned());
        }
        if of_festivals != "-" && beginning(all.iter().map(festivals).collect()) != of_festivals {
            differing.push(format!("festivals of {number}"));
        }
    }
    assert_eq!(differing, Vec::<String>::new());
}

/// A leap month has no principal term (the terms at a multiple of 30 degrees), and the winter
/// solstice is in the 11th month: the rules of the calendar, with our sun, against the table.
#[test]
fn the_months_follow_from_the_sun() {
    for number in 1929..=2100 {
        for day in year(number) {
            let Some(term) = day.term else { continue };
            let principal = autoact_calendar::TERMS.iter().position(|other| *other == term).unwrap() % 2 == 1;
            assert!(!(principal && day.lunar.leap), "{}", day.date);
            assert!(term.pinyin != "Dongzhi" || day.lunar.month == 11, "{}", day.date);
        }
    }
}

#[test]
fn the_terms_are_within_a_minute_of_ephem() {
    let mut largest = 0;
    for golden in include_str!("golden/terms.txt").lines() {
        let numbers: Vec<i64> = golden.split(' ').map(|number| number.parse().unwrap()).collect();
        let number = i16::try_from(numbers[0]).unwrap();
        let start = Date::constant(number, 1, 1).to_zoned_datetime(TimeZone::UTC).unwrap().timestamp().as_second();
        let terms = solar_terms(number).unwrap();
        assert_eq!(numbers.len(), terms.len() + 1);
        for (seconds, (_, time)) in numbers[1..].iter().zip(terms) {
            largest = largest.max((time.as_second() - start - seconds).abs());
        }
    }
    println!("largest difference: {largest} s");
    assert!(largest <= 60, "{largest}");
}

#[test]
fn the_sun_rises_and_sets_within_a_minute_of_ephem() {
    let (mut largest, mut compared) = (0, 0);
    for golden in include_str!("golden/sun.txt").lines() {
        let all = fields(golden);
        let (latitude, longitude, date) = (all[0].parse().unwrap(), all[1].parse().unwrap(), day(all[2]));
        let start = date.to_zoned_datetime(TimeZone::UTC).unwrap().timestamp().as_second();
        let seen = sun_day(latitude, longitude, date, &TimeZone::UTC).unwrap();
        for (wanted, times) in [(all[3], &seen.rises), (all[4], &seen.sets)] {
            let wanted: Vec<i64> = wanted.split(',').filter_map(|time| time.parse().ok()).collect();
            assert_eq!(wanted.len(), times.len(), "{golden}: {times:?}");
            for (wanted, time) in wanted.iter().zip(times) {
                largest = largest.max((time.as_second() - start - wanted).abs());
                compared += 1;
            }
        }
        if let Some(place) = all.get(5) {
            assert_eq!(seen.up_at_noon, *place == "up", "{golden}");
            assert_eq!(seen.daylight_seconds, if *place == "up" { 86_400 } else { 0 }, "{golden}");
        }
    }
    println!("largest difference: {largest} s of {compared} times");
    assert!(compared > 1000 && largest <= 60, "{largest} s of {compared}");
}

/// `AUTOACT_TEST_CALENDAR` names a longer file of `make/deltas.py`.
#[test]
fn differences_are_those_of_dateutil() {
    let longer = std::env::var("AUTOACT_TEST_CALENDAR").map(|path| std::fs::read_to_string(path).unwrap());
    let goldens = longer.as_deref().unwrap_or(include_str!("golden/deltas.txt"));
    for golden in goldens.lines() {
        let all = fields(golden);
        let seen = delta(&written_time(all[0]).unwrap(), &written_time(all[1]).unwrap()).unwrap();
        let numbers: Vec<i64> = all[2..].iter().map(|number| number.parse().unwrap()).collect();
        let [years, months, days, hours, minutes, seconds, exact] = numbers[..] else { panic!("{golden}") };
        let calendar = (seen.calendar.years, seen.calendar.months, seen.calendar.days, seen.calendar.microseconds);
        assert_eq!(calendar, (years, months, days, (hours * 3600 + minutes * 60 + seconds) * 1_000_000), "{golden}");
        assert_eq!(seen.exact.0, exact * 1_000_000, "{golden}");
    }
    println!("{} pairs", goldens.lines().count());
}

#[test]
fn differences_over_time_zones_are_those_of_zoneinfo() {
    for golden in include_str!("golden/zoned.txt").lines() {
        let [start, first, end, last, exact] = fields(golden)[..] else { panic!("{golden}") };
        let (start, end) = (written_time(&format!("{start} {first}")).unwrap(), written_time(&format!("{end} {last}")).unwrap());
        let seen = delta(&start, &end).unwrap();
        assert_eq!(seen.exact.0, exact.parse::<i64>().unwrap() * 1_000_000, "{golden}: {seen}");
    }
}

/// The table was made from two packages, which agree on it: `make/holidays_cn.py`.
#[test]
fn every_year_of_the_holidays_has_a_source_and_its_days_fit() {
    let table = china().unwrap();
    assert_eq!(table.covered(), "2004 to 2026");
    for year in &table.years {
        assert!(year.source.starts_with("https://"), "{}", year.year);
        for holiday in &year.holidays {
            assert!(holiday.local.is_some() && holiday.days() <= 10, "{holiday:?}");
            // what is worked in return is on a weekend
            assert!(holiday.work.iter().all(|day| day.weekday().to_monday_one_offset() > 5), "{holiday:?}");
        }
        // the festival itself is within its holiday
        for (name, lunar) in [("Spring Festival", (1, 1)), ("Dragon Boat Festival", (5, 5)), ("Mid-Autumn Festival", (8, 15))] {
            for holiday in year.holidays.iter().filter(|holiday| holiday.name.contains(name)) {
                let all = days(holiday.from, holiday.to()).unwrap();
                assert!(all.iter().any(|day| (day.lunar.month, day.lunar.day) == lunar), "{holiday:?}");
            }
        }
    }
}

#[test]
fn moments_are_in_order() {
    for number in [1900, 1999, 2100] {
        let times: Vec<Timestamp> = solar_terms(number).unwrap().iter().map(|term| term.1).collect();
        assert!(times.is_sorted());
    }
}

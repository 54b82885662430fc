//! What is written, what is refused, and that nothing panics.
#![allow(clippy::unwrap_used)] // tests

use autoact_calendar::{Date, HolidayTable, OutOfRange, TimeZone, days, delta, solar_terms, sun_day, written_date, written_time, zone};
use proptest::prelude::*;

fn between(start: &str, end: &str) -> String {
    let read = |text: &str| written_time(text).map_err(|error| error.to_string());
    let delta = read(start).and_then(|start| read(end).map(|end| (start, end)));
    match delta.map(|(start, end)| delta_text(&start, &end)) {
        Ok(text) | Err(text) => text,
    }
}

fn delta_text(start: &autoact_calendar::WrittenTime, end: &autoact_calendar::WrittenTime) -> String {
    match delta(start, end) {
        Ok(delta) if delta.notes.is_empty() => delta.to_string(),
        Ok(delta) => format!("{delta} ({})", delta.notes.join("; ")),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_case_of_the_paper_and_its_neighbours() {
    assert_eq!(between("1987-06-24", "1988-02-26"), "8 months 2 days = 247 days");
    assert_eq!(between("1988-02-26", "1987-06-24"), "-8 months -2 days = -247 days");
    assert_eq!(between("2026-01-01", "2026-01-01"), "0 days");
    assert_eq!(between("2026-01-01", "2026-01-02"), "1 day");
    assert_eq!(between("0001-01-01", "9999-12-31"), "9998 years 11 months 30 days = 3652058 days");
}

#[test]
fn the_29th_of_february() {
    assert_eq!(between("2000-02-29", "2001-02-28"), "1 year = 365 days");
    assert_eq!(between("2000-02-29", "2001-03-01"), "1 year 1 day = 366 days");
    assert_eq!(between("2000-02-29", "2004-02-28"), "3 years 11 months 30 days = 1460 days");
    assert_eq!(between("2000-02-29", "2004-02-29"), "4 years = 1461 days");
    assert_eq!(between("2000-02-28", "2000-02-29"), "1 day");
    assert_eq!(between("2023-01-31", "2023-02-28"), "1 month = 28 days");
    assert_eq!(between("2024-03-31", "2024-02-29"), "-1 month = -31 days");
    assert_eq!(between("1900-02-29", "2000-01-01"), "there is no 1900-02-29; that month has 28 days");
}

#[test]
fn clocks() {
    assert_eq!(between("1987-06-24 10:00:00", "1987-06-25 09:59:58"), "23 hours 59 minutes 58 seconds");
    assert_eq!(
        between("2026-01-01 10:00", "2026-02-03 12:30:05"),
        "1 month 2 days 2 hours 30 minutes 5 seconds = 33 days 2 hours 30 minutes 5 seconds"
    );
    assert_eq!(between("2026-01-01T00:00:00.25", "2026-01-01T00:00:01"), "0.75 seconds");
    assert_eq!(between("2026-01-01T00:00:01", "2026-01-01T00:00:00.25"), "-0.75 seconds");
    assert_eq!(between("2026-01-01", "2026-01-02 06:00"), "1 day 6 hours (the start has no time of day, so 00:00 was taken)");
    assert_eq!(between("9999-12-31 23:00", "9999-12-31 23:30"), "30 minutes");
}

#[test]
fn time_zones() {
    // an ordinary flight, and the day on which clocks go forward
    assert_eq!(between("2026-07-01 10:30 Europe/Paris", "2026-07-01 12:50 America/New_York"), "8 hours 20 minutes");
    assert_eq!(between("2026-03-28 12:00 Europe/Paris", "2026-03-29 12:00 Europe/Paris"), "1 day = 23 hours");
    assert_eq!(between("2026-10-24 12:00 Europe/Paris", "2026-10-25 12:00 Europe/Paris"), "1 day = 1 day 1 hour");
    assert_eq!(between("2026-01-01T00:00:00Z", "2026-01-01T09:00:00+09:00"), "0 days");
    assert_eq!(between("2026-03-29", "2026-03-30"), "1 day");
    assert_eq!(
        between("2026-03-29 02:30 [Europe/Paris]", "2026-03-29 04:30 [Europe/Paris]"),
        "1 hour (the clocks of Europe/Paris skip 2026-03-29 02:30:00, so 2026-03-29 03:30:00 was taken)"
    );
    assert_eq!(
        between("2026-10-25 02:30 Europe/Paris", "2026-10-25 04:00 Europe/Paris"),
        "2 hours 30 minutes (the clocks of Europe/Paris show 2026-10-25 02:30:00 twice; the first was taken)"
    );
    // the offset says which of the two it is
    assert_eq!(between("2026-10-25T02:30:00+01:00[Europe/Paris]", "2026-10-25T04:00:00+01:00[Europe/Paris]"), "1 hour 30 minutes");
    assert_eq!(
        between("2026-01-01 10:00 Z", "2026-01-01 11:00"),
        "the start has a time zone and the end has none; name the time zone of both"
    );
    assert!(between("9999-12-31 23:00 -05:00", "9999-12-31 23:30Z").contains("expected a year from 2 to 9998"));
}

#[test]
fn dates_in_their_usual_forms() {
    let same = [
        "1987-06-24",
        "1987-6-24",
        "1987/06/24",
        "1987.6.24",
        "19870624",
        " 24 June 1987 ",
        "24 Jun. 1987",
        "24th of June 1987",
        "24-Jun-1987",
        "June 24, 1987",
        "JUN 24th, 1987",
        "june 24 1987",
        "1987年6月24日",
    ];
    for text in same {
        assert_eq!(written_date(text), Ok(Date::constant(1987, 6, 24)), "{text}");
    }
    for text in ["1987-06-24T22:05:00", "24 June 1987, 10:05 pm", "1987-06-24 22:05", "1987年6月24日 22:05", "19870624T22:05:00.000000000"]
    {
        let time = written_time(text).unwrap();
        assert_eq!(time.date.to_datetime(time.time.unwrap()).to_string(), "1987-06-24T22:05:00", "{text}");
    }
}

#[test]
fn other_texts_are_refused_with_the_way_out() {
    for (text, part) in [
        ("", "such as 1987-06-24"),
        ("yesterday", "such as 1987-06-24"),
        ("1987", "such as 1987-06-24"),
        ("1987-06", "such as 1987-06-24"),
        ("198706", "such as 1987-06-24"),
        ("1987-06/24", "such as 1987-06-24"),
        ("24 Brumaire 1987", "such as 1987-06-24"),
        ("24 June 87", "such as 1987-06-24"),
        ("-500-01-01", "such as 1987-06-24"),
        ("06/24/1987", "year first"),
        ("24.06.1987", "year first"),
        ("1987-13-01", "12 months"),
        ("1987-06-31", "30 days"),
        ("1987-00-01", "12 months"),
        ("0000-01-01", "1 to 9999"),
        ("1987-06-24 25:00", "not a time of day"),
        ("1987-06-24 24:00", "not a time of day"),
        ("1987-06-24 10:60", "not a time of day"),
        ("1987-06-24 10", "not a time of day"),
        ("1987-06-24 13:00 pm", "time zone"),
        ("1987-06-24 noon", "not a time of day"),
        ("1987-06-24 10:00 Paris", "expected Europe/Paris"),
        ("1987-06-24 10:00 +25:00", "time zone"),
        ("1987-06-24 10:00[", "time zone"),
    ] {
        let mistake = written_time(text).unwrap_err().to_string();
        assert!(mistake.contains(part) && mistake.len() < 200, "{text}: {mistake}");
    }
    assert!(written_date("1987-06-24 10:00").unwrap_err().to_string().contains("more than a date"));
}

#[test]
fn ranges_have_bounds() {
    let day = |text| written_date(text).unwrap();
    assert_eq!(days(day("2026-01-01"), day("2026-04-11")).unwrap().len(), 101);
    assert_eq!(days(day("2026-01-01"), day("2026-04-12")), Err(OutOfRange::Days(102)));
    assert_eq!(days(day("2026-01-02"), day("2026-01-01")), Err(OutOfRange::Order { start: day("2026-01-02"), end: day("2026-01-01") }));
    assert_eq!(days(day("2100-12-31"), day("2101-01-01")), Err(OutOfRange::Year(2101)));
    assert_eq!(days(day("2100-12-31"), day("2100-12-31")).unwrap().len(), 1);
    assert_eq!(days(day("1900-01-01"), day("1900-01-01")).unwrap()[0].lunar.to_string(), "1899-12-01");
    assert_eq!(solar_terms(1899), Err(OutOfRange::Year(1899)));
    assert_eq!(solar_terms(i16::MAX), Err(OutOfRange::Year(32_767)));
    let sun = |latitude, longitude| sun_day(latitude, longitude, day("2026-06-21"), &TimeZone::UTC);
    assert_eq!(sun(90.5, 0.0), Err(OutOfRange::Latitude(90.5)));
    assert_eq!(sun(0.0, 180.5), Err(OutOfRange::Longitude(180.5)));
    assert!(sun(f64::NAN, 0.0).is_err() && sun(0.0, f64::INFINITY).is_err());
    assert!(sun(90.0, 0.0).unwrap().up_at_noon && !sun(-90.0, 0.0).unwrap().up_at_noon);
}

#[test]
fn a_day_may_have_two_sunsets() {
    // where the sun sets after midnight, late in the white nights
    let zone = zone("America/Anchorage").unwrap();
    let all: Vec<usize> = (1..=31).map(|day| sun_day(65.5, -145.0, Date::constant(2026, 7, day), &zone).unwrap().sets.len()).collect();
    assert!(all.contains(&2), "{all:?}");
}

#[test]
fn a_day_may_be_skipped() {
    let (day, samoa) = (Date::constant(2011, 12, 30), zone("Pacific/Apia").unwrap());
    assert_eq!(sun_day(-13.83, -171.77, day, &samoa), Err(OutOfRange::Skipped(day)));
    assert_eq!(sun_day(-13.83, -171.77, day.yesterday().unwrap(), &samoa).unwrap().rises.len(), 1);
    assert_eq!(between("2011-12-29 12:00 Pacific/Apia", "2011-12-31 12:00 Pacific/Apia"), "2 days = 1 day");
}

const TABLE: &str = "region = \"Test\"\n[[year]]\nyear = 2026\nsource = \"a law\"\nholidays = [\n";

#[test]
fn tables_of_users_are_read_and_refused() {
    let table = |rows: &str| HolidayTable::parse(&format!("{TABLE}{rows}]\n"));
    let good = table("{ name = \"B\", from = 2026-05-01, to = 2026-05-02, work = [2026-05-09] },\n{ name = \"A\", from = 2025-12-31 },\n")
        .unwrap();
    let year = good.year(2026).unwrap();
    assert_eq!(year.holidays.iter().map(|holiday| (holiday.name.as_str(), holiday.days())).collect::<Vec<_>>(), [("A", 1), ("B", 2)]);
    assert_eq!((good.covered().as_str(), good.year(2025)), ("2026", None));
    let day = |text| written_date(text).unwrap();
    let (found, missing) = good.between(day("2025-12-31"), day("2027-01-01"));
    assert_eq!((found.len(), missing), (2, vec![2025, 2027]));
    assert_eq!(good.between(day("2026-05-09"), day("2026-05-09")).0.len(), 1);
    for (rows, part) in [
        ("{ name = \"A\", from = \"2026-01-01\" }", "not a table"),
        ("{ name = \"A\", from = 2026-01-01T00:00:00Z }", "not a day"),
        ("{ name = \"A\", from = 2026-02-30 }", "not a table"),
        ("{ name = \"A\" }", "from"),
        ("{ name = \" \", from = 2026-01-01 }", "its name"),
        ("{ name = \"A\", from = 2026-01-02, to = 2026-01-01 }", "expected 1 to 31"),
        ("{ name = \"A\", from = 2026-01-02, to = 2026-12-01 }", "expected 1 to 31"),
        ("{ name = \"A\", from = 2024-01-02 }", "not in that year"),
        ("{ name = \"A\", from = 2026-01-02, work = [2029-01-01] }", "not in that year"),
        ("{ name = \"A\", from = 2026-01-02, off = true }", "off"),
        ("] \n[[year]]\nyear = 2026\nsource = \"s\"\nholidays = [", "twice"),
    ] {
        let mistake = table(rows).unwrap_err().to_string();
        assert!(mistake.contains(part), "{rows}: {mistake}");
    }
    assert!(HolidayTable::parse(&" ".repeat(300_000)).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC{0,40}", other in "[0-9TZ:+./ \\[\\]a-zA-Z年月日-]{0,40}") {
        for text in [&text, &other] {
            let _ = (written_time(text), written_date(text), zone(text), HolidayTable::parse(text));
        }
    }

    #[test]
    fn no_times_panic_and_a_difference_leads_from_the_start_to_the_end(
        a in (1_i16..=9999, 1_i8..=12, 1_i8..=31, 0_i8..24, 0_i8..60),
        b in (1_i16..=9999, 1_i8..=12, 1_i8..=31, 0_i8..24, 0_i8..60),
        zones in proptest::sample::select(vec![("", ""), (" Europe/Paris", " Asia/Tokyo"), (" Pacific/Apia", " Z"), (" Africa/Casablanca", " Africa/Casablanca")]),
    ) {
        let text = |(y, m, d, h, n): (i16, i8, i8, i8, i8), zone: &str| format!("{y:04}-{m:02}-{d:02} {h:02}:{n:02}{zone}");
        if let (Ok(a), Ok(b)) = (written_time(&text(a, zones.0)), written_time(&text(b, zones.1)))
            && let (Ok(there), Ok(back)) = (delta(&a, &b), delta(&b, &a)) {
            prop_assert_eq!(there.exact.0, -back.exact.0);
            let c = there.calendar;
            let parts = [c.years, c.months, c.days];
            let sign = there.exact.0.signum();
            prop_assert!(parts.iter().all(|part| part * sign >= 0), "{} {:?}", there, parts);
            prop_assert!(c.months.abs() < 12 && c.days.abs() < 31 && c.microseconds.abs() <= 90_000_000_000, "{}", there);
        }
    }

    #[test]
    fn no_place_and_day_panics(latitude in -90.0..=90.0_f64, longitude in -180.0..=180.0_f64, day in 0_i64..73_414) {
        let date = Date::constant(1900, 1, 1).saturating_add(jiff::Span::new().days(day));
        let seen = sun_day(latitude, longitude, date, &TimeZone::UTC).unwrap();
        prop_assert!((0..=86_400).contains(&seen.daylight_seconds));
        prop_assert!(seen.rises.len().abs_diff(seen.sets.len()) <= 1 && seen.rises.len() <= 2);
    }
}

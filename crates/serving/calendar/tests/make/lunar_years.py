#!/usr/bin/env python3
"""Makes src/lunar_years.rs: the months of the Chinese lunar years 1899 to 2100.

    pip install lunar-python==1.4.8 LunarCalendar==0.0.9
    lunar_years.py | rustfmt > src/lunar_years.rs

The rows are those of lunar-python (MIT). Every day is compared with LunarCalendar (MIT), which is a
different table; the years in which the two differ are named on standard error.
"""
import datetime
import sys

from lunar_python import LunarMonth, LunarYear, Solar

FIRST, LAST = 1899, 2100


def months(year):
    """(number, days) of the months of a year; the number of a leap month is negative."""
    return [(m.getMonth(), m.getDayCount()) for m in LunarYear.fromYear(year).getMonthsInYear()]


def new_year(year):
    day = LunarMonth.fromYm(year, 1).getFirstJulianDay()
    solar = Solar.fromJulianDay(day)
    return datetime.date(solar.getYear(), solar.getMonth(), solar.getDay())


def compare(first_days):
    from lunarcalendar import Converter
    from lunarcalendar import Solar as Other

    differing = {}
    for start, year, month, days in first_days:
        for day in (1, days):
            date = start + datetime.timedelta(day - 1)
            if not datetime.date(1900, 1, 31) <= date <= datetime.date(2100, 12, 31):
                continue
            other = Converter.Solar2Lunar(Other(date.year, date.month, date.day))
            if (other.year, other.month, other.day, other.isleap) != (year, abs(month), day, month < 0):
                differing.setdefault(year, []).append(month)
    print("LunarCalendar differs in", differing, file=sys.stderr)


def main():
    first_days = []
    print("//! The Chinese lunar years 1899 to 2100, from lunar-python 1.4.8 (MIT) by")
    print("//! `tests/make/lunar_years.py`.")
    print("//!")
    print("//! Bits 0 to 12 of a row: whether the year's first to thirteenth month has 30 days (else 29).")
    print("//! Bits 13 to 16: the number of the month that is doubled, 0 without a leap month. Bits 17 to")
    print("//! 22: the days from 1 January to the lunar new year.")
    print("\n/// The lunar year of the first row.")
    print(f"pub(crate) const FIRST_YEAR: i16 = {FIRST};")
    print("\n/// One row a year.")
    print(f"pub(crate) const YEARS: [u32; {LAST - FIRST + 1}] = [")
    rows = []
    for year in range(FIRST, LAST + 1):
        all_months = months(year)
        date = new_year(year)
        row = (date - datetime.date(year, 1, 1)).days << 17
        for at, (month, days) in enumerate(all_months):
            assert days in (29, 30)
            row |= (days == 30) << at
            if month < 0:
                assert all_months[at - 1][0] == -month
                row |= -month << 13
            first_days.append((date, year, month, days))
            date += datetime.timedelta(days)
        if year < LAST:
            assert date == new_year(year + 1), year
        rows.append(f"0x{row:06x}")
    for at in range(0, len(rows), 10):
        print("    " + ", ".join(rows[at : at + 10]) + ",")
    print("];")
    compare(first_days)


main()

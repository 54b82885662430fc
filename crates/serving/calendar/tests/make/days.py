#!/usr/bin/env python3
"""Makes golden/days.txt from lunar-python (MIT): every day from 1900 to 2100.

    pip install lunar-python==1.4.8
    days.py > golden/days.txt            # a line a year: its two hashes
    days.py --days 2033 > /tmp/2033.txt  # the days of a year, to see where they differ

The first hash is the beginning of the SHA-256 of the year's days: lunar year, month (negative for a
leap month) and day, animal, stem and branch, sign, solar term. The second is that of its festivals,
without those that the crate does not have. It has festivals only from their first year on, so
earlier years have no second hash.
"""
import datetime
import hashlib
import sys

from lunar_python import Solar

FESTIVALS_FROM = 1990
LEFT_OUT = {"全国中小学生安全教育日", "全国助残日", "全民国防教育日", "世界住房日"}
OTHERS = {"中元节"}


def day(date):
    solar = Solar.fromYmd(date.year, date.month, date.day)
    lunar = solar.getLunar()
    first = (date, lunar.getYear(), lunar.getMonth(), lunar.getDay(), lunar.getYearShengXiao(),
             lunar.getYearInGanZhi(), solar.getXingZuo(), lunar.getJieQi() or "-")
    festivals = lunar.getFestivals() + [f for f in lunar.getOtherFestivals() if f in OTHERS]
    festivals += [f for f in solar.getFestivals() if f not in LEFT_OUT]
    return " ".join(map(str, first)), f"{date} {' '.join(sorted(festivals))}".rstrip()


def year(number):
    date, days = datetime.date(number, 1, 1), []
    while date.year == number:
        days.append(day(date))
        date += datetime.timedelta(1)
    return days


def beginning(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


if len(sys.argv) == 3:
    for first, festivals in year(int(sys.argv[2])):
        print(f"{first} |{festivals[10:]}")
else:
    for number in range(1900, 2101):
        days = year(number)
        festivals = beginning([f for _, f in days]) if number >= FESTIVALS_FROM else "-"
        print(number, beginning([f for f, _ in days]), festivals)

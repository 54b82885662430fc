#!/usr/bin/env python3
"""Makes data/holidays-cn.toml: the legal holidays of mainland China.

    pip install chinesecalendar==1.11.0 holidays==0.109 lunar-python==1.4.8
    holidays_cn.py > data/holidays-cn.toml

A year is taken if two packages agree on it, which were made apart from the State Council's notices:
chinesecalendar (MIT) has each day, holidays (MIT) has the days off, the weekends that are worked,
and where the notices are published.
"""
import datetime
import re
import sys

import holidays
from chinese_calendar import constants
from holidays.countries import china
from lunar_python import Solar

DAY = datetime.timedelta(1)
# worked in return for 2006-01-02 and -03, by the notice on 2006; chinesecalendar lacks it
WORKED = {datetime.date(2005, 12, 31): "New Year's Day"}
constants.workdays.update(WORKED)
MID_AUTUMN = "Mid-autumn Festival"
NAMES = {h.value: h for h in constants.Holiday}
ENGLISH = {
    "Tomb-sweeping Day": "Qingming Festival",
    "Mid-autumn Festival": "Mid-Autumn Festival",
    "Anti-Fascist 70th Day": "70th Anniversary of Victory Day",
}
CHINESE = {"清明": "清明节", "端午": "端午节", "中秋": "中秋节"}


def sources():
    """Where the notices of a year are published, by the documentation of `holidays`."""
    found = {}
    for label, url in re.findall(r"\[(\d{4}[^\]]*)\]\((https://\S+)\)", china.China.__doc__):
        if "-" in label:
            continue
        url = re.sub(r"^https://web\.archive\.org/web/\d+/", "", url)
        found.setdefault(int(label[:4]), []).append(url)
    return found


def agrees(year):
    """Whether both have the same free weekdays and the same worked weekends."""
    first, last = datetime.date(year, 1, 1), datetime.date(year, 12, 31)
    days = [first + DAY * n for n in range((last - first).days + 1)]
    other = holidays.China(years=[year, year + 1])
    off = {d for d in days if d.weekday() < 5 and d in constants.holidays}
    other_off = {d for d in days if d.weekday() < 5 and d in other}
    work = {d for d in days if d in constants.workdays}
    other_work = {d for d in days if d in other.weekend_workdays}
    for what, a, b in (("off", off, other_off), ("work", work, other_work)):
        if a != b:
            print(year, what, "chinesecalendar only", sorted(map(str, a - b)), "holidays only", sorted(map(str, b - a)), file=sys.stderr)
    return off == other_off and work == other_work


def runs():
    """[first, last, names, worked days] of holidays in a row."""
    all_runs = []
    for day in sorted(constants.holidays):
        name = constants.holidays[day]
        between = [all_runs[-1][1] + DAY * n for n in range(1, (day - all_runs[-1][1]).days)] if all_runs else []
        # the notices name the weekend within a holiday too, which chinesecalendar leaves out
        weekend = all(d.weekday() > 4 and d not in constants.workdays for d in between)
        if all_runs and weekend and (not between or name in all_runs[-1][2]):
            all_runs[-1][1] = day
            if name not in all_runs[-1][2]:
                all_runs[-1][2].append(name)
        else:
            all_runs.append([day, day, [name], []])
    for run in all_runs:
        # where Mid-Autumn is within the holiday of the National Day, chinesecalendar names one
        days = [run[0] + DAY * n for n in range((run[1] - run[0]).days + 1)]
        lunar = [Solar.fromYmd(d.year, d.month, d.day).getLunar() for d in days]
        if run[0].year >= 2008 and MID_AUTUMN not in run[2] and any((m.getMonth(), m.getDay()) == (8, 15) for m in lunar):
            run[2].append(MID_AUTUMN)
    for day in sorted(constants.workdays):
        name = constants.workdays[day]
        near = min((r for r in all_runs if name in r[2]), key=lambda r: min(abs(r[0] - day), abs(r[1] - day)))
        near[3].append(day)
    return all_runs


def main():
    found = sources()
    by_year = {}
    for run in runs():
        # the holiday of a New Year may begin in December
        by_year.setdefault(run[1].year, []).append(run)
    print("# The legal holidays of mainland China with the weekends that are worked in return, from")
    print("# chinesecalendar 1.11.0 (MIT), by tests/make/holidays_cn.py. `source` is where the State")
    print("# Council's notices on the year are published. A year that is not here has not been announced,")
    print("# or two tables do not agree on it.")
    print('region = "mainland China"')
    for year, all_runs in sorted(by_year.items()):
        if not agrees(year) or year not in found:
            continue
        print(f'\n[[year]]\nyear = {year}\nsource = "{" ".join(found[year])}"\nholidays = [')
        for first, last, names, work in all_runs:
            english = " and ".join(ENGLISH.get(n, n) for n in names)
            chinese = "、".join(CHINESE.get(NAMES[n].chinese, NAMES[n].chinese) for n in names)
            to = f", to = {last}" if last != first else ""
            worked = f", work = [{', '.join(map(str, work))}]" if work else ""
            print(f'  {{ name = "{english}", local = "{chinese}", from = {first}{to}{worked} }},')
        print("]")


main()

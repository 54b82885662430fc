#!/usr/bin/env python3
"""Makes golden/zoned.txt from zoneinfo of Python 3.11, with the time zone database of PyPI.

    pip install tzdata
    PYTHONTZPATH= zoned.py > golden/zoned.txt

A line a pair: start, its time zone, end, its time zone, the exact seconds between them. Half of the
starts are within 3 hours of a change of clocks.
"""
import datetime
import random
from zoneinfo import ZoneInfo

random.seed(42)
ZONES = ["Europe/Paris", "America/New_York", "Asia/Shanghai", "Asia/Kolkata", "Australia/Lord_Howe", "America/Sao_Paulo",
         "Africa/Cairo", "Pacific/Apia", "Asia/Kathmandu", "America/St_Johns", "UTC"]


def changes(name):
    zone, found = ZoneInfo(name), []
    time = datetime.datetime(1972, 1, 1, tzinfo=datetime.timezone.utc)
    while time.year < 2036:
        after = time + datetime.timedelta(hours=6)
        if time.astimezone(zone).utcoffset() != after.astimezone(zone).utcoffset():
            found.append(time.astimezone(zone).replace(tzinfo=None))
        time = after
    return found


CHANGES = {name: changes(name) for name in ZONES}


def drawn(name):
    if CHANGES[name] and random.random() < 0.5:
        base = random.choice(CHANGES[name])
        return (base + datetime.timedelta(minutes=random.randrange(-180, 540))).replace(second=0)
    return datetime.datetime(1972, 1, 1) + datetime.timedelta(seconds=random.randrange(64 * 365 * 86400))


for _ in range(400):
    first, last = random.choice(ZONES), random.choice(ZONES)
    start, end = drawn(first), drawn(last)
    moments = [time.replace(tzinfo=ZoneInfo(name)).astimezone(datetime.timezone.utc) for time, name in ((start, first), (end, last))]
    print(start.isoformat(), first, end.isoformat(), last, int((moments[1] - moments[0]).total_seconds()))

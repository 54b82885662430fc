#!/usr/bin/env python3
"""Makes golden/deltas.txt from python-dateutil (Apache-2.0 and BSD-3-Clause).

    pip install python-dateutil==2.9.0.post0
    deltas.py 400 > golden/deltas.txt

A line a pair: start, end, then relativedelta's years, months, days, hours, minutes and seconds, then
the exact seconds. A third of the pairs lies within a few months, where the ends of months matter.
"""
import datetime
import random
import sys

from dateutil.relativedelta import relativedelta

random.seed(19870624)
EPOCH = datetime.datetime(1, 1, 1)
SECONDS = 3_652_058 * 86_400  # to the end of 9998


def drawn():
    start = EPOCH + datetime.timedelta(seconds=random.randrange(SECONDS))
    kind = random.randrange(3)
    if kind == 0:
        end = EPOCH + datetime.timedelta(seconds=random.randrange(SECONDS))
    elif kind == 1:
        start = start.replace(year=random.randrange(1850, 2100), day=random.choice([1, 28]))
        start += datetime.timedelta(random.randrange(-3, 4))
        end = start + datetime.timedelta(random.randrange(-200, 200), random.randrange(-86400, 86400))
    else:
        start = datetime.datetime(random.randrange(1900, 2030), 1, 1) + datetime.timedelta(random.randrange(366))
        end = start + datetime.timedelta(random.randrange(-20000, 40000))
    return start, end


for _ in range(int(sys.argv[1])):
    start, end = drawn()
    d = relativedelta(end, start)
    exact = int((end - start).total_seconds())
    print(start.isoformat(), end.isoformat(), d.years, d.months, d.days, d.hours, d.minutes, d.seconds, exact)

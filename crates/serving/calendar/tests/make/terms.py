#!/usr/bin/env python3
"""Makes golden/terms.txt from ephem (MIT): the solar terms from 1900 to 2100.

    pip install ephem==4.2.1
    terms.py > golden/terms.txt

A line a year: the seconds from 1 January 0h UTC to each of the 24 terms, which are the moments at
which the sun's apparent ecliptic longitude of the date is 285, 300, ... 270 degrees.
"""
import math

import ephem

SUN = ephem.Sun()


def beyond(time, target):
    SUN.compute(time)
    equatorial = ephem.Equatorial(SUN.g_ra, SUN.g_dec, epoch=time)
    longitude = math.degrees(ephem.Ecliptic(equatorial, epoch=time).lon)
    return (longitude - target + 180) % 360 - 180


for year in range(1900, 2101):
    start = ephem.Date(f"{year}/1/1")
    seconds = []
    for at in range(24):
        target = (285 + 15 * at) % 360
        early = start + 4.7 + at * 15.218 - 4
        late = early + 8
        while late - early > 1e-7:
            middle = (early + late) / 2
            if beyond(middle, target) < 0:
                early = middle
            else:
                late = middle
        seconds.append(round((early - start) * 86400))
    print(year, *seconds)

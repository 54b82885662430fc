#!/usr/bin/env python3
"""Makes golden/sun.txt from ephem (MIT): sunrise and sunset of 50 places on 12 days.

    pip install ephem==4.2.1
    sun.py > golden/sun.txt

A line a place and day (UTC): latitude, longitude, day, the rises and the sets in seconds from 0h UTC,
separated by commas; `-` for none, then `up` or `down` says where the sun is. The horizon is that of
almanacs: 34' of refraction, and the sun's upper limb.
"""
import ephem

PLACES = [
    (51.5, -0.13), (48.86, 2.35), (40.71, -74.01), (34.05, -118.24), (35.68, 139.69), (39.9, 116.4), (31.23, 121.47),
    (22.32, 114.17), (1.35, 103.82), (-6.21, 106.85), (-33.87, 151.21), (-36.85, 174.76), (-23.55, -46.63), (-34.6, -58.38),
    (19.43, -99.13), (4.71, -74.07), (-12.05, -77.04), (-0.18, -78.47), (61.22, -149.9), (64.84, -147.72), (69.65, 18.96),
    (78.22, 15.65), (64.15, -21.94), (59.91, 10.75), (60.17, 24.94), (55.76, 37.62), (66.5, 25.73), (71.29, -156.79),
    (28.61, 77.21), (19.08, 72.88), (27.72, 85.32), (24.86, 67.01), (35.69, 51.39), (30.04, 31.24), (6.52, 3.38),
    (-1.29, 36.82), (-26.2, 28.05), (-33.92, 18.42), (14.72, -17.47), (41.01, 28.98), (37.98, 23.73), (41.9, 12.5),
    (52.52, 13.41), (52.23, 21.01), (-54.8, -68.3), (-77.85, 166.67), (82.5, -62.35), (43.65, -79.38), (21.31, -157.86),
    (-18.14, 178.44),
]
DAYS = ["1900/1/15", "1923/2/28", "1950/3/20", "1969/4/18", "1987/6/24", "2000/6/21", "2012/7/25", "2024/8/12", "2026/9/23",
        "2049/10/18", "2075/11/20", "2100/12/21"]
SUN = ephem.Sun()


def crossings(observer, start, find):
    found, observer.date = [], start
    while True:
        try:
            time = find(observer)(SUN)
        except (ephem.AlwaysUpError, ephem.NeverUpError):
            return found
        if time >= start + 1:
            return found
        found.append(round((time - start) * 86400))
        observer.date = time + 0.001


for latitude, longitude in PLACES:
    for day in DAYS:
        start = ephem.Date(day)
        observer = ephem.Observer()
        observer.lat, observer.lon = str(latitude), str(longitude)
        observer.pressure, observer.horizon = 0, "-0:34"
        rises = crossings(observer, start, lambda o: o.next_rising)
        sets = crossings(observer, start, lambda o: o.next_setting)
        observer.date = start + 0.5
        SUN.compute(observer)
        where = "" if rises or sets else " up" if SUN.alt > 0 else " down"
        text = [",".join(map(str, times)) or "-" for times in (rises, sets)]
        print(latitude, longitude, day.replace("/", "-"), *text, end=f"{where}\n")

#!/usr/bin/env python3
"""Makes src/sun_terms.rs from VSOP87D (Bretagnon and Francou 1988), as it stands in the crate
`vsop87` (MIT OR Apache-2.0).

    sun_terms.py <vsop87-3.0.0>/src/vsop87d/earth.rs | rustfmt > src/sun_terms.rs

Terms are kept whose amplitude reaches LONGITUDE or RADIUS within a century of 2000.
"""
import re
import sys

LONGITUDE = 4e-8  # rad, 0.008 seconds of arc
RADIUS = 1e-6  # astronomical units
REACH = 0.1  # millennia from 2000


def series(text, name):
    body = re.search(r"const %s: \[\[f64; \d+\]; 3\] = \[(.*?)\n\];" % name, text, re.S).group(1)
    rows = re.findall(r"\[(.*?)\]", body, re.S)
    columns = [[float(x) for x in re.findall(r"-?[\d.]+(?:e-?\d+)?", row.replace("_", ""))] for row in rows]
    assert len(columns) == 3 and len({len(c) for c in columns}) == 1
    return list(zip(*columns))


def main():
    text = open(sys.argv[1]).read().replace("PI", "3.141592653589793")
    print("//! The largest terms of VSOP87D for the earth (Bretagnon and Francou 1988), from the crate")
    print("//! `vsop87` (MIT OR Apache-2.0) by `tests/make/sun_terms.py`.")
    print("//!")
    print("//! The nth row of a series has the terms of tⁿ, with t in thousands of Julian years from J2000.")
    print("\n/// Amplitude, phase in radians, frequency in radians in a thousand years.")
    print("pub(crate) type Term = (f64, f64, f64);")
    for constant, letter, least, of in (
        ("LONGITUDE", "L", LONGITUDE, "Heliocentric longitude, in radians, from the mean equinox of the date"),
        ("RADIUS", "R", RADIUS, "Distance from the sun, in astronomical units"),
    ):
        print(f"\n/// {of}.\npub(crate) const {constant}: &[&[Term]] = &[")
        for power in range(6):
            kept = [t for t in series(text, f"{letter}{power}") if t[0] * REACH**power >= least]
            if not kept:
                break
            print("    &[")
            for a, b, c in kept:
                print(f"        ({a!r}, {b!r}, {c!r}),")
            print("    ],")
        print("];")


main()

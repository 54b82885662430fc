#!/bin/sh
# convert.sh AMOUNT FROM TO: a length in another unit.
exec awk 'BEGIN {
    split("m 1 km 1000 cm 0.01 mi 1609.344 ft 0.3048", words)
    for (at = 1; at in words; at += 2) metres[words[at]] = words[at + 1]
    printf "%.6g %s is %.6g %s.\n", ARGV[1], ARGV[2], ARGV[1] * metres[ARGV[2]] / metres[ARGV[3]], ARGV[3]
}' "$@"

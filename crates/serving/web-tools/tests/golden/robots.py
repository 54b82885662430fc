#!/usr/bin/env python3
"""Makes robots.tsv: what Protego 0.7 (pip install protego==0.7.0), the parser of Scrapy, says of random rules.

    python3 robots.py > robots.tsv
"""
import random
import re

from protego import Protego

random.seed(9309)
LETTERS = ["a", "b", "x", "/", "/a", "/b/", ".gif", "?q=", "%7E", "%2f", "é"]
print("# robots.txt (\\n for line breaks), path, 1: allowed. Made by robots.py with Protego 0.7.0.")
made = 0
while made < 600:
    lines = []
    for _ in range(random.randint(1, 3)):
        for _ in range(random.randint(1, 2)):
            lines.append("User-agent: " + random.choice(["*", "autoact", "AUTOACT", "other", "otherbot"]))
        for _ in range(random.randint(1, 4)):
            parts = [random.choice(LETTERS + ["*", "*"]) for _ in range(random.randint(0, 4))]
            # which of two rules is longer is open where one has `**`: the standard does not say, and parsers differ
            rule = "/" + re.sub(r"\*+", "*", "".join(parts)) + random.choice(["", "", "$"])
            lines.append(random.choice(["Allow: ", "Disallow: ", "Disallow: "]) + rule)
    path = "/" + "".join(random.choice(LETTERS[:-1]) for _ in range(random.randint(0, 5)))
    robots = "\n".join(lines)
    allowed = Protego.parse(robots).can_fetch("https://example.org" + path, "autoact")
    print(robots.replace("\n", "\\n"), path, int(allowed), sep="\t")
    made += 1

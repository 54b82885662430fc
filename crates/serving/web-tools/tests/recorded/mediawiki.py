#!/usr/bin/env python3
"""Makes mediawiki.json: what the MediaWiki of tests/interop/mediawiki answers, by what was asked for.

    tests/interop/mediawiki 8071 &
    python3 mediawiki.py http://127.0.0.1:8071/api.php > mediawiki.json
"""
import json
import sys
import urllib.parse
import urllib.request

FORM = {"format": "json", "formatversion": "2"}
QUERY = {"action": "query", "redirects": "1", "prop": "info", "inprop": "url"}
PARSE = {
    "action": "parse", "prop": "text|sections|properties|templates", "disableeditsection": "1", "disabletoc": "1", "disablelimitreport": "1",
}
SEARCH = {
    "action": "query", "list": "search", "srlimit": "5", "srprop": "snippet", "generator": "search", "gsrlimit": "5", "prop": "info", "inprop": "url",
    "srwhat": "text", "gsrwhat": "text",
}


def ask(parameters):
    with urllib.request.urlopen(sys.argv[1] + "?" + urllib.parse.urlencode(parameters | FORM)) as answer:
        return json.load(answer)


answers = {}
for title in ["Georgia", "Cabo Verde", "Georgia (name)"]:
    answers[f"titles={title}"] = ask(QUERY | {"titles": title})
for page in ["Georgia", "Cape Verde", "Georgia (name)"]:
    answers[f"page={page}"] = ask(PARSE | {"page": page})
for text in ["Shkhara mountain Georgia", "Georgia"]:
    answers[f"srsearch={text}"] = ask(SEARCH | {"srsearch": text, "gsrsearch": text})
print(json.dumps(answers, indent=1, ensure_ascii=False))

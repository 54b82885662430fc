//! Tests of robots.txt.
#![allow(clippy::unwrap_used)] // tests

use proptest::prelude::*;

use super::*;

fn allows(text: &str, path: &str) -> bool {
    Rules::parse(text, AGENT).allows(path)
}

/// The examples of RFC 9309, sections 2.2.1 to 2.2.3 and 5.
#[test]
fn the_examples_of_the_standard() {
    let simple = "User-Agent: *\nDisallow: *.gif$\nDisallow: /example/\nAllow: /publications/\n\nUser-Agent: foobot\nDisallow: /\n\
                  Allow: /example/page.html\nAllow: /example/allowed.gif\n\nUser-Agent: barbot\nUser-Agent: bazbot\n\
                  Disallow: /example/page.html\n\nUser-Agent: quxbot\n";
    for (agent, path, expected) in [
        ("foobot", "/example/page.html", true),
        ("foobot", "/example/allowed.gif", true),
        ("foobot", "/", false),
        ("barbot", "/example/page.html", false),
        ("bazbot", "/example/page.html", false),
        ("bazbot", "/example/a.gif", true),
        ("quxbot", "/example/a.gif", true),
        ("other", "/a.gif", false),
        ("other", "/a.gif?x", true),
        ("other", "/example/x", false),
        ("other", "/publications/x", true),
    ] {
        assert_eq!(Rules::parse(simple, agent).allows(path), expected, "{agent} {path}");
    }
    let longest = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n";
    assert!(!Rules::parse(longest, "foobot").allows("/example/page/disallowed.gif"));
    // percent-encoded or not, it is the same path
    for (rule, path) in [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar/\u{30c4}", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/%e3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-%2a.html"),
    ] {
        assert!(!allows(&format!("User-agent: *\nDisallow: {rule}"), path), "{rule}");
    }
    assert!(allows("User-agent: *\nDisallow: /path/file-with-a-%2A.html", "/path/file-with-a-b.html"));
}

#[test]
fn groups_are_merged_and_names_are_whole() {
    let text = "\u{feff}user-agent: AutoAct/2.0\r\ndisallow: /a # why\r\n\r\nuser-agent: *\r\ndisallow: /\r\nsitemap: x\r\nUSER-AGENT: autoact\r\n\
                Disallow: /b\r\n";
    for (path, expected) in [("/a/1", false), ("/b", false), ("/c", true), ("/robots.txt", true)] {
        assert_eq!(allows(text, path), expected, "{path}");
    }
    assert!(!allows("User-agent: autoactive\nAllow: /\n\nUser-agent: *\nDisallow: /", "/x"));
    assert!(allows("User-agent: *\nDisallow: /\n\nUser-agent: autoact\nDisallow:\n", "/x"));
    assert!(allows("", "/x") && allows("<html>not found</html>", "/x") && allows("Disallow: /", "/x"));
    assert!(allows("User-agent: *\nDisallow: /x\nAllow: /x", "/x"));
}

/// `tests/golden/robots.py` made the file with Protego, the parser of Scrapy.
#[test]
fn a_crawlers_parser_says_the_same() {
    let golden = include_str!("../tests/golden/robots.tsv");
    let mut count = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let [robots, path, expected] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let robots = robots.replace("\\n", "\n");
        assert_eq!(allows(&robots, path), expected == "1", "{path} of\n{robots}");
        count += 1;
    }
    assert!(count >= 400, "{count}");
}

proptest! {
    #[test]
    fn any_text_is_read(text in "(?s).{0,200}", path in "/.{0,40}") {
        let _ = allows(&text, &path);
        let text = format!("User-agent: *\nDisallow: {text}");
        let _ = allows(&text, &path);
    }

    #[test]
    fn a_rule_without_wildcards_is_a_beginning(rule in "/[a-z/]{0,6}", path in "/[a-z/]{0,8}") {
        prop_assert_eq!(allows(&format!("User-agent: *\nDisallow: {rule}"), &path), !path.starts_with(&rule));
    }
}

#[test]
fn many_wildcards_cost_little() {
    let rules = Rules::parse(&format!("User-agent: *\nDisallow: /{}b$", "*a".repeat(2000)), AGENT);
    let began = Instant::now();
    assert!(rules.allows(&format!("/{}", "a".repeat(8000))));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
}

//! `web_search`.

use serde_json::json;

use crate::server::{Site, World, call, json as answer, parameter, status};

#[test]
fn five_results_have_title_url_and_summary() {
    let site = Site::start(|uri| {
        assert_eq!((uri.path(), parameter(uri, "format").as_deref()), ("/search", Some("json")));
        let query = parameter(uri, "q").unwrap();
        let one = |number: usize| {
            json!({
                "url": format!("https://rivers.test/{number}"), "title": format!("{query} <b>{number}</b>"),
                "content": format!("Summary {number} &amp; more. {}", "word ".repeat(if number == 2 { 200 } else { 1 })),
                "engine": "wikipedia", "parsed_url": ["https", "rivers.test", "/1", "", "", ""], "score": 1.0, "category": "general"
            })
        };
        answer(
            &json!({ "query": query, "number_of_results": 0, "results": (1..=9).map(one).collect::<Vec<_>>(), "answers": [], "suggestions": [] }),
        )
    });
    let world = World::new();
    let library =
        world.library(&format!("kind = \"web_search\", url = \"{}\", allow_private = true", site.url("/search?q={query}&format=json")));
    assert_eq!(library.spec("Tool").unwrap().usage, "Tool[text]");
    let seen = call(&library, &json!("Loire & Danube?#"));
    println!("{}", seen.text);
    let lines: Vec<&str> = seen.text.lines().collect();
    assert_eq!(lines.len(), 5);
    assert_eq!(lines[0], "1. Loire & Danube?# 1 <https://rivers.test/1>: Summary 1 & more. word");
    assert!(lines[1].len() < 320 && lines[1].contains("Summary 2"));
    assert!(seen.sources.is_empty() && !seen.is_error);
    let empty = call(&library, &json!("   "));
    assert!(empty.is_error && empty.text.contains("there is no text to search for"), "{}", empty.text);
}

#[test]
fn what_an_engine_says_else_is_named() {
    let world = World::new();
    for (site, expected) in [
        (Site::start(|_| answer(&json!({ "results": [] }))), "Nothing is found for Loire. Try other or fewer words."),
        (Site::start(|_| answer(&json!({ "hits": 3 }))), "answered with JSON in which no results are known"),
        (Site::start(|_| status(403)), "not authorised, status 403"),
        (Site::start(|_| status(429)), "rate limited, status 429"),
    ] {
        let library = world.library(&format!("kind = \"web_search\", url = \"{}\", allow_private = true", site.url("/?q={query}")));
        let text = call(&library, &json!("Loire")).text;
        assert!(text.contains(expected), "{text}");
    }
    // a public address is not assumed
    let site = Site::start(|_| answer(&json!({ "results": [] })));
    let library = world.library(&format!("kind = \"web_search\", url = \"{}\"", site.url("/?q={query}")));
    assert!(call(&library, &json!("Loire")).text.contains("its address is loopback"));
}

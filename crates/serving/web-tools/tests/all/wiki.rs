//! `browse_wiki` against recorded answers: `tests/recorded/mediawiki.py` wrote down what a MediaWiki
//! 1.39 (`tests/interop/mediawiki`) answered. `mediawiki.rs` asks a real one.

use autoact_tools::{Observation, ToolLibrary};
use serde_json::{Value, json};

use crate::server::{Site, World, call, html, json as answer, parameter, status};

const RECORDED: &str = include_str!("../recorded/mediawiki.json");

/// A server with the recorded answers, found by what was asked for.
pub(crate) fn recorded() -> Site {
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    Site::start(move |uri| {
        let key = ["titles", "page", "srsearch"].into_iter().find_map(|key| Some(format!("{key}={}", parameter(uri, key)?)));
        let key = key.unwrap_or_default();
        match all.get(&key) {
            Some(value) => answer(value),
            None if key.starts_with("srsearch") => {
                answer(&json!({ "batchcomplete": true, "query": { "searchinfo": { "totalhits": 0 }, "search": [] } }))
            }
            None => answer(&json!({ "batchcomplete": true, "query": { "pages": [{ "ns": 0, "title": "X", "missing": true }] } })),
        }
    })
}

pub(crate) fn wiki(world: &World, site: &Site) -> ToolLibrary {
    world.library(&format!("kind = \"browse_wiki\", sandbox = false, api = \"{}\", allow_private = true", site.url("/api.php")))
}

pub(crate) fn read(library: &ToolLibrary, title: &str, question: &str) -> Observation {
    call(library, &json!({ "title": title, "question": question }))
}

#[test]
fn a_page_is_its_passages_its_infobox_and_its_sections() {
    let site = recorded();
    let world = World::new();
    let library = wiki(&world, &site);
    let seen = read(&library, "Georgia", "Which mountain is the highest in Georgia?");
    println!("{}", seen.text);
    assert!(seen.text.starts_with("Georgia <http://127.0.0.1:8071/index.php/Georgia>\n- "), "{}", seen.text);
    assert!(seen.text.contains("\nInfobox: Highest mountain: Shkhara\nSections: Facts; Notes"), "{}", seen.text);
    assert!(!seen.text.contains("[1]") && !seen.text.contains("edit"), "{}", seen.text);
    let row = seen.sources.iter().find(|source| source.heading == "Infobox").unwrap();
    assert_eq!((row.text.as_str(), row.file.as_str()), ("Highest mountain: Shkhara", "http://127.0.0.1:8071/index.php/Georgia"));
    assert_eq!(row.end - row.start, row.text.len() as u64);
    assert!(seen.sources.iter().any(|source| source.heading == "Facts" && source.text.contains("Shkhara")));
}

#[test]
fn a_redirect_is_told_and_a_url_is_a_title() {
    let site = recorded();
    let world = World::new();
    let library = wiki(&world, &site);
    let seen = read(&library, "Cabo Verde", "What is the capital?").text;
    assert!(seen.starts_with("Cape Verde <http://127.0.0.1:8071/index.php/Cape_Verde> (redirected from Cabo Verde)\n"), "{seen}");
    assert!(seen.contains("Capital: Praia"), "{seen}");
    let url = site.url("/index.php/Georgia").replace(&format!(":{}", site.port()), "");
    assert!(read(&library, &url, "capital").text.starts_with("Georgia <"));
    let seen = read(&library, "https://elsewhere.test/wiki/Georgia", "capital");
    assert!(
        seen.is_error && seen.text.starts_with("`elsewhere.test` is not this wiki, which is `127.0.0.1`; expected the title"),
        "{}",
        seen.text
    );
}

#[test]
fn a_title_of_several_meanings_lists_them() {
    let site = recorded();
    let world = World::new();
    let seen = read(&wiki(&world, &site), "Georgia (name)", "capital").text;
    assert_eq!(
        seen,
        "Georgia (name) <http://127.0.0.1:8071/index.php/Georgia_(name)>\nIt may mean:\n- Georgia may mean:\n- Georgia, a country\n\
         - a state of the United States\n- This page lists what a title may mean."
    );
}

#[test]
fn an_unknown_title_is_searched_for() {
    let site = recorded();
    let world = World::new();
    let library = wiki(&world, &site);
    let seen = read(&library, "Shkhara mountain Georgia", "height").text;
    assert!(seen.starts_with("No page is titled Shkhara mountain Georgia.\nA search finds:\n- Georgia: "), "{seen}");
    assert_eq!(read(&library, "Qwertz", "height").text, "No page is titled Qwertz.");
}

#[test]
fn what_is_no_wiki_is_named() {
    let world = World::new();
    for (site, expected) in [
        (Site::start(|_| html("<p>A page")), "`127.0.0.1` did not answer with JSON"),
        (Site::start(|_| answer(&json!([1]))), "the answer is none of MediaWiki's API; is `api` the URL of its api.php?"),
        (Site::start(|_| answer(&json!({ "error": "x" }))), "the answer is none of MediaWiki's API"),
        (
            Site::start(|_| answer(&json!({ "error": { "code": "readapidenied", "info": "You need read permission." } }))),
            "the wiki `127.0.0.1` refused: readapidenied: You need read permission.",
        ),
        (Site::start(|_| status(404)), "client error, status 404"),
        (
            Site::start(|uri| match parameter(uri, "action").as_deref() {
                Some("query") => answer(&json!({ "query": { "pages": [{ "title": "X", "pageid": 1, "fullurl": "http://a.test/X" }] } })),
                _ => answer(&json!({ "parse": { "text": 7 } })),
            }),
            "it gave no text of `X`",
        ),
        (
            Site::start(|_| answer(&json!({ "query": { "pages": [7, { "title": 1 }, { "title": "X", "fullurl": "ftp://x" }] } }))),
            "No page is titled X.",
        ),
        (Site::start(|_| answer(&json!({}))), "No page is titled X."),
    ] {
        let text = read(&wiki(&world, &site), "X", "y").text;
        assert!(text.contains(expected), "{text}");
    }
    let seen = read(&wiki(&world, &recorded()), "a|b", "y");
    assert!(seen.is_error && seen.text.starts_with("this is no title of a page; expected"), "{}", seen.text);
}

#[test]
fn a_wiki_that_fails_for_a_moment_is_asked_again() {
    let first = std::sync::atomic::AtomicU32::new(0);
    let site = Site::start(move |_| match first.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
        0 | 1 => status(503),
        _ => answer(&json!({})),
    });
    let world = World::new();
    assert_eq!(read(&wiki(&world, &site), "X", "y").text, "No page is titled X.");
    let broken = Site::start(|_| status(500));
    assert!(read(&wiki(&world, &broken), "X", "y").text.contains("server error, status 500"));
    assert_eq!(broken.seen().len(), 5);
}

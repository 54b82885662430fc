//! `hybrid_search`.

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::server::{Site, World, call, json as answer, parameter, status};
use crate::wiki::recorded;

fn results() -> serde_json::Value {
    json!({ "results": [{ "title": "Rivers", "url": "https://rivers.test/", "content": "All rivers." }] })
}

fn atlas() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas/pages.jsonl")
}

#[test]
fn results_and_the_entity_of_a_file_come_together() {
    let site = Site::start(|_| answer(&results()));
    let world = World::new();
    let run = format!(
        "kind = \"hybrid_search\", search_url = \"{}\", allow_private = true, entities = \"{}\", page_url = \"https://atlas.test/{{title}}\"",
        site.url("/?q={query}"),
        atlas()
    );
    let library = world.library(&run);
    let seen = call(&library, &json!("Which mountain is the highest in Georgia?"));
    println!("{}", seen.text);
    assert!(seen.text.starts_with("About: Georgia <https://atlas.test/Georgia>: Georgia is a country in "), "{}", seen.text);
    assert!(seen.text.ends_with("\nWeb:\n1. Rivers <https://rivers.test/>: All rivers."), "{}", seen.text);
    let source = &seen.sources[0];
    let page = std::fs::read_to_string(atlas()).unwrap();
    let page =
        page.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()).find(|page| page["title"] == "Georgia").unwrap();
    let text = page["text"].as_str().unwrap();
    assert_eq!(&text[usize::try_from(source.start).unwrap()..usize::try_from(source.end).unwrap()], source.text);
    assert_eq!(source.file, "https://atlas.test/Georgia");
    let nothing = call(&library, &json!("why is this so")).text;
    assert!(nothing.starts_with("About: nothing that is known by this name.\nWeb:\n1. "), "{nothing}");
}

/// Neither half answers before both were asked.
#[test]
fn both_halves_are_asked_at_once() {
    let both = Arc::new(Barrier::new(2));
    let (first, second) = (Arc::clone(&both), both);
    let engine = Site::start(move |_| {
        first.wait();
        answer(&results())
    });
    let wiki = Site::start(move |uri| {
        if parameter(uri, "titles").is_some() {
            second.wait();
        }
        answer(&json!({ "query": { "pages": [], "search": [] } }))
    });
    let world = World::new();
    let run = format!(
        "kind = \"hybrid_search\", sandbox = false, search_url = \"{}\", api = \"{}\", allow_private = true",
        engine.url("/?q={query}"),
        wiki.url("/api.php")
    );
    let seen = call(&world.library(&run), &json!("Which mountain is the highest in Georgia?"));
    assert!(seen.text.contains("About: nothing") && seen.text.contains("1. Rivers"), "{}", seen.text);
}

#[test]
fn a_half_that_fails_leaves_the_other() {
    let (engine, broken, wiki) = (Site::start(|_| answer(&results())), Site::start(|_| status(404)), recorded());
    let world = World::new();
    let tool = |engine: &Site, wiki: &Site| {
        let run = format!(
            "kind = \"hybrid_search\", sandbox = false, search_url = \"{}\", api = \"{}\", allow_private = true",
            engine.url("/?q={query}"),
            wiki.url("/api.php")
        );
        call(&world.library(&run), &json!("Georgia"))
    };
    let seen = tool(&engine, &broken).text;
    assert!(seen.starts_with("About: failed, client error, status 404: no\nWeb:\n1. Rivers"), "{seen}");
    let seen = tool(&broken, &wiki).text;
    assert!(seen.starts_with("About: Georgia <") && seen.ends_with("\nWeb: failed, client error, status 404: no"), "{seen}");
    let seen = tool(&broken, &broken);
    assert!(
        seen.is_error && seen.text.contains("the search: client error") && seen.text.contains("the description: client error"),
        "{}",
        seen.text
    );
}

#[test]
fn a_half_that_hangs_leaves_the_other_within_the_time() {
    let never = Arc::new(Barrier::new(2));
    let held = Arc::clone(&never);
    let hangs = Site::start(move |_| {
        held.wait();
        status(500)
    });
    let world = World::new();
    let run = format!(
        "kind = \"hybrid_search\", search_url = \"{}\", allow_private = true, entities = \"{}\"",
        hangs.url("/?q={query}"),
        atlas()
    );
    let library = world.try_library(&run, "timeout = \"1s\"").unwrap();
    let began = Instant::now();
    let seen = call(&library, &json!("Georgia")).text;
    assert!(began.elapsed() < Duration::from_secs(3) && seen.starts_with("About: Georgia: "), "{seen}");
    assert!(seen.ends_with("Web: failed, no answer within 900ms"), "{seen}");
    never.wait();
}

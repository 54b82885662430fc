//! A real MediaWiki: `tests/interop/mediawiki` serves one, `AUTOACT_TEST_MEDIAWIKI=URL` names its
//! api.php.

use serde_json::json;

use crate::server::{World, call};
use crate::wiki::read;

#[test]
fn mediawiki_is_read_and_searched() {
    let Ok(api) = std::env::var("AUTOACT_TEST_MEDIAWIKI") else {
        println!("skipped: AUTOACT_TEST_MEDIAWIKI names no MediaWiki");
        return;
    };
    let world = World::new();
    let library = world.library(&format!("kind = \"browse_wiki\", sandbox = false, api = \"{api}\", allow_private = true"));
    for (title, question, expected) in [
        ("Georgia", "Which mountain is the highest in Georgia?", "Highest mountain: Shkhara"),
        ("Cabo Verde", "What is the capital?", "(redirected from Cabo Verde)"),
        ("georgia", "What is the currency?", "Georgian lari"),
        ("Georgia (name)", "", "It may mean:\n"),
        ("Shkhara mountain Georgia", "", "A search finds:\n- Georgia: "),
        ("No such page at all", "", "No page is titled No such page at all."),
        ("Special:Version", "", "No page is titled Special:Version."),
    ] {
        let seen = read(&library, title, question);
        println!("{}\n", seen.text);
        assert!(!seen.is_error && seen.text.contains(expected), "{title}: {}", seen.text);
    }
    let search = world.library(&format!("kind = \"web_search\", api = \"{api}\", allow_private = true"));
    let seen = call(&search, &json!("highest mountain Shkhara"));
    println!("{}\n", seen.text);
    assert!(seen.text.starts_with("1. ") && seen.text.contains("index.php/"), "{}", seen.text);
    let hybrid =
        world.library(&format!("kind = \"hybrid_search\", sandbox = false, search_api = \"{api}\", api = \"{api}\", allow_private = true"));
    let seen = call(&hybrid, &json!("Which mountain is the highest in Georgia?"));
    println!("{}", seen.text);
    assert!(seen.text.starts_with("About: Georgia <") && seen.text.contains("\nSections: Facts; Notes\nWeb:\n1. "), "{}", seen.text);
}

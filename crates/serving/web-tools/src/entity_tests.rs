//! Tests of entity linking.
#![allow(clippy::unwrap_used)] // tests

use proptest::prelude::*;
use serde_json::Value;

use super::*;

const ATLAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../corpora/atlas");

fn entities(pages: &[(&str, &str)]) -> Entities {
    let entry = |(title, text): &(&str, &str)| Entry { title: (*title).into(), text: (*text).into(), aliases: Vec::new(), url: None };
    Entities::new(pages.iter().map(entry).collect())
}

#[test]
fn a_name_of_several_pages_is_decided_by_its_context() {
    let both = entities(&[
        ("Mercury (planet)", "Mercury is a planet. Its orbital period is 88 days."),
        ("Mercury (element)", "Mercury is an element. Its atomic number is 80."),
        ("The Hague", "The Hague is a city."),
    ]);
    let title = |text: &str| both.link(text).map(|page| page.title.as_str());
    assert_eq!(title("What is the orbital period of Mercury?"), Some("Mercury (planet)"));
    assert_eq!(title("What is the atomic number of Mercury?"), Some("Mercury (element)"));
    assert_eq!(title("where is the hague"), Some("The Hague"));
    assert_eq!(title("Where is the Hauge?"), Some("The Hague"));
    assert_eq!(title("What is this?"), None);
    assert_eq!(title(""), None);
}

/// How many questions of a set are linked to the page that their maker meant: that which they start
/// from, or one of the two that they compare.
fn accuracy(entities: &Entities, set: &str) -> (usize, usize) {
    let (mut right, mut all) = (0, 0);
    for line in std::fs::read_to_string(format!("{ATLAS}/questions/{set}.jsonl")).unwrap().lines() {
        let question: Value = serde_json::from_str(line).unwrap();
        let gold = question["entities"].as_array().unwrap();
        let gold = if question["kind"] == "hop" { &gold[..1] } else { &gold[..] };
        let text = question["text"].as_str().unwrap();
        let found = entities.link(text).map(|page| page.title.clone()).unwrap_or_default();
        all += 1;
        if gold.iter().any(|gold| *gold == found.as_str()) {
            right += 1;
        } else {
            println!("{text} -> {found}, expected {gold:?}");
        }
    }
    (right, all)
}

#[test]
fn questions_of_the_atlas_are_linked() {
    let entities = Entities::load(Path::new(&format!("{ATLAS}/pages.jsonl"))).unwrap();
    let (right, all) = accuracy(&entities, "held-out");
    println!("{right} of {all} held-out questions are linked to the page that they start from");
    assert!(all == 320 && right * 100 >= all * 95, "{right} of {all}");
}

#[test]
fn a_file_with_mistakes_is_refused_by_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("pages.jsonl");
    std::fs::write(&path, "{\"title\": \"A\", \"text\": \"B\"}\n\n{\"title\": 1}\n").unwrap();
    assert!(Entities::load(&path).unwrap_err().contains(":3: "));
    std::fs::write(&path, "\n").unwrap();
    assert!(Entities::load(&path).unwrap_err().contains("has no pages"));
    assert!(Entities::load(directory.path()).is_err());
}

proptest! {
    #[test]
    fn any_text_is_linked_or_not(text in "\\PC{0,80}") {
        let _ = entities(&[("Loire", "A river."), ("La (x)", "y")]).link(&text);
    }
}

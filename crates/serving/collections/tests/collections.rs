//! Collections on a real disk: replaced, deleted, reopened, changed by many at once.
#![allow(clippy::unwrap_used, clippy::expect_used)] // tests

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use autoact_collections::{Collection, CollectionName, Collections, CollectionsError, Entry, NewSegment, Opened, Space};
use autoact_tools::{Corpus, Page};
use autoact_trajectory::Tenant;
use proptest::prelude::*;

fn name(text: &str) -> CollectionName {
    text.parse().unwrap()
}

fn tenant(text: &str) -> Tenant {
    text.parse().unwrap()
}

fn entry(path: &str, sha256: &str) -> Entry {
    Entry {
        path: path.to_owned(),
        sha256: sha256.to_owned(),
        reader: "1".to_owned(),
        title: path.to_owned(),
        kind: "text".to_owned(),
        pages: None,
        bytes: 1,
        segments: 0,
    }
}

fn segment(title: &str, text: &str) -> NewSegment {
    NewSegment { title: title.to_owned(), text: text.to_owned(), ..NewSegment::default() }
}

fn put(collection: &Collection, path: &str, segments: &[(&str, &str)]) {
    let segments = segments.iter().map(|(title, text)| segment(title, text)).collect();
    collection.put(&entry(path, "0"), segments).unwrap();
}

fn found(collection: &Collection, query: &str) -> Vec<String> {
    collection.words(query, 10).unwrap().into_iter().map(|found| found.segment.title).collect()
}

/// The title that a name leads to, and whether it is a spelling of it.
fn opened(collection: &Collection, wanted: &str) -> Option<(String, bool)> {
    match collection.named(wanted, 3).unwrap() {
        Opened::Segment { segment, by_title, .. } => Some((segment.title, by_title)),
        Opened::Unknown { .. } => None,
    }
}

fn fresh() -> (tempfile::TempDir, Collections, Arc<Collection>) {
    let directory = tempfile::tempdir().unwrap();
    let collections = Collections::open(directory.path()).unwrap();
    let collection = collections.get_or_make(&tenant("acme"), &name("handbook")).unwrap();
    (directory, collections, collection)
}

/// Whether any file below a directory has these bytes.
fn on_disk(directory: &Path, bytes: &[u8]) -> bool {
    std::fs::read_dir(directory).unwrap().map(Result::unwrap).any(|entry| {
        if entry.file_type().unwrap().is_dir() {
            return on_disk(&entry.path(), bytes);
        }
        std::fs::read(entry.path()).unwrap().windows(bytes.len()).any(|window| window == bytes)
    })
}

#[test]
fn a_file_is_found_replaced_and_there_after_a_restart() {
    let (directory, collections, collection) = fresh();
    put(&collection, "a.md", &[("Travel", "A manager approves travel over 2,000 euros."), ("Travel (2)", "Trains go first.")]);
    put(&collection, "b.md", &[("Leave", "Everybody has thirty days.")]);
    assert_eq!(found(&collection, "who approves the travels?"), ["Travel", "Travel (2)"]);
    put(&collection, "a.md", &[("Travel", "A director approves journeys.")]);
    assert_eq!(found(&collection, "manager"), [""; 0]);
    assert_eq!(collection.counts().unwrap(), (2, 2));
    drop((collection, collections));

    let collections = Collections::open(directory.path()).unwrap();
    let collection = collections.get(&tenant("acme"), &name("handbook")).unwrap();
    assert_eq!(found(&collection, "director"), ["Travel"]);
    let files: Vec<(String, u64)> = collection.entries().unwrap().into_iter().map(|entry| (entry.path, entry.segments)).collect();
    assert_eq!(files, [("a.md".to_owned(), 1), ("b.md".to_owned(), 1)]);
    // numbers ascend
    let first = collection.words("days", 1).unwrap()[0].segment.number;
    put(&collection, "c.md", &[("More", "More days.")]);
    assert!(collection.words("more", 1).unwrap()[0].segment.number > first);
}

#[test]
fn what_is_deleted_is_not_on_the_disk() {
    let (directory, collections, collection) = fresh();
    put(&collection, "secret.md", &[("Secret", "The word is xylophagous.")]);
    put(&collection, "other.md", &[("Other", "Nothing else.")]);
    assert!(on_disk(directory.path(), b"xylophagous"));
    assert_eq!(collection.delete(&["secret.md".to_owned(), "none.md".to_owned(), "secret.md".to_owned()]).unwrap(), 1);
    assert_eq!(found(&collection, "xylophagous"), [""; 0]);
    assert!(!on_disk(directory.path(), b"xylophag"));
    assert_eq!(found(&collection, "nothing else"), ["Other"]);
    assert!(collections.delete(&tenant("acme"), &name("handbook")).unwrap());
    assert!(!on_disk(directory.path(), b"Nothing else"));
    assert!(!collections.delete(&tenant("acme"), &name("handbook")).unwrap());
    let error = collections.get(&tenant("acme"), &name("handbook")).unwrap_err();
    assert!(matches!(error, CollectionsError::Unknown { known, .. } if known.is_empty()));
}

#[test]
fn vectors_follow_the_segments() {
    let (directory, collections, collection) = fresh();
    let space = Space { name: "test".to_owned(), dimension: 3 };
    put(&collection, "a.md", &[("A", "First."), ("B", "Second.")]);
    put(&collection, "b.md", &[("C", "Third.")]);
    let titles = |collection: &Collection, limit| -> Vec<(u64, String)> {
        let (without, _) = collection.without_vector(&space, limit).unwrap();
        without.into_iter().map(|segment| (segment.number, segment.title)).collect()
    };
    let [first, second] = &titles(&collection, 2)[..] else { panic!() };
    assert_eq!([&first.1, &second.1], ["A", "B"]);
    collection.add_vectors(&space, &[(first.0, vec![1.0, 0.0, 0.0]), (second.0, vec![0.0, 1.0, 0.0])]).unwrap();
    let [third] = &titles(&collection, 9)[..] else { panic!() };
    collection.add_vectors(&space, &[(third.0, vec![0.0, 0.0, 1.0])]).unwrap();
    let near = |collection: &Collection| -> Vec<String> {
        collection.near(&space, &[0.1, 0.7, 0.7], 2).unwrap().into_iter().map(|found| found.segment.title).collect()
    };
    assert_eq!((near(&collection), collection.with_vector(&space).unwrap()), (vec!["B".to_owned(), "C".to_owned()], 3));
    // a file that is replaced has no vectors until they are made, and a deleted one none at all
    put(&collection, "b.md", &[("C", "Third, again.")]);
    assert_eq!((near(&collection), titles(&collection, 9).len()), (vec!["B".to_owned(), "A".to_owned()], 1));
    collection.delete(&["a.md".to_owned()]).unwrap();
    assert_eq!(near(&collection), [""; 0]);
    drop((collection, collections));
    let collections = Collections::open(directory.path()).unwrap();
    let collection = collections.get(&tenant("acme"), &name("handbook")).unwrap();
    assert_eq!((near(&collection).len(), collection.with_vector(&space).unwrap(), titles(&collection, 9).len()), (0, 0, 1));
}

#[test]
fn tenants_do_not_see_each_other() {
    let (_directory, collections, collection) = fresh();
    put(&collection, "a.md", &[("Travel", "Ours.")]);
    let theirs = collections.get_or_make(&tenant("other"), &name("handbook")).unwrap();
    assert_eq!((found(&theirs, "ours"), opened(&theirs, "Travel")), (vec![], None));
    assert_eq!(collections.names(&tenant("other")).unwrap(), [name("handbook")]);
    assert_eq!(collections.names(&tenant("nobody")).unwrap(), []);
}

#[test]
fn one_process_holds_the_directory() {
    let (directory, _collections, _collection) = fresh();
    assert!(matches!(Collections::open(directory.path()), Err(CollectionsError::Locked { .. })));
}

#[test]
fn titles_of_two_files_differ_and_the_name_that_they_share_leads_to_both() {
    let (_directory, _collections, collection) = fresh();
    put(&collection, "a/README.md", &[("README", "The first.")]);
    put(&collection, "b/README.md", &[("README", "The second.")]);
    put(&collection, "c/README.md", &[("Readme", "The third.")]);
    let Opened::Segment { segment, by_title: true, also } = collection.named("readme", 3).unwrap() else { panic!() };
    assert_eq!(segment.text, "The first.");
    let others: Vec<&str> = also.iter().map(|segment| segment.title.as_str()).collect();
    assert_eq!(others, ["README (README.md)", "Readme (c/README.md)"]);
    assert_eq!(opened(&collection, "readme (c/readme.md)").unwrap().0, "Readme (c/README.md)");
    // the same file has the same titles again
    put(&collection, "b/README.md", &[("README", "The second, again.")]);
    assert_eq!(found(&collection, "again"), ["README (README.md)"]);
}

#[test]
fn many_at_once_share_commits_and_lose_nothing() {
    let (_directory, _collections, collection) = fresh();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let collection = &collection;
            scope.spawn(move || {
                for file in 0..8 {
                    let path = format!("{thread}-{file}.md");
                    put(collection, &path, &[("Page", &format!("Common word{thread}x{file}."))]);
                    assert_eq!(collection.words(&format!("word{thread}x{file}"), 10).unwrap().len(), 1);
                    if file % 4 == 3 {
                        collection.delete(&[path]).unwrap();
                    }
                    collection.rest(Duration::ZERO).unwrap();
                }
            });
        }
    });
    assert_eq!(collection.counts().unwrap(), (24, 24));
    let mut titles = found(&collection, "common");
    titles.dedup();
    assert_eq!(titles.len(), 10);
}

#[test]
fn names_mean_what_they_mean_in_a_corpus() {
    let titles = [
        "The Barber of Seville",
        "Rhône",
        "Rhine",
        "Charles Darwin",
        "Charles Dickens",
        "Lake Garda",
        "Apollo 11",
        "Apollo 12",
        "Danube",
        "The Blue Danube",
        "Mercury (planet)",
        "São Paulo",
        "New York",
    ];
    let corpus = titles.map(|title| (Page { title: title.to_owned(), text: "Text.".to_owned() }, vec![]));
    let mut corpus = corpus.to_vec();
    corpus[0].1.push("Il barbiere di Siviglia".to_owned());
    let corpus = Corpus::with_aliases(corpus).unwrap();
    let (_directory, _collections, collection) = fresh();
    let segments = titles.map(|title| segment(title, "Text.")).into_iter().enumerate().map(|(at, segment)| {
        let aliases = if at == 0 { vec!["Il barbiere di Siviglia".to_owned()] } else { vec![] };
        NewSegment { aliases, ..segment }
    });
    collection.put(&entry("a.md", "0"), segments.collect()).unwrap();
    for asked in [
        "barber of seville",
        "Barber of Sevile",
        "il barbiere di Sivilgia",
        "rhone",
        "Rhônne",
        "Rhane",
        "Charles Drawin",
        "LakeGarda",
        "Apollo 13",
        "Charles",
        "",
        "the Danube",
        "Danube flow into",
        "composer the blue danube",
        "Danube River",
        "sao  paulo",
        "Newyork",
        "Mercury",
        "What is this?",
        "Phine",
    ] {
        let expected = corpus.meant(asked).map(|page| page.title.clone());
        assert_eq!(opened(&collection, asked).map(|(title, _)| title), expected, "{asked}");
    }
    let Opened::Unknown { similar } = collection.named("Mercury", 3).unwrap() else { panic!() };
    assert_eq!(similar, ["Mercury (planet)"]);
    assert_eq!(opened(&collection, "il barbiere di siviglia"), Some(("The Barber of Seville".to_owned(), false)));
    assert_eq!(opened(&collection, &"x".repeat(100_000)), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever is put, deleted and reopened: a collection has what was put last.
    #[test]
    fn a_collection_has_what_was_put_last(changes in prop::collection::vec((0..4u8, prop::option::of(prop::collection::vec(0..6u8, 0..4)), any::<bool>()), 1..12)) {
        let directory = tempfile::tempdir().unwrap();
        let mut expected: BTreeMap<u8, Vec<u8>> = BTreeMap::new();
        let mut collections = Collections::open(directory.path()).unwrap();
        for (file, words, reopen) in changes {
            let collection = collections.get_or_make(&tenant("t"), &name("c")).unwrap();
            let path = format!("{file}.md");
            match words {
                Some(words) => {
                    let segments = words.iter().map(|word| segment(&format!("S{file}"), &format!("w{word}w"))).collect();
                    collection.put(&entry(&path, "0"), segments).unwrap();
                    expected.insert(file, words);
                }
                None => {
                    let there = expected.remove(&file).is_some();
                    prop_assert_eq!(collection.delete(&[path]).unwrap(), u64::from(there));
                }
            }
            if reopen {
                drop(collection);
                drop(collections);
                collections = Collections::open(directory.path()).unwrap();
            }
            let collection = collections.get(&tenant("t"), &name("c")).unwrap();
            for word in 0..6u8 {
                let mut found: Vec<String> =
                    collection.words(&format!("w{word}w"), 100).unwrap().into_iter().map(|found| found.segment.path).collect();
                found.sort();
                let wanted: Vec<String> = expected
                    .iter()
                    .flat_map(|(file, words)| words.iter().filter(|other| **other == word).map(move |_| format!("{file}.md")))
                    .collect();
                prop_assert_eq!(found, wanted);
            }
            prop_assert_eq!(collection.counts().unwrap().0, expected.len() as u64);
        }
    }
}

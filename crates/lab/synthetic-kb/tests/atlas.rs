//! The atlas: committed files match the tables, question sets have their properties, and all
//! mistakes are reported together.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod support;

use std::collections::{HashMap, HashSet};
use std::fs;

use autoact_base::random::Rng;
use autoact_synthetic_kb::{Atlas, AtlasError, Kind, Mix, Schema, SchemaError, Split, held_out};
use support::{atlas, root};

#[test]
fn committed_files_are_what_the_tables_make() {
    for (name, text) in atlas().files().unwrap() {
        let committed = fs::read_to_string(root().join("corpora/atlas").join(name)).unwrap_or_default();
        assert!(committed == text, "`{name}` is not what the tables make; fix: `autoact corpus build`");
    }
}

#[test]
fn the_atlas_has_pages_enough() {
    let atlas = atlas();
    assert!(atlas.base().entities().len() >= 1_000);
    let titles: HashSet<&str> = atlas.base().entities().iter().map(|entity| entity.title.as_str()).collect();
    assert_eq!(titles.len(), atlas.base().entities().len());
    for (title, text) in atlas.base().pages() {
        assert!(!text.contains('{') && !text.contains("  "), "{title}: {text}");
        assert!(
            text.lines().all(|line| line.ends_with('.') && !line.starts_with(char::is_lowercase) || line.starts_with("iPhone")),
            "{title}: {text}"
        );
    }
}

#[test]
fn the_held_out_set_has_its_counts_and_splits() {
    let atlas = atlas();
    let questions = atlas.held_out();
    let mut counts: HashMap<String, usize> = HashMap::new();
    questions.iter().for_each(|question| *counts.entry(question.label()).or_default() += 1);
    let wanted = [("1-hop", 90), ("2-hop", 85), ("3-hop", 65), ("comparison", 40), ("yes-no", 40)];
    assert_eq!(counts, wanted.iter().map(|(label, count)| ((*label).to_owned(), *count)).collect());
    let ids: HashSet<&String> = questions.iter().map(|question| &question.id).collect();
    assert_eq!(ids.len(), questions.len());
    let dev = atlas.dev();
    assert_eq!(dev.len(), 120);
    assert!(dev.iter().all(|question| !ids.contains(&question.id)));
    for question in &questions {
        assert!(question.kind != Kind::Hop || question.hops == 1 || held_out(&question.chain.join(">")), "{question:?}");
        assert_eq!(atlas.base().answer(question).map(|(answer, _)| answer).as_ref(), Some(&question.answer));
    }
    for question in &dev {
        assert!(question.kind != Kind::Hop || question.hops == 1 || !held_out(&question.chain.join(">")), "{question:?}");
    }
    let yes = questions.iter().filter(|question| question.answer == "yes").count();
    assert_eq!(yes, 20);
    let kinds: HashSet<&str> = questions.iter().filter_map(|question| question.chain.first()?.split('.').next()).collect();
    assert_eq!(kinds.len(), atlas.base().schema().types.len(), "every type is asked about");
}

#[test]
fn training_never_asks_a_held_out_form() {
    let atlas = atlas();
    let held: HashSet<String> =
        atlas.held_out().into_iter().filter(|q| q.hops > 1 && q.kind == Kind::Hop).map(|q| q.chain.join(">")).collect();
    let mut rng = Rng::new(1);
    for _ in 0..2_000 {
        let Some(question) = atlas.base().question(&mut rng, &Mix::default(), Split::Train) else { continue };
        // a comparison's forms are split by their own keys
        assert!(question.kind == Kind::Comparison || !held.contains(&question.chain.join(">")), "{question:?}");
    }
}

#[test]
fn counterfactual_facts_are_others_of_the_same_kind() {
    let atlas = atlas();
    let (base, swapped) = (atlas.base(), atlas.counterfactual(7));
    let (mut same, mut all) = (0, 0);
    for (old, new) in base.entities().iter().zip(swapped.entities()) {
        assert_eq!((&old.title, old.kind), (&new.title, new.kind));
        for (index, (before, after)) in old.facts.iter().zip(&new.facts).enumerate() {
            assert_eq!(before.is_some(), after.is_some());
            let (Some(before), Some(after)) = (before, after) else { continue };
            all += 1;
            same += usize::from(before.text == after.text);
            if let Some(target) = after.target {
                assert_eq!(Some(swapped.entities()[target].kind), base.schema().types[old.kind].relations[index].target);
                assert_ne!(swapped.entities()[target].title, new.title);
            }
        }
    }
    assert!(same * 20 < all, "{same} of {all} facts stayed");
    for question in swapped.reanswer(&atlas.held_out()) {
        assert_eq!(swapped.answer(&question).unwrap().0, question.answer);
    }
}

#[test]
fn all_mistakes_of_the_tables_are_told_together() {
    let dir = tempfile::tempdir().unwrap();
    let schema = r#"
        [generic]
        sentences = ["The {r} of {e} is {v}."]
        phrases = ["the {r} of {x}"]
        questions = ["What is the {r} of {x}?"]
        [[types]]
        name = "river"
        leads = ["{e} is a river."]
        relations = [{ name = "length", range = "number", unit = "km" }, { name = "country", range = "country" }]
        [[types]]
        name = "country"
        leads = ["{e} is a country."]
        relations = [{ name = "motto", range = "word" }]
    "#;
    fs::write(dir.path().join("schema.toml"), schema).unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    fs::write(
        dir.path().join("data/river.tsv"),
        "name\tlength\tcountry\nLoire\tlong\tFrance\nLoire\t1006\tFrance\n\t3\nRhine\t1\t2\t3\t4\n",
    )
    .unwrap();
    let Err(AtlasError::Tables { mistakes, .. }) = Atlas::load(dir.path()) else { panic!("expected mistakes") };
    let found: Vec<(&str, usize)> = mistakes.iter().map(|mistake| (mistake.file.as_str(), mistake.line)).collect();
    assert_eq!(found, [("river.tsv", 2), ("river.tsv", 3), ("river.tsv", 4), ("river.tsv", 5), ("country.tsv", 0)]);

    fs::write(dir.path().join("data/river.tsv"), "name\tlength\tcountry\nLoire\t1006\tFrance\nFrance\t1\t\n").unwrap();
    fs::write(dir.path().join("data/country.tsv"), "name\tmotto\nFrance\tLiberty\n").unwrap();
    let atlas = Atlas::load(dir.path()).unwrap();
    let river = atlas.base().find("Loire").unwrap();
    assert_eq!(atlas.base().fact(river, 0).unwrap().text, "1006 km");
    // the first table owns the name; the other title includes its type and is not linked to
    assert!(atlas.base().find("France (country)").is_some());
    assert_eq!(atlas.base().fact(river, 1).unwrap().target, None);
}

#[test]
fn a_schema_tells_all_its_mistakes() {
    let bad = r#"
        [[types]]
        name = "river"
        leads = ["{x} is a river."]
        relations = [{ name = "length", range = "numbr", sentences = ["{e}"], phrases = ["it"], questions = ["{x}?"], after = "birth" }]
        [[types]]
        name = "river"
        leads = []
        relations = []
    "#;
    let Err(SchemaError::Invalid { problems, .. }) = Schema::parse(bad, "test") else { panic!("expected mistakes") };
    assert!(problems.len() >= 7, "{problems:#?}");
    assert!(matches!(Schema::parse("[generic]\nodd = 1", "test"), Err(SchemaError::Parse { .. })));
}

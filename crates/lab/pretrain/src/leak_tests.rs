//! What `corpora/atlas/questions/plain.jsonl` has in common with the training data. The questions
//! were written by hand, without sight of the generator that words the training data.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

use autoact_synthetic_kb::{Atlas, KnowledgeBase, ThoughtStyle};

use super::*;
use crate::paths::Paths;

/// Knowledge bases of each schema from which training questions are drawn, with all their documents.
const WORLDS: u64 = 40;
/// The longest name, in words.
const LONGEST: usize = 8;
/// The greatest share of questions whose form, names masked, training may have too. Simple forms
/// are common to all who ask (`who wrote ▢`).
const MOST_SHARED: f64 = 0.15;

/// The names and values of a knowledge base, in small letters.
fn names(base: &KnowledgeBase) -> HashSet<String> {
    let entities = base.entities().iter();
    let all = entities.flat_map(|entity| {
        let values = entity.facts.iter().flatten().map(|fact| fact.text.clone());
        values.chain(entity.aliases.clone()).chain([entity.title.clone()])
    });
    all.map(|name| words(&name).join(" ")).collect()
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '+' | '-' | '*' | '/')).map(str::to_lowercase);
    words.filter(|word| !word.is_empty()).collect()
}

/// The form of a question: its words in small letters without punctuation, names and numbers masked.
fn form(question: &str, names: &HashSet<String>) -> String {
    let words = words(question);
    let mut out = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let longest = (1..=LONGEST.min(words.len() - at)).rev().find(|length| names.contains(&words[at..at + length].join(" ")));
        match longest {
            Some(length) => {
                out.push("▢".to_owned());
                at += length;
            }
            None => {
                let number = words[at].starts_with(|c: char| c.is_ascii_digit());
                out.push(if number { "#".to_owned() } else { words[at].clone() });
                at += 1;
            }
        }
    }
    out.join(" ")
}

#[test]
fn no_plain_question_is_in_training_data_and_few_of_their_forms_are() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let recipe = root.join("models/stem/recipe/recipe.toml");
    let paths = Paths { recipe: recipe.clone(), atlas: root.join("corpora/atlas"), model: PathBuf::new(), work: PathBuf::new() };
    let recipe = Recipe::load(&recipe).unwrap();
    let worlds = Worlds::load(&paths, &recipe).unwrap();
    let (mut verbatim, mut forms) = (HashSet::new(), HashSet::new());
    for (schema, label) in [(&worlds.base, "base"), (&worlds.atlas, "plan"), (&worlds.atlas, "reading")] {
        for number in 0..WORLDS {
            let made = Made::new(&worlds, schema, label, recipe.seed, number).unwrap();
            let names = names(&made.base);
            for at in 0..recipe.worlds.documents {
                let mut rng = made.rng(at);
                let kit = made.kit(&mut rng);
                let Some(Gold { question, .. }) = kit.gold(&mut rng, &ThoughtStyle::ADAPTER, 0.0, Split::Train) else { continue };
                verbatim.insert(words(&question.text).join(" "));
                forms.insert(form(&question.text, &names));
            }
        }
    }
    assert!(forms.len() > 2000, "{} forms: too few to tell", forms.len());
    let atlas = Atlas::load(&root.join("corpora/atlas")).unwrap();
    let names = names(atlas.base());
    let plain = std::fs::read_to_string(root.join("corpora/atlas/questions/plain.jsonl")).unwrap();
    let mut shared = BTreeSet::new();
    let mut count = 0;
    for line in plain.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let (id, question) = (line["id"].as_str().unwrap(), line["question"].as_str().unwrap());
        count += 1;
        let own = words(question).join(" ");
        // a greeting or a short sum is the same whoever writes it
        assert!(own.len() < 12 || !verbatim.contains(&own), "`{question}` is in the training data");
        let form = form(question, &names);
        if forms.contains(&form) {
            shared.insert(format!("{id} {form}"));
        }
    }
    println!("{} of {count} forms are in training data:\n{}", shared.len(), shared.iter().cloned().collect::<Vec<_>>().join("\n"));
    assert!((shared.len() as f64) < MOST_SHARED * f64::from(count), "{} of {count}: {shared:#?}", shared.len());
}

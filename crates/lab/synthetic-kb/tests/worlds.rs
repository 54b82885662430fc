//! Synthetic knowledge bases: consistent, unambiguous, disjoint from the atlas, fast to generate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod support;

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use autoact_base::random::Rng;
use autoact_synthetic_kb::{
    Environment, Kind, Mix, NameMaker, Question, Solver, Split, ThoughtStyle, held_out, question_list, tool_choice,
};
use autoact_trajectory::{Action, Trajectory};
use support::{ATLAS, RealTools, WORLDS, atlas, schema, world};

/// Number of documents in the training of an adapter.
const DOCUMENTS: usize = 2_000;
/// Questions for one knowledge base.
const PER_WORLD: usize = 50;

#[test]
fn no_title_of_the_atlas_is_in_training() {
    let atlas = atlas();
    let names = NameMaker::fit(atlas.base());
    let titles: HashSet<String> =
        atlas.base().entities().iter().map(|entity| entity.title.to_lowercase()).filter(|title| title.chars().count() >= 4).collect();
    let schema = schema(ATLAS);
    for seed in 0..(DOCUMENTS / PER_WORLD) as u64 {
        let base = world(&schema, &names, seed);
        for entity in base.entities() {
            let lower = entity.title.to_lowercase();
            let words: Vec<&str> = lower.split(' ').collect();
            for from in 0..words.len() {
                for to in from + 1..=words.len() {
                    assert!(!titles.contains(&words[from..to].join(" ")), "`{}` holds a real title", entity.title);
                }
            }
        }
    }
}

#[test]
fn worlds_are_the_same_for_the_same_seed_and_consistent() {
    let names = NameMaker::fit(atlas().base());
    for file in [WORLDS, ATLAS] {
        let schema = schema(file);
        let base = world(&schema, &names, 9);
        assert_eq!(base.pages(), world(&schema, &names, 9).pages());
        assert_ne!(base.pages(), world(&schema, &names, 10).pages());
        let titles: HashSet<String> = base.entities().iter().map(|entity| entity.title.to_lowercase()).collect();
        assert_eq!(titles.len(), base.entities().len());
        for (id, entity) in base.entities().iter().enumerate() {
            for (relation, fact) in schema.types[entity.kind].relations.iter().zip(&entity.facts) {
                let Some(fact) = fact else { continue };
                let index = schema.types[entity.kind].relation(&relation.name).unwrap();
                let sentence = base.sentence(id, index).unwrap();
                assert!(sentence.contains(&fact.text), "`{sentence}` lacks `{}`", fact.text);
                assert!(!sentence.contains('{'), "{sentence}");
                if let Some(target) = fact.target {
                    assert_eq!(Some(base.entities()[target].kind), relation.target);
                    assert_eq!(base.entities()[target].title, fact.text);
                }
            }
        }
    }
}

#[test]
fn lookup_by_noun_finds_what_retrieve_cuts() {
    let names = NameMaker::fit(atlas().base());
    let schema = schema(WORLDS);
    let base = world(&schema, &names, 2);
    for (id, entity) in base.entities().iter().enumerate() {
        for sentence in
            &base.page(id).unwrap().sentences[autoact_synthetic_kb::LEAD_SENTENCES.min(base.page(id).unwrap().sentences.len())..]
        {
            for relation in &sentence.states {
                let noun = schema.types[entity.kind].relations[*relation].noun.to_lowercase();
                assert!(sentence.text.to_lowercase().contains(&noun), "`{}` cannot be looked up by `{noun}`", sentence.text);
            }
        }
    }
}

#[test]
fn questions_are_fair() {
    let names = NameMaker::fit(atlas().base());
    for file in [WORLDS, ATLAS] {
        let schema = schema(file);
        let mut answers: HashMap<String, usize> = HashMap::new();
        let mut kinds: HashMap<String, usize> = HashMap::new();
        for seed in 0..20 {
            let base = world(&schema, &names, seed);
            let mut rng = Rng::new(seed);
            for _ in 0..PER_WORLD {
                let Some(question) = base.question(&mut rng, &Mix::default(), Split::Train) else { continue };
                *kinds.entry(question.label()).or_default() += 1;
                fair(&question);
                if question.kind == Kind::YesNo {
                    *answers.entry(question.answer.clone()).or_default() += 1;
                }
                if question.kind == Kind::Hop && question.hops > 1 {
                    assert!(!held_out(&question.chain.join(">")), "{question:?}");
                }
                let (answer, entities) = base.answer(&question).unwrap();
                assert_eq!((answer, entities), (question.answer, question.entities));
            }
        }
        assert_eq!(kinds.len(), 6, "{kinds:?}");
        let yes = answers["yes"] as f64 / (answers["yes"] + answers["no"]) as f64;
        assert!((0.35..0.65).contains(&yes), "{yes} of the yes/no questions are yes");
    }
}

fn fair(question: &Question) {
    let text = question.text.to_lowercase();
    assert!(!question.text.contains('{') && (text.ends_with('?') || text.ends_with('.')), "{question:?}");
    if matches!(question.kind, Kind::Hop | Kind::Inverse) {
        let named = text.split(|c: char| !c.is_alphanumeric()).any(|word| word == question.answer.to_lowercase());
        assert!(!named, "{question:?}");
        let distinct: HashSet<&String> = question.entities.iter().collect();
        assert_eq!(distinct.len(), question.entities.len());
    }
}

#[test]
fn plain_documents_have_their_form() {
    let names = NameMaker::fit(atlas().base());
    let base = world(&schema(WORLDS), &names, 3);
    let tools = RealTools::over(&base);
    let mut rng = Rng::new(1);
    for _ in 0..20 {
        let list = question_list(&base, 6, Split::Any, 0.5, &mut rng).unwrap();
        assert!(list.contains("\nQuestion: ") && list.ends_with("\n\n"), "{list}");
        let choice = tool_choice(&base, tools.0.specs(), Split::Any, &mut rng).unwrap();
        assert!(choice.lines().last().unwrap().starts_with("Needed: ") && choice.contains("Finish"), "{choice}");
    }
}

/// An environment without cost, so that only the generator's speed is measured.
struct Instantly<'a>(&'a HashMap<String, String>);

impl Environment for Instantly<'_> {
    fn run(&mut self, action: &Action, _: &Trajectory) -> String {
        self.0.get(&action.params).cloned().unwrap_or_default()
    }
}

#[test]
fn a_core_makes_hundreds_of_trajectories_a_second() {
    let names = NameMaker::fit(atlas().base());
    let schema = schema(ATLAS);
    let started = Instant::now();
    let mut made = 0;
    for seed in 0..20 {
        let base = world(&schema, &names, seed);
        let pages: HashMap<String, String> = base.pages().into_iter().collect();
        let solver = Solver { base: &base, style: &ThoughtStyle::CANONICAL, tools: &[], detours: 0.0 };
        let mut rng = Rng::new(seed);
        for _ in 0..PER_WORLD {
            let question = base.question(&mut rng, &Mix::default(), Split::Train);
            made += usize::from(question.is_some_and(|question| solver.solve(&question, &mut Instantly(&pages), &mut rng).is_ok()));
        }
    }
    let rate = made as f64 / started.elapsed().as_secs_f64();
    assert!(rate > 200.0, "{rate:.0} trajectories a second");
}

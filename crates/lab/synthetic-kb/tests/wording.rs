//! Rewording: thousands of forms, families apart, the same answers with the real tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::result_large_err, clippy::redundant_clone, clippy::zombie_processes)] // tests

mod support;

use std::collections::{HashMap, HashSet};

use autoact_base::random::Rng;
use autoact_score::exact_match;
use autoact_synthetic_kb::{
    Families, HELD_OUT_FAMILIES, Kind, KnowledgeBase, Mix, NameMaker, Noise, Question, QuestionPlan, Solver, Split, ThoughtStyle, Wording,
};
use autoact_trajectory::{FINISH, Verdict};
use support::{ATLAS, RealTools, WORLDS, atlas, invented, schema, world};

const QUIET: Wording = Wording { noise: Noise { lower: 0.0, unmarked: 0.0, bare: 0.0, typo: 0.0, spaces: 0.0 }, ..Wording::TRAIN };

fn mix() -> Mix {
    Mix { difference: 0.15, ..Mix::default() }
}

/// The text with its names masked: two forms are different only if their wording is.
fn masked(question: &Question) -> String {
    let mut text = question.text.clone();
    for name in question.spelt.iter().map(|name| &name.written).chain(&question.entities) {
        text = text.replace(name, "X");
    }
    text
}

#[test]
fn one_question_has_thousands_of_forms() {
    let atlas = atlas();
    let base = atlas.base();
    let mut rng = Rng::new(1);
    for (name, path) in [("Don Quixote", "book.author"), ("Loire", "river.length"), ("Peru", "country.capital")] {
        let chain = [base.schema().relation_at(path).unwrap()];
        let question = base.question_of_chain(base.find(name).unwrap(), &chain, 0.0, &mut rng).unwrap();
        let mut count = |wording: &Wording, draws: usize| {
            let forms: HashSet<String> = (0..draws).filter_map(|_| base.reword(&question, wording, &mut rng)).map(|q| masked(&q)).collect();
            forms.len()
        };
        let (quiet, noisy) = (count(&QUIET, 20_000), count(&Wording::TRAIN, 20_000));
        assert!(quiet > 800, "{name}: {quiet} forms without noise");
        assert!(noisy > 3_000, "{name}: {noisy} forms");
    }
}

#[test]
fn training_never_makes_a_held_out_family() {
    let invented = invented(7);
    let held: HashSet<&str> = HELD_OUT_FAMILIES.iter().map(|(family, _)| *family).collect();
    let marks = [
        "thanks",
        "thank you",
        ", please?",
        "i wonder",
        "wondering",
        "any idea",
        "between x and x, ",
        "between x and x: ",
        "out of x and",
        "compar",
        "i think",
        "i read",
        "i believe",
        "am i right",
        "as for x",
        "speaking of",
        "is who?",
        "is what?",
        "is who exactly",
        "is what exactly",
        "always forget",
        "friend",
        "somebody told",
    ];
    let mut rng = Rng::new(2);
    // the atlas has the wordings of its question sets, the other all those of training
    let base = atlas().into_base();
    for (base, draws) in [(&base, 4_000), (&invented, 8_000)] {
        let mut families: HashMap<String, usize> = HashMap::new();
        for _ in 0..draws {
            let Some(question) = base.question(&mut rng, &mix(), Split::Train) else { continue };
            let Some(question) = base.reword(&question, &QUIET, &mut rng) else { continue };
            let family = question.family.clone().unwrap();
            assert!(!held.contains(family.as_str()), "{question:?}");
            let text = masked(&question).to_lowercase();
            assert!(!marks.iter().any(|mark| text.contains(mark)), "{text}");
            *families.entry(family).or_default() += 1;
        }
        assert!(families.len() >= 17, "{families:?}");
    }
    for (family, _) in HELD_OUT_FAMILIES {
        let wording = Wording { families: Families::HeldOut(family), ..QUIET };
        let mut made = 0;
        for _ in 0..500 {
            let Some(question) = base.question(&mut rng, &mix(), Split::Train) else { continue };
            let Some(question) = base.reword(&question, &wording, &mut rng) else { continue };
            assert_eq!(question.family.as_deref(), Some(family));
            made += 1;
        }
        assert!(made > 15, "{family}: {made}");
    }
}

/// Rewords and solves questions of a base with its real tools; returns how many were solved.
#[track_caller]
fn solve_reworded(base: &KnowledgeBase, style: &ThoughtStyle, draws: usize, least: f64) {
    let mut tools = RealTools::over(base);
    let specs = tools.0.specs().to_vec();
    let solver = Solver { base, style, tools: &specs, detours: 0.05 };
    let mut rng = Rng::new(9);
    let (mut made, mut failed) = (0, Vec::new());
    for _ in 0..draws {
        let Some(plain) = base.question(&mut rng, &mix(), Split::Any) else { continue };
        if solver.solve(&plain, &mut tools, &mut rng).is_err() {
            continue;
        }
        let Some(question) = base.reword(&plain, &Wording::TRAIN, &mut rng) else { continue };
        made += 1;
        assert_eq!((&question.answer, &question.plan, &question.id), (&plain.answer, &plain.plan, &plain.id));
        let told = matches!(question.kind, Kind::Hop | Kind::Inverse | Kind::Difference);
        let text = format!(" {} ", question.text.to_lowercase().replace(['?', '.', ',', ':'], " "));
        assert!(!told || !text.contains(&format!(" {} ", question.answer.to_lowercase())), "{question:?}");
        assert!(!question.text.contains(['{', '}', '\u{E000}', '\u{E001}']), "{question:?}");
        match solver.solve(&question, &mut tools, &mut rng) {
            Ok(gold) => {
                let last = gold.steps().next_back().unwrap();
                assert_eq!(last.tool, FINISH);
                assert!(exact_match(last.params.as_deref().unwrap(), &question.answer), "{question:?}\n{gold:#?}");
                grounded(&question, &gold);
                assert_eq!(solver.reflect(&question, &gold).unwrap().verdict, Verdict::Right);
                if let Some((wrong, fault)) = solver.spoil(&question, &gold, &mut tools, &mut rng) {
                    assert_eq!(solver.reflect(&question, &wrong).unwrap().verdict, Verdict::Wrong, "{fault:?}");
                    let mended = solver.mend(&question, &wrong, &mut tools, &mut rng).unwrap();
                    assert!(exact_match(mended.steps().next_back().unwrap().params.as_deref().unwrap(), &question.answer), "{mended:#?}");
                }
            }
            Err(error) => failed.push(format!("{}: {error}", question.text)),
        }
    }
    let solved = 1.0 - failed.len() as f64 / f64::from(made);
    assert!(made > draws as i32 / 2 && solved >= least, "{solved:.3} of {made} solved; not:\n{}", failed.join("\n"));
}

/// What Retrieve and Finish are given was read in the question or an observation.
fn grounded(question: &Question, gold: &autoact_trajectory::Trajectory) {
    let mut known = question.text.clone();
    for step in gold.steps() {
        let params = step.params.as_deref().unwrap();
        let computed = question.kind == Kind::Difference || matches!(params, "yes" | "no");
        let copied = step.tool == "Retrieve" || (step.tool == FINISH && !computed);
        assert!(!copied || known.contains(params), "`{params}` was never read in {gold:#?}");
        known.push_str(step.observation.as_deref().unwrap_or_default());
    }
}

#[test]
fn reworded_questions_of_the_atlas_have_the_same_answers() {
    solve_reworded(atlas().base(), &ThoughtStyle::ADAPTER, 1_500, 0.97);
}

#[test]
fn reworded_questions_of_worlds_have_the_same_answers() {
    let names = NameMaker::fit(atlas().base());
    for (round, file) in [WORLDS, ATLAS].into_iter().enumerate() {
        let base = world(&schema(file), &names, 5);
        solve_reworded(&base, &ThoughtStyle::ALL[1 + round], 800, 0.95);
    }
}

#[test]
fn the_phrasings_are_solved_and_only_their_wording_is_new() {
    let atlas = atlas();
    let questions = atlas.phrasings();
    let mut families: HashMap<String, usize> = HashMap::new();
    let mut tools = RealTools::over(atlas.base());
    let specs = tools.0.specs().to_vec();
    let solver = Solver { base: atlas.base(), style: &ThoughtStyle::ADAPTER, tools: &specs, detours: 0.0 };
    let known: HashSet<String> = atlas.held_out().into_iter().chain(atlas.dev()).map(|question| question.id).collect();
    for question in &questions {
        *families.entry(question.family.clone().unwrap()).or_default() += 1;
        assert!(!known.contains(&question.id), "{question:?}");
        assert!(question.kind != Kind::Hop || question.hops == 1 || !autoact_synthetic_kb::held_out(&question.chain.join(">")));
        assert!(question.spelt.is_empty() && question.written.is_none(), "{question:?}");
        let gold = solver.solve(question, &mut tools, &mut Rng::new(1)).unwrap();
        assert!(exact_match(gold.steps().next_back().unwrap().params.as_deref().unwrap(), &question.answer));
    }
    assert_eq!(families, HELD_OUT_FAMILIES.iter().map(|(family, _)| ((*family).to_owned(), 34)).collect());
}

#[test]
fn a_surname_opens_the_page_and_the_thought_goes_on_with_the_title() {
    let atlas = atlas();
    let base = atlas.base();
    let mut tools = RealTools::over(base);
    let specs = tools.0.specs().to_vec();
    let solver = Solver { base, style: &ThoughtStyle::CANONICAL, tools: &specs, detours: 0.0 };
    let mozart = base.find("Wolfgang Amadeus Mozart").unwrap();
    assert_eq!(base.aliases(mozart), ["Mozart"]);
    for name in ["Johann Wolfgang von Goethe", "Albert Einstein"] {
        assert!(!base.aliases(base.find(name).unwrap()).is_empty(), "{name}");
    }
    let chain = [base.schema().relation_at("person.birth_year").unwrap()];
    let mut rng = Rng::new(4);
    let question = base.question_of_chain(mozart, &chain, 0.0, &mut rng).unwrap();
    let wording = Wording { aliases: 1.0, noise: Noise { lower: 1.0, ..Noise::default() }, families: Families::Train };
    let question = base.reword(&question, &wording, &mut rng).unwrap();
    assert!(question.text.contains("mozart") && !question.text.contains("amadeus"), "{question:?}");
    let gold = solver.solve(&question, &mut tools, &mut rng).unwrap();
    let steps: Vec<_> = gold.steps().collect();
    assert_eq!(steps[0].params.as_deref(), Some("mozart"));
    assert_eq!(steps[0].thought, "I need the birth year of mozart.");
    assert!(steps[1].thought.contains("of Wolfgang Amadeus Mozart is 1756."), "{}", steps[1].thought);
}

#[test]
fn a_claimed_or_sought_surname_is_that_of_one_alone() {
    let base = invented(8);
    let mut rng = Rng::new(3);
    let (mut claimed, mut sought) = (0, 0);
    for mix in [Mix::only_yes_no(), Mix::only_inverse()] {
        for _ in 0..1_500 {
            let Some(question) = base.question(&mut rng, &mix, Split::Train) else { continue };
            let (QuestionPlan::IsValue { claim: value, .. } | QuestionPlan::Inverse { value }) = &question.plan else { continue };
            let Some(reworded) = base.reword(&question, &QUIET, &mut rng) else { continue };
            let Some(spelling) = reworded.spelt.iter().find(|spelling| spelling.title == *value) else { continue };
            let written = spelling.written.as_str();
            assert!(base.aliases(base.find(value).unwrap()).iter().any(|alias| alias == written));
            let alike: Vec<&str> =
                base.entities().iter().map(|other| other.title.as_str()).filter(|other| other.contains(written)).collect();
            assert!(alike.iter().all(|other| *other == value || !other.split(' ').any(|word| word == written)), "{written}: {alike:?}");
            claimed += usize::from(question.kind == Kind::YesNo);
            sought += usize::from(question.kind == Kind::Inverse);
        }
    }
    assert!(claimed > 3 && sought > 20, "{claimed} {sought}");
}

#[test]
fn differences_are_calculated() {
    let base = atlas().into_base();
    let mut tools = RealTools::over(&base);
    let specs = tools.0.specs().to_vec();
    let mut rng = Rng::new(6);
    let (mut ages, mut named, mut unnamed, mut gaps) = (0, 0, 0, 0);
    for round in 0..250 {
        let solver = Solver { base: &base, style: &ThoughtStyle::ALL[round % 6], tools: &specs, detours: 0.0 };
        let Some(question) = base.question(&mut rng, &Mix::only_difference(), Split::Any) else { continue };
        assert_eq!(base.answer(&question), Some((question.answer.clone(), question.entities.clone())));
        let QuestionPlan::Difference { minus, .. } = &question.plan else { panic!("{question:?}") };
        match (minus.len(), question.entities.len()) {
            (0, _) => gaps += 1,
            (1, 1) => ages += 1,
            (1, _) => named += 1,
            _ => unnamed += 1,
        }
        let gold = solver.solve(&question, &mut tools, &mut rng).unwrap();
        let steps: Vec<_> = gold.steps().collect();
        assert!(steps.iter().any(|step| step.tool == "Calculate" && step.params.as_ref().unwrap().contains(" - ")), "{gold:#?}");
        assert_eq!(steps.last().unwrap().params.as_ref(), Some(&question.answer));
        let number: f64 = question.answer.split(' ').next().unwrap().parse().unwrap();
        assert!(number > 0.0);
        assert_eq!(solver.reflect(&question, &gold).unwrap().verdict, Verdict::Right);
    }
    assert!(ages > 20 && named > 15 && unnamed > 5 && gaps > 50, "{ages} {named} {unnamed} {gaps}");
}

#[test]
fn two_relations_are_asked_in_one_breath() {
    let base = atlas().into_base();
    let mut tools = RealTools::over(&base);
    let specs = tools.0.specs().to_vec();
    let solver = Solver { base: &base, style: &ThoughtStyle::ADAPTER, tools: &specs, detours: 0.0 };
    let mut rng = Rng::new(8);
    let chain = ["landmark.city", "city.country"].map(|path| base.schema().relation_at(path).unwrap());
    let question = base.question_of_chain(base.find("Taj Mahal").unwrap(), &chain, 0.0, &mut rng).unwrap();
    assert!(question.text.contains("city") || question.text.contains("where"), "{}", question.text);
    let reworded: Vec<Question> = (0..200).filter_map(|_| base.reword(&question, &QUIET, &mut rng)).collect();
    let fused: Vec<&Question> = reworded.iter().filter(|question| masked(question).ends_with("country is X in?")).collect();
    assert!(!fused.is_empty());
    let gold = solver.solve(fused[0], &mut tools, &mut rng).unwrap();
    let opened: Vec<&str> = gold.steps().filter_map(|step| step.params.as_deref()).collect();
    assert_eq!(opened, ["Taj Mahal", "Agra", "India"]);
    // held-out families are made of single relations, as before
    let apart = Wording { families: Families::HeldOut("polite"), ..QUIET };
    let mut texts = (0..200).filter_map(|_| base.reword(&question, &apart, &mut rng)).map(|question| masked(&question));
    assert!(!texts.any(|text| text.contains("country is X in")));
}

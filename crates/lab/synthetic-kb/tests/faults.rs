//! Questions without an answer, arithmetic, and wrong trajectories of every kind, with the real
//! tools.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)] // tests

mod support;

use std::collections::{BTreeMap, HashSet};

use autoact_base::random::Rng;
use autoact_score::exact_match;
use autoact_synthetic_kb::{Fault, KnowledgeBase, Mix, NameMaker, Question, QuestionPlan, Solver, Split, ThoughtStyle, Why};
use autoact_trajectory::{FINISH, NOT_FOUND, Trajectory, Turn, Verdict};
use support::{ATLAS, RealTools, WORLDS, atlas, schema, world};

fn worlds() -> Vec<KnowledgeBase> {
    let names = NameMaker::fit(atlas().base());
    [WORLDS, ATLAS].iter().flat_map(|file| (0..3).map(|seed| world(&schema(file), &names, seed)).collect::<Vec<_>>()).collect()
}

fn last(trajectory: &Trajectory) -> (&str, &str) {
    let step = trajectory.steps().next_back().unwrap();
    (step.tool.as_str(), step.params.as_deref().unwrap())
}

#[test]
fn unanswerable_questions_end_in_not_found() {
    let mut reasons: BTreeMap<Option<Why>, usize> = BTreeMap::new();
    let (mut asked, mut solved) = (0, 0);
    let (mut texts, mut nouns, mut of_two_types) = (HashSet::new(), HashSet::new(), 0);
    for (seed, base) in worlds().iter().enumerate() {
        let mut tools = RealTools::over(base);
        let specs = tools.0.specs().to_vec();
        let mut rng = Rng::new(seed as u64);
        for round in 0..400 {
            let style = &ThoughtStyle::ALL[round % ThoughtStyle::ALL.len()];
            let solver = Solver { base, style, tools: &specs, detours: 0.0 };
            let Some(question) = base.question(&mut rng, &Mix::only_unanswerable(), Split::Any) else { continue };
            asked += 1;
            assert!(!question.is_answerable());
            let Ok(gold) = solver.solve(&question, &mut tools, &mut rng) else { continue };
            solved += 1;
            texts.insert(question.text.clone());
            assert_eq!(last(&gold).0, NOT_FOUND, "{gold:#?}");
            let why = match &question.plan {
                QuestionPlan::Missing { why, read, name, noun, .. } => {
                    // what leads there is shown, and nothing shows what is missing
                    let entity = base.find(name);
                    let relation =
                        entity.and_then(|id| base.schema().types[base.entities()[id].kind].relations.iter().position(|r| r.noun == *noun));
                    let sentence = entity.zip(relation).and_then(|(id, relation)| base.sentence(id, relation));
                    assert_eq!(sentence, None, "{question:?}");
                    let shown = |title: &String| gold.steps().any(|step| step.params.as_ref() == Some(title));
                    assert!(read.iter().all(|read| shown(&read.title)), "{gold:#?}");
                    assert!(entity.is_none() || *why != Why::Entity, "{question:?}");
                    of_two_types += usize::from(*why == Why::Side && entity.is_some() && relation.is_none());
                    nouns.insert(noun.clone());
                    Some(*why)
                }
                _ => None,
            };
            *reasons.entry(why).or_default() += 1;
            let judged = solver.reflect(&question, &gold).unwrap();
            assert_eq!(judged.verdict, Verdict::Right, "{gold:#?}");
        }
    }
    println!("{asked} asked, {solved} solved, {} texts: {reasons:?}", texts.len());
    assert!(solved * 100 >= asked * 85, "{solved} of {asked}");
    assert!(texts.len() * 100 >= solved * 90, "{} texts", texts.len());
    assert_eq!(reasons.len(), 6, "{reasons:?}");
    // Is a person longer than a river, and what do people ask of one?
    assert!(of_two_types > 20, "{of_two_types}");
    let of_a_type = [
        "population",
        "shoe size",
        "phone number",
        "wedding date",
        "price",
        "rainy season",
        "founding date",
        "length of a day",
        "cause of death",
        "number of students",
        "box office",
    ];
    assert!(of_a_type.iter().filter(|noun| nouns.contains(**noun)).count() > 2, "{nouns:?}");
}

#[test]
fn arithmetic_is_calculated() {
    let names = NameMaker::fit(atlas().base());
    let base = world(&schema(WORLDS), &names, 2);
    let mut tools = RealTools::over(&base);
    let specs = tools.0.specs().to_vec();
    let mut rng = Rng::new(8);
    for _ in 0..500 {
        let solver = Solver { base: &base, style: &ThoughtStyle::CANONICAL, tools: &specs, detours: 0.0 };
        let Some(question) = base.question(&mut rng, &Mix::only_arithmetic(), Split::Any) else { continue };
        let gold = solver.solve(&question, &mut tools, &mut rng).unwrap();
        assert_eq!(gold.turns.len(), 2, "{gold:#?}");
        assert_eq!(last(&gold), (FINISH, question.answer.as_str()));
        assert_eq!(solver.reflect(&question, &gold).unwrap().verdict, Verdict::Right);
    }
}

#[test]
fn the_mix_has_the_fractions_it_is_asked_for() {
    let names = NameMaker::fit(atlas().base());
    let base = world(&schema(ATLAS), &names, 1);
    let mut rng = Rng::new(1);
    let mix = Mix::default().with(0.03, 0.15);
    let questions: Vec<Question> = (0..3000).filter_map(|_| base.question(&mut rng, &mix, Split::Train)).collect();
    let part = |label: &str| questions.iter().filter(|question| question.label() == label).count() as f64 / questions.len() as f64;
    assert!((part("unanswerable") - 0.15).abs() < 0.03 && (part("arithmetic") - 0.03).abs() < 0.015);
    let before = Mix::default();
    assert!((0..300).filter_map(|_| base.question(&mut rng, &before, Split::Train)).all(|question| question.is_answerable()));
}

#[test]
fn every_fault_is_judged_wrong_mended_and_about_as_frequent_as_the_others() {
    let mut faults: BTreeMap<Fault, usize> = BTreeMap::new();
    let mut families: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut longest, mut tried) = (0, 0);
    for (seed, base) in worlds().iter().enumerate() {
        let mut tools = RealTools::over(base);
        let specs = tools.0.specs().to_vec();
        let mut rng = Rng::new(100 + seed as u64);
        for round in 0..500 {
            let style = &ThoughtStyle::ALL[round % ThoughtStyle::ALL.len()];
            let solver = Solver { base, style, tools: &specs, detours: 0.02 };
            let mix = Mix::default().with(0.03, 0.15);
            let Some(question) = base.question(&mut rng, &mix, Split::Any) else { continue };
            let Ok(gold) = solver.solve(&question, &mut tools, &mut rng) else { continue };
            assert_eq!(solver.reflect(&question, &gold).unwrap().verdict, Verdict::Right, "{question:?}\n{gold:#?}");
            tried += 1;
            let Some((spoilt, fault)) = solver.spoil(&question, &gold, &mut tools, &mut rng) else { continue };
            *faults.entry(fault).or_default() += 1;
            *families.entry(fault.family()).or_default() += 1;
            let judged = solver.reflect(&question, &spoilt).unwrap();
            assert_eq!(judged.verdict, Verdict::Wrong, "{fault:?} {question:?}\n{spoilt:#?}");
            longest = longest.max(judged.thought.chars().count());
            let mended = solver.mend(&question, &spoilt, &mut tools, &mut rng);
            let mended = mended.unwrap_or_else(|error| panic!("{fault:?} {error} {question:?}\n{spoilt:#?}"));
            assert_eq!(mended.turns[..spoilt.turns.len()], spoilt.turns[..]);
            assert_eq!(mended.turns[spoilt.turns.len()], Turn::Reflection(judged));
            let (tool, given) = last(&mended);
            if question.is_answerable() {
                assert!(tool == FINISH && exact_match(given, &question.answer), "{fault:?} {mended:#?}");
            } else {
                assert_eq!(tool, NOT_FOUND, "{fault:?} {mended:#?}");
            }
            assert_eq!(solver.reflect(&question, &mended).unwrap().verdict, Verdict::Right);
        }
    }
    println!("{tried} tried, longest thought {longest}: {faults:?}\n{families:?}");
    assert_eq!(faults.len(), Fault::ALL.len(), "{faults:?}");
    let (least, most) = (families.values().min().unwrap(), families.values().max().unwrap());
    assert!(most <= &(2 * least), "{families:?}");
    // an agent's thought has at most 600 characters
    assert!(longest <= 600, "{longest}");
    let total: usize = faults.values().sum();
    assert!(total * 100 >= tried * 97, "{total} of {tried}");
}

//! Properties that hold for all answers and all lists of scores.
#![allow(clippy::unwrap_used)]

use autoact_score::{Bootstrap, PairError, exact_match, f1, label, named, normalize, options};
use proptest::prelude::*;

fn bootstrap(seed: u64) -> Bootstrap {
    Bootstrap { resamples: 200, seed, ..Bootstrap::default() }
}

proptest! {
    #[test]
    fn any_answer_has_a_score(answer in any::<String>(), gold in any::<String>()) {
        let score = f1(&answer, &gold);
        prop_assert!((0.0..=1.0).contains(&score));
        prop_assert!((score - f1(&gold, &answer)).abs() < 1e-12);
        if exact_match(&answer, &gold) && !normalize(&gold).is_empty() {
            prop_assert_eq!(score, 1.0);
        }
    }

    #[test]
    fn an_answer_is_itself(answer in "[a-zA-Z0-9 .,'-]{0,40}") {
        prop_assert!(exact_match(&answer, &answer));
        prop_assert_eq!(f1(&answer, &answer), f64::from(u8::from(!normalize(&answer).is_empty())));
    }

    #[test]
    fn articles_and_punctuation_change_nothing(words in prop::collection::vec("[b-z][a-z]{1,6}", 1..5)) {
        let bare = words.join(" ");
        let dressed = words.iter().map(|word| format!("The {word},")).collect::<Vec<_>>().join("  ");
        prop_assert!(exact_match(&dressed, &bare) || words.iter().any(|word| word == "the"));
    }

    #[test]
    fn any_text_is_read_as_options(text in any::<String>(), answer in any::<String>()) {
        let options = options(&format!("{text}Options: (A){text}"));
        prop_assert!(options.len() <= 26);
        prop_assert!(named(&answer, &options).is_none_or(|index| index < options.len()));
    }

    #[test]
    fn written_options_are_read_back(options in prop::collection::vec("[b-z]{1,8}( [b-z]{1,8})?", 1..6)) {
        let list: Vec<String> = options.iter().enumerate().map(|(index, option)| format!("({}) {option}", label(index))).collect();
        prop_assert_eq!(autoact_score::options(&format!("Which?\nOptions: {}", list.join(" "))), options);
    }

    #[test]
    fn an_interval_lies_among_its_values(values in prop::collection::vec(-5.0..5.0_f64, 1..60), seed: u64) {
        let interval = bootstrap(seed).mean(&values);
        let least = values.iter().copied().fold(f64::INFINITY, f64::min) - 1e-9;
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) + 1e-9;
        prop_assert!(least <= interval.low && interval.low <= interval.high && interval.high <= most);
        prop_assert_eq!(interval, bootstrap(seed).mean(&values));
    }

    #[test]
    fn equal_values_are_certain(value in -5.0..5.0_f64, count in 1_usize..40) {
        let interval = bootstrap(1).mean(&vec![value; count]);
        prop_assert!((interval.low - value).abs() < 1e-9 && (interval.high - value).abs() < 1e-9);
    }

    #[test]
    fn differences_are_antisymmetric(pairs in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 1..40), seed: u64) {
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        let there = bootstrap(seed).paired(&left, &right).unwrap();
        let back = bootstrap(seed).paired(&right, &left).unwrap();
        prop_assert!((there.mean + back.mean).abs() < 1e-9);
        prop_assert!((there.low + back.high).abs() < 1e-9 && (there.high + back.low).abs() < 1e-9);
        prop_assert!(!bootstrap(seed).paired(&left, &left).unwrap().excludes_zero());
    }

    #[test]
    fn more_questions_are_surer(share in 0.2..0.8_f64, seed: u64) {
        let width = |count: usize| {
            let right = (count as f64 * share).round() as usize;
            let values: Vec<f64> = (0..count).map(|at| f64::from(u8::from(at < right))).collect();
            let interval = bootstrap(seed).mean(&values);
            interval.high - interval.low
        };
        prop_assert!(width(900) < width(30));
    }
}

#[test]
fn lists_of_other_questions_are_not_paired() {
    assert_eq!(Bootstrap::default().paired(&[1.0], &[]), Err(PairError { left: 1, right: 0 }));
}

#[test]
fn an_interval_is_as_wide_as_theory_says() {
    // the standard error of a fraction of 0.5 over 400 questions is 0.025
    let values: Vec<f64> = (0..400).map(|at| f64::from(at % 2)).collect();
    let interval = Bootstrap::default().mean(&values);
    assert!((interval.mean - 0.5).abs() < 1e-12);
    assert!((interval.low - (0.5 - 1.96 * 0.025)).abs() < 0.008, "{interval:?}");
    assert!((interval.high - (0.5 + 1.96 * 0.025)).abs() < 0.008, "{interval:?}");
}

#[test]
fn no_values_have_no_interval() {
    let interval = Bootstrap::default().mean(&[]);
    assert_eq!((interval.mean, interval.low, interval.high), (0.0, 0.0, 0.0));
}

//! Compares with HotpotQA's official evaluation script: `hotpotqa.jsonl` has its results.
#![allow(clippy::unwrap_used)]

use autoact_score::{exact_match, f1, normalize};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    answer: String,
    gold: String,
    normal: String,
    exact: bool,
    f1: f64,
}

#[test]
fn scores_are_the_official_scripts() {
    let cases: Vec<Case> = include_str!("hotpotqa.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() > 40);
    for Case { answer, gold, normal, exact, f1: expected } in cases {
        assert_eq!(normalize(&answer), normal, "{answer:?}");
        assert_eq!(exact_match(&answer, &gold), exact, "{answer:?} {gold:?}");
        assert!((f1(&answer, &gold) - expected).abs() < 1e-12, "{answer:?} {gold:?}: {} {expected}", f1(&answer, &gold));
    }
}

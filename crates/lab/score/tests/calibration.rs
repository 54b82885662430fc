//! Fits and ranks compared with scikit-learn 1.9 (`LogisticRegression(C=1)` on standardised
//! columns, mean log-probabilities as −ln(−x); `roc_auc_score`), and properties that hold for all answers.
#![allow(clippy::unwrap_used)]

use autoact_base::random::SplitMix64;
use autoact_score::{
    FitError, Judged, auroc, calibration_error, curve, fit, fit_or_approve_none, fit_within_reach, precision_at_least, threshold_for,
};
use autoact_trajectory::{Calibration, Evidence};
use proptest::prelude::*;

/// Answers that are right the more often the likelier their thoughts are; `lowest_input`,
/// `all_thoughts` and how the answer fits are constant.
fn judged() -> Vec<Judged> {
    let mut draws = SplitMix64::new(14);
    let mut one = |at: usize| {
        let values: Vec<f64> = (0..6).map(|_| draws.unit()).collect();
        let thoughts = -2.0 * values[1];
        let evidence = Evidence {
            verdict: 8.0 * values[0] - 4.0,
            thoughts,
            lowest_thought: thoughts - values[2],
            inputs: -values[3],
            lowest_input: 0.0,
            reflection: -1.5 * values[5],
            all_thoughts: 0.0,
            answer_kind: 0.0,
            question_covered: 0.5,
            answer_shown: 1.0,
            calls_found: 1.0,
            thoughts_grounded: 0.5,
        };
        let odds = 4.0 * (1.0 + thoughts) + 0.25 * evidence.verdict + 0.5;
        let right = draws.unit() < 1.0 / (1.0 + (-odds).exp());
        Judged { question: format!("question {at:03}"), evidence, approved: true, right }
    };
    (0..200).map(&mut one).collect()
}

fn by_part(judged: &[Judged], part: usize) -> Vec<(f64, bool)> {
    judged.iter().map(|one| (one.evidence.values()[part], one.right)).collect()
}

fn weights(calibration: &Calibration) -> Vec<f64> {
    calibration.terms.iter().map(|term| term.weight).collect()
}

fn close(found: f64, expected: f64) -> bool {
    (found - expected).abs() < 1e-7
}

#[test]
fn weights_are_those_of_scikit_learn() {
    let judged = judged();
    let calibration = fit(&judged, 0.9).unwrap().calibration;
    calibration.check().unwrap();
    let parts: Vec<&str> = calibration.terms.iter().map(|term| term.part.as_str()).collect();
    assert_eq!(parts, ["verdict", "thoughts", "lowest_thought", "inputs", "reflection"], "constant parts do not count");
    assert_eq!((calibration.histories, calibration.precision), (200, 0.9));
    let expected = [0.44965425698217565, 3.1991178471879835, 0.2291136410560285, 0.22479028257496386, 0.20803295980961814];
    assert!(close(calibration.intercept, 1.4700365803542463), "{calibration:?}");
    assert!(weights(&calibration).into_iter().zip(expected).all(|(found, expected)| close(found, expected)), "{calibration:?}");
    assert!(close(calibration.terms[1].mean, 0.391217212963025) && close(calibration.terms[1].deviation, 1.013774094685971));
    let confidences: Vec<(f64, bool)> = judged.iter().map(|one| (calibration.confidence(&one.evidence), one.right)).collect();
    assert!(close(auroc(&confidences).unwrap(), 0.932876854445482));
    assert!(close(calibration_error(&confidences).unwrap(), 0.05964306175750945));
}

/// Few answers may say that an unsure thought is a good sign. A fit that believed it would prefer
/// gibberish.
#[test]
fn no_part_counts_against_an_answer() {
    let against = |one: Judged| Judged { right: !one.right, ..one };
    let judged: Vec<Judged> = judged().into_iter().map(against).collect();
    let calibration = fit_or_approve_none(&judged, 0.9).unwrap().calibration;
    assert!(weights(&calibration).into_iter().all(|weight| weight >= 0.0), "{calibration:?}");
    assert!(calibration.terms.iter().all(|term| term.part != "thoughts"), "{calibration:?}");
}

#[test]
fn auroc_is_that_of_scikit_learn() {
    let judged = judged();
    let expected = [0.5609503060483453, 0.9221910986616869, 0.8568316215375039, 0.4870837223778401, 0.5, 0.5202821869488536, 0.5];
    for (part, expected) in expected.into_iter().enumerate() {
        assert!(close(auroc(&by_part(&judged, part)).unwrap(), expected), "{part}");
    }
    let tied: Vec<(f64, bool)> = by_part(&judged, 1).into_iter().map(|(value, right)| ((4.0 * value).round_ties_even(), right)).collect();
    assert!(close(auroc(&tied).unwrap(), 0.9149808071376699));
}

#[test]
fn a_threshold_is_chosen_on_answers_that_the_fit_has_not_seen() {
    let judged = judged();
    let fitted = fit(&judged, 0.9).unwrap();
    let unseen: Vec<(f64, bool)> = fitted.confidences.iter().copied().zip(judged.iter().map(|one| one.right)).collect();
    assert_eq!(threshold_for(0.9, &unseen), Ok(fitted.calibration.threshold));
    // what a fit has seen looks better
    let seen: Vec<(f64, bool)> = judged.iter().map(|one| (fitted.calibration.confidence(&one.evidence), one.right)).collect();
    assert!(auroc(&unseen).unwrap() < auroc(&seen).unwrap());
    let approved: Vec<bool> = unseen.iter().filter(|(score, _)| *score >= fitted.calibration.threshold).map(|(_, right)| *right).collect();
    assert!(precision_at_least(approved.iter().filter(|right| **right).count(), approved.len()) >= 0.9);
    assert!(approved.len() > 50, "{}", approved.len());
}

#[test]
fn the_answers_to_a_question_are_never_on_both_sides() {
    // every question twice: if its other answer were fitted on, the copy would give it away
    let once = judged();
    let twice = [once.clone(), once.clone()].concat();
    let fitted = fit(&twice, 0.9).unwrap();
    assert_eq!(fitted.confidences[..200], fitted.confidences[200..]);
    // a question's fold does not depend on the order either
    let reversed: Vec<Judged> = once.iter().rev().cloned().collect();
    let (straight, turned) = (fit(&once, 0.9).unwrap().confidences, fit(&reversed, 0.9).unwrap().confidences);
    assert!(straight.iter().zip(turned.iter().rev()).all(|(left, right)| close(*left, *right)));
}

#[test]
fn answers_with_the_verdict_wrong_count_for_weights_alone() {
    let mut judged = judged();
    let all = fit(&judged, 0.9).unwrap();
    judged.iter_mut().filter(|one| !one.right).for_each(|one| one.approved = false);
    let approvable = fit(&judged, 0.9).unwrap();
    assert_eq!(weights(&approvable.calibration), weights(&all.calibration));
    let lowest = judged.iter().zip(&approvable.confidences).filter(|(one, _)| one.right).map(|(_, confidence)| *confidence);
    assert_eq!(approvable.calibration.threshold, lowest.fold(f64::INFINITY, f64::min));
}

#[test]
fn a_precision_out_of_reach_approves_nothing_and_tells_the_next_lower_one() {
    let judged = judged();
    assert_eq!((fit_or_approve_none(&judged, 0.9), fit_within_reach(&judged, 0.9)), (fit(&judged, 0.9), None));
    let asked = 0.995;
    let Err(FitError::Unreachable { best, .. }) = fit(&judged, asked) else { panic!("it is reached") };
    let (lower, none) = (fit_within_reach(&judged, asked).unwrap(), fit_or_approve_none(&judged, asked).unwrap());
    let reached = lower.calibration.precision;
    assert!(reached <= best && best < reached + 0.05, "{reached} {best}");
    assert!(((asked - reached) / 0.05).fract().min(1.0 - ((asked - reached) / 0.05).fract()) < 1e-6, "{reached}");
    assert_eq!(lower, fit(&judged, reached).unwrap());
    assert_eq!((none.calibration.threshold, none.calibration.precision), (Calibration::NEVER, asked));
    assert_eq!((weights(&none.calibration), &none.confidences), (weights(&lower.calibration), &lower.confidences));
    assert!(judged.iter().all(|one| none.calibration.confidence(&one.evidence) < none.calibration.threshold));
    // an approval that is wrong more often than not is not worth telling
    let noise: Vec<Judged> = judged.iter().cloned().enumerate().map(|(at, one)| Judged { right: at % 4 == 0, ..one }).collect();
    assert_eq!(fit_within_reach(&noise, 0.9), None);
    assert_eq!(fit_or_approve_none(&noise, 0.9).unwrap().calibration.threshold, Calibration::NEVER);
}

#[test]
fn too_few_answers_of_a_class_have_one_confidence() {
    let judged = judged();
    let of = |right: bool, count| judged.iter().filter(move |one| one.right == right).take(count).cloned();
    let fitted = |right, wrong| fit_or_approve_none(&of(true, right).chain(of(false, wrong)).collect::<Vec<_>>(), 0.9);
    let hardly_any_right = fitted(4, 79).unwrap();
    assert_eq!(hardly_any_right.calibration.threshold, Calibration::NEVER);
    assert!(hardly_any_right.confidences.iter().all(|confidence| close(*confidence, 5.0 / 85.0)));
    let hardly_any_wrong = fitted(99, 2).unwrap().calibration;
    assert!(of(true, 99).all(|one| hardly_any_wrong.confidence(&one.evidence) >= hardly_any_wrong.threshold));
    assert!(matches!(fitted(0, 0), Err(FitError::TooFew { right: 0, wrong: 0 })));
}

#[test]
fn what_cannot_be_fitted_is_refused() {
    let judged = judged();
    let wrong: Vec<Judged> = judged.iter().filter(|one| !one.right).cloned().collect();
    assert_eq!(fit(&wrong, 0.9), Err(FitError::TooFew { right: 0, wrong: 81 }));
    assert_eq!(fit(&[], 0.9), Err(FitError::TooFew { right: 0, wrong: 0 }));
    assert!(matches!(fit(&judged, 1.0), Err(FitError::Precision { .. })));
    assert!(matches!(fit(&judged, f64::NAN), Err(FitError::Precision { .. })));
    let noise: Vec<Judged> = judged.iter().cloned().enumerate().map(|(at, one)| Judged { right: at % 2 == 0, ..one }).collect();
    assert!(matches!(fit(&noise, 0.97), Err(FitError::Unreachable { best, .. }) if best < 0.97));
    // one question answered often is one question
    let same: Vec<Judged> = judged.into_iter().map(|one| Judged { question: String::new(), ..one }).collect();
    assert_eq!(fit(&same, 0.9), Err(FitError::TooFew { right: 1, wrong: 1 }));
}

#[test]
fn separable_and_broken_evidence_is_no_trouble() {
    let separable = |one: Judged| Judged { right: one.evidence.thoughts > -1.0, ..one };
    let mut judged: Vec<Judged> = judged().into_iter().map(separable).collect();
    judged[3].evidence.verdict = f64::NEG_INFINITY;
    let fitted = fit(&judged, 0.9).unwrap();
    fitted.calibration.check().unwrap();
    assert_eq!((fitted.confidences[3], fitted.calibration.histories), (0.0, 199));
    let constant: Vec<Judged> = judged.iter().map(|one| Judged { evidence: judged[0].evidence, ..one.clone() }).collect();
    let fitted = fit(&constant, 0.4).unwrap().calibration;
    assert!(fitted.terms.is_empty() && fitted.check().is_ok(), "{fitted:?}");
}

prop_compose! {
    fn scored()(scores in prop::collection::vec((0..20_u8, any::<bool>()), 0..60)) -> Vec<(f64, bool)> {
        scores.into_iter().map(|(score, right)| (f64::from(score) / 19.0, right)).collect()
    }
}

proptest! {
    #[test]
    fn auroc_counts_every_pair(scored in scored()) {
        let pairs = scored.iter().filter(|(_, right)| *right).flat_map(|(right, _)| {
            scored.iter().filter(|(_, right)| !right).map(move |(wrong, _)| if right > wrong { 1.0 } else if right == wrong { 0.5 } else { 0.0 })
        });
        let pairs: Vec<f64> = pairs.collect();
        let expected = (!pairs.is_empty()).then(|| pairs.iter().sum::<f64>() / pairs.len() as f64);
        prop_assert_eq!(auroc(&scored).is_some(), expected.is_some());
        prop_assert!(auroc(&scored).zip(expected).is_none_or(|(found, expected)| close(found, expected)));
        // the order does not matter, and the negative of a number ranks the other way round
        let turned: Vec<(f64, bool)> = scored.iter().rev().map(|(score, right)| (-score, *right)).collect();
        prop_assert!(auroc(&turned).zip(auroc(&scored)).is_none_or(|(turned, straight)| close(turned + straight, 1.0)));
    }

    #[test]
    fn curves_and_errors_do_not_depend_on_the_order(scored in scored()) {
        let turned: Vec<(f64, bool)> = scored.iter().rev().copied().collect();
        prop_assert_eq!(curve(&scored), curve(&turned));
        prop_assert!(calibration_error(&scored).zip(calibration_error(&turned)).is_none_or(|(left, right)| close(left, right)));
        prop_assert!(calibration_error(&scored).is_none_or(|error| (0.0..=1.0).contains(&error)));
        let points = curve(&scored);
        prop_assert!(points.windows(2).all(|two| two[0].threshold > two[1].threshold && two[0].coverage <= two[1].coverage));
        prop_assert!(points.last().is_none_or(|last| last.approved == scored.len()));
    }

    #[test]
    fn a_threshold_keeps_its_promise(scored in scored(), precision in 0.05..0.95_f64) {
        let reaches = |threshold: f64| {
            let taken: Vec<bool> = scored.iter().filter(|(score, _)| *score >= threshold).map(|(_, right)| *right).collect();
            precision_at_least(taken.iter().filter(|right| **right).count(), taken.len()) >= precision
        };
        match threshold_for(precision, &scored) {
            Ok(threshold) => {
                prop_assert!(reaches(threshold));
                prop_assert!(scored.iter().all(|(score, _)| *score >= threshold || !reaches(*score)));
            }
            Err(best) => prop_assert!(best < precision && scored.iter().all(|(score, _)| !reaches(*score))),
        }
    }

    #[test]
    fn a_bound_is_below_its_share(right in 0..200_usize, wrong in 0..200_usize) {
        let count = right + wrong;
        let bound = precision_at_least(right, count);
        prop_assert!(bound >= 0.0 && bound <= right as f64 / count.max(1) as f64 + 1e-12);
        prop_assert!(precision_at_least(2 * right, 2 * count) >= bound - 1e-12);
    }
}

//! Fitting a [`Calibration`] on judged answers: how evidence becomes a confidence, and the
//! threshold that an approval needs.

use std::collections::BTreeMap;

use autoact_trajectory::{CALIBRATION_FORMAT, Calibration, Evidence, NextAttempt, Term};

use crate::logistic::Logistic;
use crate::ranking::threshold_for;

/// Parts that the questions are split into for confidences of answers that a fit has not seen.
pub const FOLDS: usize = 5;
/// Questions with a right answer, and with a wrong one, that a fit needs at least: fewer do not
/// tell the parts apart.
pub const LEAST_QUESTIONS: usize = 10;
/// The penalty on the weights of standardised parts: a weight of 1 costs as much as half a nat of
/// log loss. Parts are correlated, and histories are few.
const PENALTY: f64 = 1.0;
/// A part whose standard deviation is below this share of its size is constant.
const CONSTANT: f64 = 1e-9;

/// How much less precision is tried at a time where what was asked for cannot be reached.
const STEP: f64 = 0.05;
/// The least precision that an approval is worth anything with.
const LEAST_PRECISION: f64 = 0.5;

/// An answer that was judged.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What it answers. All answers to a question are in the same fold.
    pub question: String,
    /// How sure the agents were.
    pub evidence: Evidence,
    /// The verdict: only an answer with the verdict "right" can be approved.
    pub approved: bool,
    /// Whether it is right.
    pub right: bool,
}

/// What a fit found.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The calibration, fitted on all judged answers.
    pub calibration: Calibration,
    /// The answers' confidences, in their order, each by a fit without its fold. The threshold was
    /// chosen on these: answers that a fit has seen would look better than others do.
    pub confidences: Vec<f64>,
}

/// Why no calibration was found.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FitError {
    /// There is too little to learn from.
    #[error(
        "`{right}` questions have a right answer and `{wrong}` a wrong one, with evidence; expected at least \
         {LEAST_QUESTIONS} of each"
    )]
    TooFew {
        /// Questions with a right answer.
        right: usize,
        /// Questions with a wrong one.
        wrong: usize,
    },
    /// The precision is no share.
    #[error("the precision is `{found}`, expected more than 0 and less than 1")]
    Precision {
        /// What was asked for.
        found: f64,
    },
    /// No threshold is precise enough on as many answers as there are.
    #[error("no threshold is sure to reach a precision of {precision}; the best one is sure of {best:.3}")]
    Unreachable {
        /// What was asked for.
        precision: f64,
        /// The highest lower bound of a threshold's precision.
        best: f64,
    },
}

/// Fits a logistic mix of the parts of the evidence, and chooses the least threshold at which
/// approved answers are right with at least `precision` ([`threshold_for`]).
///
/// Parts are standardised. One that is constant does not count. Answers whose evidence is not
/// finite are passed over: their confidence is 0. The same answers give the same bits, in any order
/// of the questions up to rounding.
///
/// # Errors
/// Fewer than [`LEAST_QUESTIONS`] questions of a class, a precision that is no share, or one that
/// no threshold reaches.
pub fn fit(judged: &[Judged], precision: f64) -> Result<Fitted, FitError> {
    if !(precision > 0.0 && precision < 1.0) {
        return Err(FitError::Precision { found: precision });
    }
    let usable = |one: &&Judged| one.evidence.values().into_iter().all(f64::is_finite);
    let folds = folds(judged.iter().filter(usable))?;
    let mix = |left_out: Option<usize>| {
        let fitted_on = |one: &&Judged| left_out.is_none_or(|fold| folds.get(one.question.as_str()) != Some(&fold));
        mix(&judged.iter().filter(usable).filter(fitted_on).collect::<Vec<_>>())
    };
    let unseen: Vec<Calibration> = (0..FOLDS).map(|fold| mix(Some(fold))).collect();
    let confidence = |one: &Judged| {
        let fold = folds.get(one.question.as_str()).filter(|_| usable(&one)).and_then(|fold| unseen.get(*fold));
        fold.map_or(0.0, |calibration| calibration.confidence(&one.evidence))
    };
    let confidences: Vec<f64> = judged.iter().map(confidence).collect();
    let approvable: Vec<(f64, bool)> = judged
        .iter()
        .zip(&confidences)
        .filter(|(one, _)| one.approved && usable(one))
        .map(|(one, confidence)| (*confidence, one.right))
        .collect();
    let threshold = threshold_for(precision, &approvable).map_err(|best| FitError::Unreachable { precision, best })?;
    Ok(Fitted { calibration: Calibration { threshold, precision, ..mix(None) }, confidences })
}

/// [`fit`] for the precision that is asked for, or for the next lower one that a threshold reaches, in
/// steps of 5 points down to 50%. The calibration names the precision that it was fitted for.
///
/// # Errors
/// Those of [`fit`]; `Unreachable` with the precision that was asked for.
pub fn fit_within_reach(judged: &[Judged], precision: f64) -> Result<Fitted, FitError> {
    let asked = fit(judged, precision);
    let Err(FitError::Unreachable { best, .. }) = asked else { return asked };
    // no threshold is sure of more than the best one
    let steps = ((precision - best) / STEP - f64::EPSILON.sqrt()).ceil().max(1.0);
    let lower = precision - steps * STEP;
    if lower < LEAST_PRECISION { asked } else { fit(judged, lower).or(asked) }
}

/// Each question's fold: in turn, by their texts, those with a wrong answer first. So each fold has
/// its part of both classes, and a question is in the same one whatever the order.
fn folds<'a>(judged: impl Iterator<Item = &'a Judged>) -> Result<BTreeMap<&'a str, usize>, FitError> {
    // per question: whether it has a right answer, and whether a wrong one
    let mut questions: BTreeMap<&str, (bool, bool)> = BTreeMap::new();
    for one in judged {
        let (right, wrong) = questions.entry(&one.question).or_default();
        *right |= one.right;
        *wrong |= !one.right;
    }
    let right = questions.values().filter(|(right, _)| *right).count();
    let wrong = questions.values().filter(|(_, wrong)| *wrong).count();
    if right.min(wrong) < LEAST_QUESTIONS {
        return Err(FitError::TooFew { right, wrong });
    }
    let mut sorted: Vec<(&str, (bool, bool))> = questions.into_iter().collect();
    sorted.sort_by_key(|(_, (_, wrong))| !wrong);
    Ok(sorted.into_iter().enumerate().map(|(at, (question, _))| (question, at % FOLDS)).collect())
}

/// The mix without a threshold.
fn mix(judged: &[&Judged]) -> Calibration {
    let count = judged.len().max(1) as f64;
    let standard = |part: usize| {
        let values = || judged.iter().map(|one| one.evidence.counted(CALIBRATION_FORMAT)[part]);
        let mean = values().sum::<f64>() / count;
        let deviation = (values().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
        let varies = deviation.is_finite() && deviation > CONSTANT * mean.abs().max(CONSTANT);
        varies.then_some((part, mean, deviation))
    };
    let standards: Vec<(usize, f64, f64)> = (0..Evidence::PARTS.len()).filter_map(standard).collect();
    let row = |one: &&Judged| {
        let values = one.evidence.counted(CALIBRATION_FORMAT);
        (standards.iter().map(|(part, mean, deviation)| (values[*part] - mean) / deviation).collect(), one.right)
    };
    let rows: Vec<(Vec<f64>, bool)> = judged.iter().map(row).collect();
    let Logistic { intercept, weights } = Logistic::fit(&rows, standards.len(), PENALTY);
    let term = |((part, mean, deviation), weight): ((usize, f64, f64), f64)| Term {
        part: Evidence::PARTS[part].to_owned(),
        mean,
        deviation,
        weight,
    };
    let terms = standards.into_iter().zip(weights).map(term).collect();
    let histories = u32::try_from(judged.len()).unwrap_or(u32::MAX);
    let next_attempt = NextAttempt::default();
    Calibration { format: CALIBRATION_FORMAT, threshold: 1.0, precision: 1.0, intercept, terms, histories, next_attempt }
}
